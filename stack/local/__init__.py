"""Servers and workers as local processes, supervised: `shadowtime stack` and `shadowtime doctor`."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.stack.local.plan import ASK_PORT, FOLLOWERS, METRICS, StackPlan

__getattr__ = lazy_exports(__name__)
