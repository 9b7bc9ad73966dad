"""Results as tables in the terminal, one module for each table."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.presentation import predictions_run
    from shadowtime.replayer.presentation.catalogue import LISTED, classes_of, everything, print_catalogue, print_names
    from shadowtime.replayer.presentation.drift import drift_tables
    from shadowtime.replayer.presentation.live_scores import tables
    from shadowtime.replayer.presentation.names import numbered, short_names
    from shadowtime.replayer.presentation.policies import (
        comparison_table,
        forecast_table,
        wait_bound_table,
        wait_bound_tables,
    )
    from shadowtime.replayer.presentation.predictions import prediction_table
    from shadowtime.replayer.presentation.predictions_run import predictions_plan
    from shadowtime.replayer.presentation.site_expectations import expectations_of, expected_table
    from shadowtime.replayer.presentation.starts import start_table

__getattr__ = lazy_exports(__name__)
