"""The follower of a live cluster: it turns the reports of Slurm, PBS or a program into events of a run."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.follower.cluster import NameTable, Opening, SourceLoad
    from shadowtime.services.follower.command_line import words_of
    from shadowtime.services.follower.io import Commands, Follower, follow_all, with_store
    from shadowtime.services.follower.slurm import COMMANDS, Site, site_of

__getattr__ = lazy_exports(__name__)
