"""The I/O of a shadow: it reads the run of its cluster and publishes its own run."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.shadows.io.process import play

__getattr__ = lazy_exports(__name__)
