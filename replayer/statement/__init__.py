"""The statement for a site: one page on how far the predicted starts of the last month held."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.statement.gathering import gather, publish, require_printer

__getattr__ = lazy_exports(__name__)
