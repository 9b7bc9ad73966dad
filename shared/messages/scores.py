"""Scores that the scoreboard emits when a run closes."""

from typing import Annotated, Literal

from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES, MAX_KINDS, MAX_MEMBER_CHANGES, MAX_MEMBERS
from shadowtime.shared.messages.base import AtMost, Count, Finite, FrozenModel, Instant, Name, Whole
from shadowtime.shared.messages.decisions import Standing
from shadowtime.shared.messages.drifts import DriftScores

# What the scoreboard says of distributions of starts, and of probabilities that something happens.

MAX_INTERVALS = 3
TENTHS = 10


class ProbabilityBin(FrozenModel):
    """Probabilities within a tenth from `from_probability` on, and the share of what was said that came true."""

    from_probability: Finite
    said: Count
    mean_probability: Finite
    came_share: Finite


class ProbabilityScores(FrozenModel):
    """Whether so many probabilities came true; `brier` is their mean squared error (0 to 1).

    `calibration_error` is the mean distance, over bins, of what was said from the share that came true.
    """

    said: Count
    mean_probability: Finite
    came_share: Finite
    brier: Finite
    calibration_error: Finite
    bins: Annotated[tuple[ProbabilityBin, ...], AtMost(TENTHS)] = ()


class IntervalScores(FrozenModel):
    """How many waits were within the central interval of this probability.

    `covered` counts both its ends in, so where a wait is sure, as of a job that starts at once, it is always held.
    `covered_by_chance` shares such ties out: it is `level` where distributions can be taken at their word.
    """

    level: Finite
    covered: Finite
    covered_by_chance: Finite


class StartDistributionScores(FrozenModel):
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


"""Bins of shares in 0 to 1."""


class PolicyScores(FrozenModel):
    """How the jobs of a run fared; times in seconds, shares in 0 to 1. None where there is nothing to average.

    `wasted_processor_seconds` are at most `MAX_INTEGER`, which stands for that or more.
    """

    jobs: Count
    mean_wait: Finite | None = None
    geometric_mean_wait: Finite | None = None
    max_wait: Count | None = None
    zero_wait_share: Finite | None = None
    mean_bounded_slowdown: Finite | None = None
    mean_bounded_slowdown_unclamped: Finite | None = None
    mean_response: Finite | None = None
    weighted_mean_wait: Finite | None = None
    utilization: Finite | None = None
    makespan: Count
    ended_at_limit: Count
    killed: Count
    wasted_processor_seconds: Count
    scheduling_points: Count


class RunTimeScores(FrozenModel):
    """How a run-time predictor fared against the jobs that ended.

    `predictions` counts the jobs of which it said something; errors, and the share that was `under_predicted`, are over
    all `jobs`, the request standing in where it said nothing. The last three are over those with a histogram: mean log
    score in nats, mean continuous ranked probability score in seconds, shares of ten equal bins of the transform.
    """

    jobs: Count
    predictions: Count
    mean_absolute_error: Finite | None = None
    median_absolute_error: Finite | None = None
    under_predicted: Finite | None = None
    mean_run_time: Finite | None = None
    log_score: Finite | None = None
    crps: Finite | None = None
    pit: Annotated[tuple[Finite, ...], AtMost(TENTHS)] = ()


class AdjustmentScores(FrozenModel):
    """Accuracy of requests before and after adjustment, and the shares of its four classes."""

    mean_accuracy: Finite | None = None
    median_accuracy: Finite | None = None
    mean_accuracy_requested: Finite | None = None
    none: Finite | None = None
    over: Finite | None = None
    under: Finite | None = None
    bad: Finite | None = None


class ReliabilityBin(FrozenModel):
    """Candidates whose probability was within a tenth from `from_probability` on, and the share that delayed."""

    from_probability: Finite
    candidates: Count
    mean_probability: Finite
    delayed: Finite


class Reliability(FrozenModel):
    """Whether probabilities came true; `calibration_error` is the mean distance, over bins, from what happened."""

    candidates: Count
    brier_score: Finite | None = None
    calibration_error: Finite | None = None
    bins: Annotated[tuple[ReliabilityBin, ...], AtMost(TENTHS)] = ()


class CalibrationScores(FrozenModel):
    """Probabilities of delaying the head against outcomes: exact, by the paper's bound, and recalibrated.

    `open_candidates` counts those whose outcome was not known at the end; the last three where a policy recalibrates.
    """

    exact: Reliability
    exact_started: Reliability
    exact_not_started: Reliability
    bound: Reliability
    bound_started: Reliability
    bound_not_started: Reliability
    open_candidates: Count
    recalibrated: Reliability | None = None
    recalibrated_started: Reliability | None = None
    recalibrated_not_started: Reliability | None = None


