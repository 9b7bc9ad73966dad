"""Comparison of a shadow with its cluster: sums by day, a sequential test, estimates with confidence intervals."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.shadows.comparison.live_page import LiveShadows, Twin, shadows_of
    from shadowtime.services.shadows.comparison.paired_logs import PairedLogs
    from shadowtime.services.shadows.comparison.schema import ClassResult, Comparison, Pair
    from shadowtime.services.shadows.comparison.stored import (
        STORE,
        StoredShadow,
        StoredShadowCache,
        none_of,
        read,
        shadows_beside,
    )
    from shadowtime.services.shadows.comparison.text import tables, verdict

__getattr__ = lazy_exports(__name__)
