"""What the scoreboard says of distributions of starts, and of probabilities that something happens."""

from typing import Annotated, Literal

from shadowtime.shared.message import AtMost, Count, Finite, Frozen

MAX_INTERVALS = 3
TENTHS = 10


class ProbabilityBin(Frozen):
    """Probabilities within a tenth from `from_probability` on, and the share of what was said that came true."""

    from_probability: Finite
    said: Count
    mean_probability: Finite
    came_share: Finite


class ProbabilityScores(Frozen):
    """Whether so many probabilities came true; `brier` is their mean squared error (0 to 1).

    `calibration_error` is the mean distance, over bins, of what was said from the share that came true.
    """

    said: Count
    mean_probability: Finite
    came_share: Finite
    brier: Finite
    calibration_error: Finite
    bins: Annotated[tuple[ProbabilityBin, ...], AtMost(TENTHS)] = ()


class IntervalScores(Frozen):
    """How many waits were within the central interval of this probability.

    `covered` counts both its ends in, so where a wait is sure, as of a job that starts at once, it is always held.
    `covered_by_chance` shares such ties out: it is `level` where distributions can be taken at their word.
    """

    level: Finite
    covered: Finite
    covered_by_chance: Finite


class StartDistributionScores(Frozen):
    """How one distribution of the wait fared over `jobs`, of which a sampled forecast told too; seconds.

    `sampled`: from sampled futures; `point`: the forecast as if it were certain; `bounds`: the ensemble's table. `crps`
    is the mean continuous ranked probability score, which of a point is the mean absolute error, `sampled_crps` that of
    the sampled forecast of the same jobs. `without` counts the jobs of which it told nothing.
    """

    by: Literal["sampled", "point", "bounds"]
    jobs: Count
    without: Count
    crps: Finite | None = None
    sampled_crps: Finite | None = None
    mean_wait: Finite | None = None
    intervals: Annotated[tuple[IntervalScores, ...], AtMost(MAX_INTERVALS)] = ()
    within: ProbabilityScores | None = None
