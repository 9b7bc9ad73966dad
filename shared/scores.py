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
    where it said nothing.
    """

    jobs: int
    predictions: int
    mean_absolute_error: float | None = None
    mean_run_time: float | None = None
    log_score: float | None = None
    crps: float | None = None


class AdjustmentScores(Frozen):
    """Accuracy of requests before and after adjustment, and the shares of its four classes."""

    mean_accuracy: float | None = None
    median_accuracy: float | None = None
    mean_accuracy_requested: float | None = None
    none: float | None = None
    over: float | None = None
    under: float | None = None
    bad: float | None = None


class Scores(Frozen):
    """The scoreboard's answer to `ClusterClosed`."""

    policy: PolicyScores
    run_time: RunTimeScores
    adjustment: AdjustmentScores
