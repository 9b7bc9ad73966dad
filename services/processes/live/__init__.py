"""The live page: runs in progress, jobs, decisions with their reasons."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.processes.live.serve import serve_live

__getattr__ = lazy_exports(__name__)
