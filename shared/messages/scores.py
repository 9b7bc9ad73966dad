"""Scores that the scoreboard emits when a run closes."""

from typing import Annotated, Literal

from shadowtime.shared.bounds import MAX_EXPECTED_QUEUES, MAX_KINDS, MAX_MEMBER_CHANGES, MAX_MEMBERS
from shadowtime.shared.messages.base import AtMost, Count, Finite, FrozenModel, Instant, Name, Whole
from shadowtime.shared.messages.decisions import Standing
from shadowtime.shared.messages.drifts import DriftScores

# Scores of distributions of starts, and of probabilities that something happens.

MAX_INTERVALS = 3
TENTHS = 10
"""Bins of shares in 0 to 1."""


class ProbabilityBin(FrozenModel):
    """Predicted probabilities within a tenth from `from_probability` on, and the share of them that came true."""

    from_probability: Finite
    said: Count
    mean_probability: Finite
    came_share: Finite


class ProbabilityScores(FrozenModel):
    """The calibration of `said` predicted probabilities; `brier` is their mean squared error (0 to 1).

    `calibration_error` is the mean distance, over bins, of the predicted probability from the share that came true.
    """

    said: Count
    mean_probability: Finite
    came_share: Finite
    brier: Finite
    calibration_error: Finite
    bins: Annotated[tuple[ProbabilityBin, ...], AtMost(TENTHS)] = ()


class IntervalScores(FrozenModel):
    """The share of waits that were within the central interval of probability `level`.

    `covered` includes both ends of the interval. So a certain wait, as of a job that starts at once, is always covered.
    `covered_by_chance` counts such ties in part: it is `level` if the distributions are calibrated.
    """

    level: Finite
    covered: Finite
    covered_by_chance: Finite


class StartDistributionScores(FrozenModel):
    """The accuracy of one kind of wait distribution over `jobs` jobs that also have a sampled forecast; in seconds.

    The kinds are `sampled`: from sampled futures; `point`: the forecast as if it were certain; `bounds`: the ensemble's
    table. `crps` is the mean continuous ranked probability score; for `point` it is the mean absolute error.
    `sampled_crps` is the same score of the sampled forecasts of these jobs, `mean_wait` their actual wait. `within`
    scores the probabilities of a start within the times of the distributions. `without` counts the jobs without one.
    """

    by: Literal["sampled", "point", "bounds"]
    jobs: Count
    without: Count
    crps: Finite | None = None
    sampled_crps: Finite | None = None
    mean_wait: Finite | None = None
    intervals: Annotated[tuple[IntervalScores, ...], AtMost(MAX_INTERVALS)] = ()
    within: ProbabilityScores | None = None


class PolicyScores(FrozenModel):
    """The results of the jobs of a run; times in seconds, shares in 0 to 1. None where there is nothing to average.

    `mean_slowdown` has no lower limit of the run time but 1 s. A bounded slowdown is at least 1, except in
    `mean_bounded_slowdown_unclamped`. `weighted_mean_wait` weights a wait with the score of WFP,
    `wait_weighted_mean_wait` with the wait itself. `wasted_processor_seconds` is at most `MAX_INTEGER`, which stands
    for all larger numbers too.
    """

    jobs: Count
    mean_wait: Finite | None = None
    geometric_mean_wait: Finite | None = None
    max_wait: Count | None = None
    zero_wait_share: Finite | None = None
    mean_bounded_slowdown: Finite | None = None
    mean_bounded_slowdown_unclamped: Finite | None = None
    mean_slowdown: Finite | None = None
    mean_response: Finite | None = None
    weighted_mean_wait: Finite | None = None
    wait_weighted_mean_wait: Finite | None = None
    utilization: Finite | None = None
    makespan: Count
    ended_at_limit: Count
    killed: Count
    wasted_processor_seconds: Count
    scheduling_points: Count