class WaitBoundScores(FrozenModel):
    """How the bounds of one grouping fared against the waits of the jobs that started.

    `queue` is None for the cluster as a whole. `predictions` counts the jobs that had a bound, `without` those that had
    none. `over_rms` is the root mean square, in seconds, of bound less wait where the bound held (Brevik 2006, section
    3.2). `windows` counts the disjoint runs of 1,000 scored jobs, `windows_within` those whose coverage was within two
    hundredths of the quantile.
    """

    grouping: Name
    queue: Whole | None = None
    quantile: Finite
    confidence: Finite
    predictions: Count
    without: Count
    coverage: Finite | None = None
    over_rms: Finite | None = None
    windows: Count = 0
    windows_within: Count = 0


class WaitForecastScores(FrozenModel):
    """How forecasts of waits fared against the waits of the jobs that started; means over `forecasts` jobs, in seconds.

    `without` counts the jobs that had none, `error_share` is the error as a share of the mean wait.
    """

    forecasts: Count
    without: Count
    mean_absolute_error: Finite | None = None
    mean_forecast: Finite | None = None
    mean_wait: Finite | None = None
    error_share: Finite | None = None


class ForetoldScores(FrozenModel):
    """How far foretold starts were from the starts that came, over `jobs`, in seconds.

    `mean_error` is positive where they were foretold too late, as they were of `late_share`. The median is that of
    absolute errors, within 1 %; `mean_ahead` is how long before the start it was foretold.
    """

    jobs: Count
    mean_absolute_error: Finite | None = None
    median_absolute_error: Finite | None = None
    mean_error: Finite | None = None
    late_share: Finite | None = None
    mean_ahead: Finite | None = None


class PairedStartScores(FrozenModel):
    """Our own forecast, said at submission, beside the site's first and last word, of exactly the same jobs."""

    first: ForetoldScores
    last: ForetoldScores
    forecast: ForetoldScores


class StartProbabilityScores(FrozenModel):
    """How our probabilities of starting within some time fared, said at submission, over those of `jobs` jobs.

    Well calibrated, `started_share` is `mean_probability`; said with confidence, it is above. `brier` is the mean
    squared error (0 to 1), `site_brier` that of the site's first word if it is taken for certain.
    """

    jobs: Count
    mean_probability: Finite
    started_share: Finite
    brier: Finite
    site_brier: Finite


class ExpectedStartScores(FrozenModel):
    """Expectations of the site's own scheduler, first and last, for the started jobs of a queue; None for all queues.

    `paired` is over those of them that were forecast too, None where none was. `bound_coverage` is over the `bounded`
    ones, which had a bound on their wait, `bound_quantile` the mean share that their bounds were to cover, `mean_bound`
    the bounds' mean in seconds.
    """

    queue: Whole | None = None
    first: ForetoldScores
    last: ForetoldScores
    paired: PairedStartScores | None = None
    bounded: Count = 0
    bound_coverage: Finite | None = None
    bound_quantile: Finite | None = None
    mean_bound: Finite | None = None
    within: StartProbabilityScores | None = None


class MemberChange(FrozenModel):
    """From `time` on, in seconds of the log, another member of a portfolio decided than before."""

    time: Instant
    member: Name


class PortfolioScores(FrozenModel):
    """The members of a portfolio that decided, from when on, and the final results of all over so many `jobs`.

    `members` are as at the last choice, none before the first; `left_out` counts the changes that came after so many.
    """

    decides: Name
    jobs: Count | None = None
    members: Annotated[tuple[Standing, ...], AtMost(MAX_MEMBERS)] = ()
    changes: Annotated[tuple[MemberChange, ...], AtMost(MAX_MEMBER_CHANGES)] = ()
    left_out: Count = 0


class Happenings(FrozenModel):
    """Counts of events of jobs other than submissions, starts and ends.

    `told_late` counts events told after their instant, `expected` the site's own words on starts, None if it has none.
    """

    cancelled: Count = 0
    held: Count = 0
    changed: Count = 0
    suspended: Count = 0
    told_late: Count = 0
    expected: Count | None = None


class Scores(FrozenModel):
    """The scoreboard's answer to `ClusterClosed`.

    `calibration` only of policies that weigh probabilities, `wait_forecast` only of those that forecast, `starts` of
    those that forecast quantiles, `cuts` where run times have distributions, `portfolio` only of those that move
    between several configurations, `happenings` only of logs in which there were any, `expected_starts` only of those
    in which the site's own scheduler said when it expects jobs to start, `drifts` where something was predicted.
    """

    policy: PolicyScores
    calibration: CalibrationScores | None = None
    run_time: RunTimeScores
    adjustment: AdjustmentScores
    wait_bounds: Annotated[tuple[WaitBoundScores, ...], AtMost(MAX_KINDS)] = ()
    wait_forecast: WaitForecastScores | None = None
    starts: Annotated[tuple[StartDistributionScores, ...], AtMost(3)] | None = None
    cuts: ProbabilityScores | None = None
    portfolio: PortfolioScores | None = None
    happenings: Happenings | None = None
    expected_starts: Annotated[tuple[ExpectedStartScores, ...], AtMost(MAX_EXPECTED_QUEUES + 1)] | None = None
    drifts: DriftScores | None = None
