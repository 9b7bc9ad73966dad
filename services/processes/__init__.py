"""The processes beside the stages: workers, readers of the stream, and their command line."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.processes.ask import (
        NAMES_OF,
        NO_WORDS,
        Answers,
        ClusterWords,
        WordReader,
        age_line,
        log_age,
    )

__getattr__ = lazy_exports(__name__)
