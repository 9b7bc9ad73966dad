"""Compiled kernels: their declaration, compilation and cache, and the types of arrays."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.kernels.arrays import (
        CountTable,
        Flags,
        Floats,
        FloatTable,
        IntegerCube,
        Integers,
        IntegerTable,
    )
    from shadowtime.shared.kernels.decorator import (
        Kernel,
        cache_folder,
        get_ready,
        inlined,
        kept_kernels,
        kernel,
        prebuilt_folder,
        uninterrupted,
    )
    from shadowtime.shared.kernels.easy_backfill import (
        BEYOND,
        ascending,
        backfilled_rows,
        easy_pass,
        has_room,
        place_of,
        shadow_of,
    )
    from shadowtime.shared.kernels.head_tracker import HeadTracker
    from shadowtime.shared.kernels.numbered_rows import NumberedRows

__getattr__ = lazy_exports(__name__)
