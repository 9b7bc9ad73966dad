"""Distributions of run times: bins, masses, samples, trees that predict them."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.distributions.bins import (
        BINS,
        EDGES,
        RATIO,
        Masses,
        bin_of,
        cut_probability,
        mean_run_time,
        quantile_of,
    )
    from shadowtime.shared.distributions.boosted_trees import NOT_INSTALLED, Trees, asked, grown, is_installed, said
    from shadowtime.shared.distributions.job_classes import HOUR_AND_EIGHT, SHAPES, Borders, shape_of
    from shadowtime.shared.distributions.masses import point_masses
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
        reachable,
        told_outcomes,
        transformed_in,
    )
    from shadowtime.shared.distributions.sampling import sampled_times

__all__ = [
    "BINS",
    "EDGES",
    "HOUR_AND_EIGHT",
    "LEVELS",
    "NOT_INSTALLED",
    "NO_QUANTILES",
    "RATIO",
    "SHAPES",
    "Borders",
    "Masses",
    "OutcomeRows",
    "Rows",
    "Trees",
    "asked",
    "bin_of",
    "count_transform",
    "cut_probability",
    "grown",
    "is_installed",
    "mean_run_time",
    "occupied_time",
    "outcome_masses",
    "outcome_of",
    "packed",
    "packed_numbers",
    "packed_rows",
    "pieces",
    "point_masses",
    "quantile_of",
    "reachable",
    "said",
    "sampled_times",
    "shape_of",
    "told_outcomes",
    "transformed_in",
    "unpacked",
    "unpacked_numbers",
    "unpacked_rows",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "bins": (
            "BINS",
            "EDGES",
            "Masses",
            "RATIO",
            "bin_of",
            "cut_probability",
            "mean_run_time",
            "quantile_of",
        ),
        "boosted_trees": (
            "NOT_INSTALLED",
            "Trees",
            "asked",
            "grown",
            "is_installed",
            "said",
        ),
        "job_classes": (
            "Borders",
            "HOUR_AND_EIGHT",
            "SHAPES",
            "shape_of",
        ),
        "outcome_rows": (
            "OutcomeRows",
            "Rows",
            "packed",
            "packed_numbers",
            "packed_rows",
            "unpacked",
            "unpacked_numbers",
            "unpacked_rows",
        ),
        "outcomes": (
            "LEVELS",
            "NO_QUANTILES",
            "count_transform",
            "occupied_time",
            "outcome_masses",
            "outcome_of",
            "pieces",
            "reachable",
            "told_outcomes",
            "transformed_in",
        ),
        "masses": ("point_masses",),
        "sampling": ("sampled_times",),
    },
)
