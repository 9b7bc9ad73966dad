"""The base of all commands: start-up, errors on one line, logs, paths, tables in the terminal."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.cli.command_line import (
        INTERRUPTED,
        SEE_SETTINGS,
        TAKES_SETTINGS,
        application,
        messages,
        program,
        run_app,
        say,
    )
    from shadowtime.shared.cli.endings import end_unwritten, end_with
    from shadowtime.shared.cli.fitted_table import FittedTable
    from shadowtime.shared.cli.logs import FewAMinute, start_logging
    from shadowtime.shared.cli.paths import ROOT
    from shadowtime.shared.cli.start_up import lasting_imports, run, write_on_any_terminal

__getattr__ = lazy_exports(__name__)
