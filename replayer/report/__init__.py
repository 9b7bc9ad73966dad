"""The report of a replay: one HTML page with all charts and the numbers behind them."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.report import figures, tables
    from shadowtime.replayer.report.markup import cell, escape, figure, table
    from shadowtime.replayer.report.prediction_figures import waits_and_bounds
    from shadowtime.replayer.report.report import page, whole
    from shadowtime.replayer.report.statistics import PairedDifferences, by_user, clock_of, paired, tail_mean

__getattr__ = lazy_exports(__name__)
