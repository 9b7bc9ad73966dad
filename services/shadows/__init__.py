"""Shadows: other policies played on the jobs of a followed cluster, and their comparison with it."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.shadows.comparison import (
        STORE,
        LiveShadows,
        StoredShadow,
        StoredShadowCache,
        Twin,
        none_of,
        read,
        shadows_beside,
        shadows_of,
        tables,
        verdict,
    )

__getattr__ = lazy_exports(__name__)
