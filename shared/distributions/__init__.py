"""Distributions of run times: bins, masses, samples, and boosted trees that predict them."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.distributions.boosted_trees import (
        NOT_INSTALLED,
        Fit,
        Growth,
        Regrowth,
        Trees,
        asked,
        is_installed,
        tree_scores,
    )
    from shadowtime.shared.distributions.histogram import (
        BINS,
        EDGES,
        RATIO,
        Masses,
        bin_of,
        cut_probability,
        expected_run_time,
        mean_run_time,
        quantile_of,
        rounded_mean,
    )
    from shadowtime.shared.distributions.job_classes import HOUR_AND_EIGHT, SHAPES, Borders, shape_of
    from shadowtime.shared.distributions.mass_points import point_masses
    from shadowtime.shared.distributions.outcome_rows import (
        OutcomeRows,
        Rows,
        packed,
        packed_numbers,
        packed_rows,
        unpacked,
        unpacked_numbers,
        unpacked_rows,
    )
    from shadowtime.shared.distributions.outcomes import (
        LEVELS,
        NO_QUANTILES,
        count_transform,
        occupied_time,
        outcome_masses,
        outcome_of,
        pieces,
        predicted_outcomes,
        reachable,
        transformed_in,
    )
    from shadowtime.shared.distributions.sampling import sampled_times

__getattr__ = lazy_exports(__name__)
