"""What the scoreboard answers when a run closes."""

from shared.message import Frozen


class PolicyScores(Frozen):
    """How the jobs of a run fared; times in seconds, shares in 0 to 1. None where there is nothing to average."""

    jobs: int
    mean_wait: float | None = None
    geometric_mean_wait: float | None = None
    max_wait: int | None = None
    zero_wait_share: float | None = None
    mean_bounded_slowdown: float | None = None
    mean_bounded_slowdown_unclamped: float | None = None
    mean_response: float | None = None
    weighted_mean_wait: float | None = None
    utilization: float | None = None
    makespan: int
    ended_at_limit: int
    killed: int
    wasted_processor_seconds: int
    scheduling_points: int


class RunTimeScores(Frozen):
    """How a run-time predictor fared against the jobs that ended.

    `predictions` counts the jobs of which it said something; the errors are over all `jobs`, the request standing in
    where it said nothing. The last three are over the jobs of which it predicted a histogram: mean log score in nats,
    mean continuous ranked probability score in seconds, and the shares of ten equal bins of the probability integral
    transform, all alike where the histograms can be taken at their word.
    """

    jobs: int
    predictions: int
    mean_absolute_error: float | None = None
    mean_run_time: float | None = None
    log_score: float | None = None
    crps: float | None = None
    pit: tuple[float, ...] = ()


class AdjustmentScores(Frozen):
    """Accuracy of requests before and after adjustment, and the shares of its four classes."""

    mean_accuracy: float | None = None
    median_accuracy: float | None = None
    mean_accuracy_requested: float | None = None
    none: float | None = None
    over: float | None = None
    under: float | None = None
    bad: float | None = None


class ReliabilityBin(Frozen):
    """Candidates whose probability was within a tenth from `from_probability` on, and the share that delayed."""

    from_probability: float
    candidates: int
    mean_probability: float
    delayed: float


class Reliability(Frozen):
    """Whether probabilities came true; `calibration_error` is the mean distance, over bins, from what happened."""

    candidates: int
    brier_score: float | None = None
    calibration_error: float | None = None
    bins: tuple[ReliabilityBin, ...] = ()


class CalibrationScores(Frozen):
    """Probabilities of delaying the head against outcomes, exact and by the paper's bound.

    `open_candidates` counts those whose outcome was not known at the end.
    """

    exact: Reliability
    exact_started: Reliability
    exact_not_started: Reliability
    bound: Reliability
    bound_started: Reliability
    bound_not_started: Reliability
    open_candidates: int


class WaitBoundScores(Frozen):
    """How the bounds of one grouping fared against the waits of the jobs that started.

    `queue` is None for the cluster as a whole. `predictions` counts the jobs that had a bound, `without` those that had
    none. `over_rms` is the root mean square, in seconds, of bound less wait where the bound held (P2, section 5).
    `windows` counts the disjoint runs of 1,000 scored jobs, `windows_within` those whose coverage was within two
    hundredths of the quantile.
    """

    grouping: str
    queue: int | None = None
    quantile: float
    confidence: float
    predictions: int
    without: int
    coverage: float | None = None
    over_rms: float | None = None
    windows: int = 0
    windows_within: int = 0


class WaitForecastScores(Frozen):
    """How forecasts of waits fared against the waits of the jobs that started; means over `forecasts` jobs, in seconds.

    `without` counts the jobs that had none, `error_share` is the error as a share of the mean wait.
    """

    forecasts: int
    without: int
    mean_absolute_error: float | None = None
    mean_forecast: float | None = None
    mean_wait: float | None = None
    error_share: float | None = None


class Scores(Frozen):
    """The scoreboard's answer to `ClusterClosed`.

    `calibration` only of policies that weigh probabilities, `wait_forecast` only of those that forecast.
    """

    policy: PolicyScores
    calibration: CalibrationScores | None = None
    run_time: RunTimeScores
    adjustment: AdjustmentScores
    wait_bounds: tuple[WaitBoundScores, ...] = ()
    wait_forecast: WaitForecastScores | None = None
