"""Logs in formats of other simulators and archives, read as a whole."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.logs.other_formats import batsim, gwf

__getattr__ = lazy_exports(__name__)
