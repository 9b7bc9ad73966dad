"""Tables of jobs in files of several kinds, with columns of any names."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.accounting.tables import table
    from shadowtime.shared.accounting.tables.files import table_file
    from shadowtime.shared.accounting.tables.presets import PRESETS, preset_columns

__getattr__ = lazy_exports(__name__)
