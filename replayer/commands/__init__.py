"""The sub-commands of `shadowtime` that read, replay and compare logs, one module each."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.commands.replay_options import NOT_CITED, Options
    from shadowtime.replayer.commands.replay_run import compare_logs

__getattr__ = lazy_exports(__name__)