class RunTimeScores(FrozenModel):
    """The accuracy of a run-time predictor for the jobs that ended: one prediction for each job, at its submission.

    `predictions` counts the jobs with a prediction. Errors, and the share that was `under_predicted`, are over all
    `jobs`; the request replaces a missing prediction. The last three are over the jobs with a histogram: mean log score
    in nats, mean continuous ranked probability score in seconds, and the shares of ten equal bins of the probability
    integral transform.
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


class WorkloadErrors(FrozenModel):
    """The errors of many predictions of each job: the mean in seconds, and as a share of the mean run time."""

    predictions: Count
    mean_absolute_error: Finite | None = None
    error_share: Finite | None = None


class PredictionWorkloadScores(FrozenModel):
    """Errors of run times over all predictions that are made, in which a job counts many times; see `RunTimeScores`.

    At a `submissions`, all waiting and running jobs are predicted, to forecast the wait of the new job. At a pass, all
    waiting and running jobs are predicted (`passes`), or only those that wait (`passes_waiting`). The prediction in use
    counts: the last one that was made. The request replaces a missing prediction (Smith 1999, section 2.1.4).
    """

    submissions: WorkloadErrors
    passes: WorkloadErrors
    passes_waiting: WorkloadErrors


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
    """Candidates with a probability within a tenth from `from_probability` on, and the share that delayed the head."""

    from_probability: Finite
    candidates: Count
    mean_probability: Finite
    delayed: Finite


class Reliability(FrozenModel):
    """The reliability of the probabilities of delaying the head, over `candidates` candidates.

    `brier_score` is their mean squared error (0 to 1). `calibration_error` is the mean distance, over bins, of the
    probability from the share that delayed the head.
    """

    candidates: Count
    brier_score: Finite | None = None
    calibration_error: Finite | None = None
    bins: Annotated[tuple[ReliabilityBin, ...], AtMost(TENTHS)] = ()


class CalibrationScores(FrozenModel):
    """Probabilities of delaying the head against outcomes: exact, by the paper's bound, and recalibrated.

    `open_candidates` counts the candidates whose outcome was not known at the end. The last three fields are only for
    policies that recalibrate.
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
    """The accuracy of the bounds of one grouping for the waits of the jobs that started.

    `queue` is None for the cluster as a whole. `predictions` counts the jobs that had a bound, `without` those that had
    none. `over_rms` is the root mean square, in seconds, of bound less wait where the bound held (Brevik 2006, section
    3.2). `windows` counts the disjoint windows of 1,000 scored jobs, `windows_within` those with a coverage within two
    hundredths of the quantile.

    Bounds from below have rows of their own, with a grouping that ends in "(lower)". Their quantile is the share of
    waits that are to be no shorter, and `over_rms` is of wait less bound.
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


class StartsByScores(FrozenModel):
    """How often the one bound that is shown for a job held: the job started by the time that users were shown.

    `queue` is None for all jobs. `jobs` had such a bound and started. `stated` is the mean probability that was stated,
    `came_true` the share that started in time, `mean_bound` in seconds.
    """

    queue: Whole | None = None
    jobs: Count
    stated: Finite
    came_true: Finite
    mean_bound: Finite


class WaitForecastScores(FrozenModel):
    """The accuracy of wait forecasts for the jobs that started; means over `forecasts` jobs, in seconds.

    `without` counts the jobs without a forecast. `error_share` is the mean absolute error as a share of the mean wait.
    """

    forecasts: Count
    without: Count
    mean_absolute_error: Finite | None = None
    mean_forecast: Finite | None = None
    mean_wait: Finite | None = None
    error_share: Finite | None = None


class StartErrorScores(FrozenModel):
    """The errors of forecast starts against the actual starts, over `jobs` jobs, in seconds.

    `mean_error` is positive if the forecasts were too late on average. `late_share` is the share of forecasts that were
    too late. `median_absolute_error` is exact to 1 %. `mean_ahead` is the mean time from the forecast to the start.
    """

    jobs: Count
    mean_absolute_error: Finite | None = None
    median_absolute_error: Finite | None = None
    mean_error: Finite | None = None
    late_share: Finite | None = None
    mean_ahead: Finite | None = None


class PairedStartScores(FrozenModel):
    """Our own forecast at submission beside the site's first and last forecast, for exactly the same jobs.

    Two naive forecasts, also made at submission, stand beside them: a start at once, and the median of the last 100
    waits that were known. They are None in scores of older versions.
    """

    first: StartErrorScores
    last: StartErrorScores
    forecast: StartErrorScores
    at_once: StartErrorScores | None = None
    last_waits: StartErrorScores | None = None


class StartProbabilityScores(FrozenModel):
    """The calibration of our probabilities of a start within some time, made at submission, over those of `jobs` jobs.

    If the probabilities are calibrated, `started_share` equals `mean_probability`. If they are stated with a
    confidence, `started_share` is higher. `brier` is their mean squared error (0 to 1). `site_brier` is the same for
    the site's first forecast, which counts as certain.
    """

    jobs: Count
    mean_probability: Finite
    started_share: Finite
    brier: Finite
    site_brier: Finite


class ExpectedStartScores(FrozenModel):
    """The accuracy of the site's own first and last forecasts, for the started jobs of a queue; `queue` None for all.

    `paired` covers only the jobs that also had our forecast; None if there were none. `bounded` counts the jobs that
    had a bound on their wait. The next three fields are about these jobs: `bound_coverage` is the share with a wait
    within the bound, `bound_quantile` the mean quantile of the bounds, and `mean_bound` their mean in seconds.
    """

    queue: Whole | None = None
    first: StartErrorScores
    last: StartErrorScores
    paired: PairedStartScores | None = None
    bounded: Count = 0
    bound_coverage: Finite | None = None
    bound_quantile: Finite | None = None
    mean_bound: Finite | None = None
    within: StartProbabilityScores | None = None


class MemberChange(FrozenModel):
    """A change of the deciding member of a portfolio, at `time`, in seconds of the log."""

    time: Instant
    member: Name


class PortfolioScores(FrozenModel):
    """The changes of the deciding member of a portfolio, and the results of all members at the last choice.

    `decides` is the member that decided last. `members` has the results over `jobs` jobs. Before the first choice it is
    empty, and `jobs` is None. `left_out` counts the changes beyond the maximum number.
    """

    decides: Name
    jobs: Count | None = None
    members: Annotated[tuple[Standing, ...], AtMost(MAX_MEMBERS)] = ()
    changes: Annotated[tuple[MemberChange, ...], AtMost(MAX_MEMBER_CHANGES)] = ()
    left_out: Count = 0


class Happenings(FrozenModel):
    """Counts of events of jobs other than submissions, starts and ends.

    `told_late` counts events reported after their instant. `expected` counts the site's own forecasts of starts; None
    if the log has none.
    """

    cancelled: Count = 0
    held: Count = 0
    changed: Count = 0
    suspended: Count = 0
    told_late: Count = 0
    expected: Count | None = None


class Scores(FrozenModel):
    """The scoreboard's answer to `ClusterClosed`.

    A field is None if it does not apply. `calibration` is for policies that evaluate probabilities,
    `wait_forecast` for those that forecast, and `starts` for those that forecast quantiles. `cuts` is for distributions
    of run times, and `portfolio` for policies that switch between several configurations. `happenings` is for logs with
    such events, `expected_starts` for logs with forecasts of the site's own scheduler, `starts_by` for recorded runs
    with bounds on waits, and `drifts` for runs with predictions. `run_time` has one prediction for each job,
    `prediction_workload` one for each use of a prediction.
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
    starts_by: Annotated[tuple[StartsByScores, ...], AtMost(MAX_EXPECTED_QUEUES + 1)] | None = None
    drifts: DriftScores | None = None
    prediction_workload: PredictionWorkloadScores | None = None

    def __repr__(self) -> str:
        policy = self.policy
        wait = "" if policy.mean_wait is None else f", mean wait {policy.mean_wait:.0f} s"
        slowdown = policy.mean_bounded_slowdown
        times = "" if slowdown is None else f", mean bounded slowdown {slowdown:.2f}"
        return f"<Scores: {policy.jobs:,} jobs{wait}{times}; .model_dump() has all>"

    __str__ = __repr__
