"""Names, units and meanings of all metrics."""

from typing import Final, NamedTuple


class Metric(NamedTuple):
    """One metric.

    Parameters
    ----------
    name
        Name in VictoriaMetrics. The name of a counter ends in `_total`.
    labels
        Labels of its series, besides the labels of all metrics of its kind.
    unit
        Unit of its values. `share` is in 0 to 1; `1` is a count or a plain number.
    meaning
        One sentence for people.
    """

    name: str
    labels: tuple[str, ...]
    unit: str
    meaning: str


# Metrics of shadows, and of their comparison with the real cluster.

SHADOW_EVENTS = Metric("shadowtime_shadow_events_total", ("shadow",), "1", "Events of a shadow that were published.")
SHADOW_BEHIND = Metric(
    "shadowtime_shadow_behind_seconds", ("shadow",), "seconds", "Delay of a shadow behind its cluster."
)


def _twin(name: str, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"shadowtime_twin_{name}", ("shadow", *labels), unit, meaning)


TWIN_JOBS = _twin("jobs", "jobs", "Compared jobs: those of a cluster that its shadow has, too.", "shape")
TWIN_WAIT = _twin("wait_seconds", "seconds", "Mean wait of the compared jobs, really and in the shadow.", "shape", "of")
TWIN_LONGEST = _twin("longest_wait_seconds", "seconds", "Longest wait of the compared jobs.", "shape", "of")
TWIN_SLOWDOWN = _twin("slowdown", "1", "Mean bounded slowdown of the compared jobs (10 s, at least 1).", "shape", "of")
TWIN_CHANGE = _twin("wait_change", "share", "Change of the mean wait, with its 95 % interval.", "shape", "bound")
TWIN_MOVED = _twin(
    "moved_share", "share", "Compared jobs that start a minute sooner or later in the shadow.", "shape", "when"
)
TWIN_BUSY = _twin("utilization", "share", "Share of the processors that run jobs, really and in the shadow.", "of")
TWIN_WAITING = _twin("longest_waiting_seconds", "seconds", "Wait so far of the job that has waited longest.", "of")
TWIN_EVIDENCE = _twin("evidence", "1", "Evidence that waits differ; from 20 on the difference is real.")


# All other metrics: name, labels besides those of the source, unit and meaning.
#
# Results of a run have trace time and the labels `RUN`. The scoreboard samples them, and
# `services/processes/metrics/run.py` writes them. Health figures are scraped from the processes and have the time of
# the scrape. All code that draws, alerts on or emits metrics takes the names from here.

RUN: Final = ("cluster", "experiment", "policy", "run")
"""Labels of every result: the cluster's name, the group of runs started together, the policy's name in it, the run."""


def _result(name: str, unit: str, meaning: str, *labels: str) -> Metric:
    return Metric(f"shadowtime_{name}", labels, unit, meaning)


RUN_INFO = _result("run_info", "1", "Always 1; its labels are the settings of the run.", "spec", "runtime", "mode")

PROCESSORS = _result("processors", "processors", "Processors that the machine has.")
PROCESSORS_BUSY = _result("processors_busy", "processors", "Processors that running jobs hold.")
RUNNING_JOBS = _result("running_jobs", "jobs", "Jobs that run.")
QUEUED_JOBS = _result("queued_jobs", "jobs", "Jobs that wait.", "queue")
QUEUED_PROCESSORS = _result("queued_processors", "processors", "Processors that waiting jobs request.")
LONGEST_WAIT = _result(
    "longest_wait_seconds", "seconds", "Wait so far of the job that has waited longest; 0 if none waits."
)
LONGEST_WAITING_JOB = _result("longest_waiting_job", "job number", "The job that has waited longest; -1 if none waits.")
WAITING_REASONS = _result("waiting_reasons", "jobs", "Jobs that wait, by the first reason that applies.", "reason")

JOBS = _result("jobs_total", "jobs", "Jobs that have ended for good.")
WAIT_SUM = _result("wait_seconds_total", "seconds", "Waits of ended jobs, added up.")
SLOWDOWN_SUM = _result("bounded_slowdown_total", "1", "Bounded slowdowns of ended jobs (10 s, clamped at 1), added up.")
SHAPE_JOBS = _result("shape_jobs_total", "jobs", "Jobs that have ended for good, by shape.", "shape")
SHAPE_WAIT = _result("shape_wait_seconds_total", "seconds", "Waits of ended jobs, added up, by shape.", "shape")
OWNER_JOBS = _result(
    "owner_jobs_total", "jobs", "Jobs that have ended for good, of the 10 users and 10 accounts with the most.", "whose"
)
OWNER_WAIT = _result("owner_wait_seconds_total", "seconds", "Waits of the jobs of these users and accounts.", "whose")
WAITS = _result(
    "waits_total", "jobs", "Ended jobs that waited at most `le` seconds, by partition and by size.", "of", "le"
)
MEAN_WAIT = _result("mean_wait_seconds", "seconds", "Mean wait of ended jobs.")
GEOMETRIC_MEAN_WAIT = _result(
    "geometric_mean_wait_seconds", "seconds", "Geometric mean wait of ended jobs; each counts as 10 s or more."
)
MAX_WAIT = _result("max_wait_seconds", "seconds", "The longest wait of an ended job.")
WAIT_QUANTILE = _result("wait_seconds", "seconds", "Quantiles of the waits of ended jobs, within 1 %.", "quantile")
ZERO_WAIT = _result("zero_wait_share", "share", "Share of ended jobs that did not wait.")
SLOWDOWN = _result("mean_bounded_slowdown", "1", "Mean bounded slowdown of ended jobs (10 s, clamped at 1).")
SLOWDOWN_UNCLAMPED = _result("mean_bounded_slowdown_unclamped", "1", "Mean slowdown without the clamp at 1.")
MEAN_RESPONSE = _result("mean_response_seconds", "seconds", "Mean time from submission to end.")
WEIGHTED_WAIT = _result("weighted_mean_wait_seconds", "seconds", "Mean wait, weighted by the score of WFP.")
UTILIZATION = _result("utilization", "share", "Work of ended jobs over the capacity of the machine until the last end.")
ENDED_AT_LIMIT = _result("ended_at_limit_total", "jobs", "Jobs that were cut at their limit.")
KILLED = _result("killed_total", "jobs", "Runs of jobs that the scheduler killed.")
WASTED = _result("wasted_processor_seconds_total", "processor-seconds", "Work that was lost because runs were killed.")
HAPPENINGS = _result(
    "happenings_total",
    "1",
    "Counts of cancelled, held, changed and suspended jobs, of starts that the site expected, and of late events.",
    "what",
)

SCHEDULING_POINTS = _result("scheduling_points_total", "1", "Passes of the scheduler.")
DECISIONS = _result("decisions_total", "1", "Starts and kills that were decided, by reason.", "kind", "reason")
START_PROBABILITY = _result(
    "start_delay_probability_total", "1", "Probabilities of delaying the head, added up over the starts that have one."
)
OF_CANDIDATES: Final = ("measure", "probability", "started")
CANDIDATES = _result(
    "candidates_total",
    "1",
    "Backfill candidates with known outcome, by tenth of the raw or of the recalibrated probability.",
    *OF_CANDIDATES,
)
CANDIDATES_DELAYED = _result(
    "candidates_delayed_total", "1", "Candidates that delayed the head, or would have.", *OF_CANDIDATES
)
CANDIDATE_PROBABILITY = _result(
    "candidate_probability_total", "1", "Probabilities of delay of these candidates, added up.", *OF_CANDIDATES
)
BRIER_SCORE = _result("delay_brier_score", "1", "Mean squared error of the probabilities of delay.", "measure")
CALIBRATION_ERROR = _result(
    "delay_calibration_error", "share", "Mean distance of the probabilities of delay from the outcomes.", "measure"
)

MEMBER_WEIGHT = _result(
    "member_weight", "share", "Weight of a member of a portfolio at the last choice between them.", "member"
)
MEMBER_SLOWDOWN = _result(
    "member_slowdown", "share", "Slowdown on the member's simulated machine, as a share of that of EASY.", "member"
)
MEMBER_DECIDES = _result("member_decides", "1", "1 for the member that decides; others have no value.", "member")

RUN_TIME_PREDICTIONS = _result("run_time_predictions_total", "jobs", "Ended jobs whose run time was predicted.")
RUN_TIME_ERROR = _result("run_time_mean_absolute_error_seconds", "seconds", "Mean error of predicted run times.")
RUN_TIME_MEAN = _result("run_time_mean_seconds", "seconds", "Mean run time of the jobs with a prediction.")
REQUEST_ERROR = _result("request_mean_absolute_error_seconds", "seconds", "Mean error of requests as run times.")
RUN_TIME_LOG_SCORE = _result("run_time_log_score", "nats", "Mean log score of predicted distributions.")
RUN_TIME_CRPS = _result("run_time_crps_seconds", "seconds", "Mean continuous ranked probability score.")
RUN_TIME_PIT = _result("run_time_pit_share", "share", "Outcomes in each tenth of their distribution.", "tenth")
PREDICTED_RUN_TIME = _result(
    "predicted_run_time_seconds", "seconds", "Quantiles predicted for the jobs of the last interval.", "quantile"
)
RUN_TIME_STATE = _result("run_time_state", "state number", "The hidden state that was most probable last.")

ACCURACY = _result("walltime_accuracy", "share", "Mean accuracy of requests.", "of")
MEDIAN_ACCURACY = _result("walltime_median_accuracy", "share", "Median accuracy of adjusted requests.")
ADJUSTMENTS = _result("walltime_adjustments_total", "jobs", "Ended jobs by the class of their adjustment.", "outcome")

OF_BOUND: Final = ("grouping", "queue", "quantile")
"""Labels of the figures of a bound."""

WAIT_BOUND = _result("wait_bound_seconds", "seconds", "Bound on the wait of the last submitted job.", *OF_BOUND)
STARTED_WAIT = _result("started_wait_seconds", "seconds", "Longest wait of the starts of the last interval.", "queue")
BOUNDED = _result("wait_bound_predictions_total", "jobs", "Starts that had a bound.", *OF_BOUND)
UNBOUNDED = _result("wait_bound_without_total", "jobs", "Starts that had no bound.", *OF_BOUND)
COVERAGE = _result("wait_bound_coverage", "share", "Share of bounded waits within their bound.", *OF_BOUND)
OVER_RMS = _result("wait_bound_over_rms_seconds", "seconds", "Root mean square of bound minus wait.", *OF_BOUND)
RECENT_COVERAGE = _result("wait_bound_recent_coverage", "share", "Coverage among the last 1,000 starts.", *OF_BOUND)
BAND_LOW = _result("wait_bound_band_low", "share", "The lowest expected recent coverage.", *OF_BOUND)
BAND_HIGH = _result("wait_bound_band_high", "share", "The highest expected recent coverage.", *OF_BOUND)
FORECASTS = _result("wait_forecasts_total", "jobs", "Starts whose wait was forecast by running the policy ahead.")
FORECAST_ERROR = _result("wait_forecast_mean_absolute_error_seconds", "seconds", "Mean error of these forecasts.")
FORECAST_MEAN = _result("wait_forecast_mean_seconds", "seconds", "Mean of these forecasts.")
FORECAST_WAIT = _result("wait_forecast_mean_wait_seconds", "seconds", "Mean wait of the jobs with a forecast.")
EXPECTED = _result(
    "expected_starts_total", "jobs", "Starts that the site expected, first or last, or that we forecast.", "by", "queue"
)
EXPECTED_ERROR = _result(
    "expected_start_mean_absolute_error_seconds",
    "seconds",
    "Mean absolute error of these expected starts.",
    "by",
    "queue",
)
EXPECTED_BIAS = _result(
    "expected_start_mean_error_seconds",
    "seconds",
    "Mean signed error of these expected starts; above 0 they are too late.",
    "by",
    "queue",
)
CHANGE_POINTS = _result("change_points_total", "1", "Change points that were found.", "grouping", "queue")
DRIFTING = _result(
    "predictions_drifting", "1", "1 while predictions do not hold, 0 while they hold.", "of", "what", "whose"
)
DRIFT_EVIDENCE = _result(
    "drift_evidence", "share", "Evidence that predictions for the cluster fail; 1 raises an alarm.", "of", "what"
)


def _worker(name: str, unit: str, meaning: str) -> Metric:
    return Metric(f"shadowtime_worker_{name}", ("stage",), unit, meaning)


WORKER_EVENTS = _worker("events_total", "1", "Events handled.")
WORKER_DUPLICATES = _worker("duplicates_total", "1", "Events that had been handled before.")
WORKER_DEAD_LETTERS = _worker("dead_letters_total", "1", "Messages that could not be used.")
WORKER_LEFT_ASIDE = _worker("left_aside_total", "1", "Messages of quarantined runs, left aside.")
WORKER_QUARANTINED = _worker("quarantined_runs", "runs", "Runs that the stage has quarantined.")
WORKER_ALTERED = _worker("altered_states_total", "runs", "States in Redis that are not as the stage wrote them.")
WORKER_REPLACED_LOGS = _worker("replaced_logs_total", "1", "Partitions whose log was replaced by another one.")
WORKER_FENCED = _worker("fenced_total", "1", "Transactions refused because another worker owned the run.")
WORKER_RETRIES = _worker("retries_total", "1", "Batches repeated because Kafka or Redis failed.")
WORKER_LAG = _worker("lag", "1", "Messages waiting in the input topic.")
WORKER_BATCH = _worker("batch_seconds", "seconds", "Time to handle a batch and deliver the one before it.")
WORKER_LATENCY = _worker(
    "latency_seconds", "seconds", "Time from an event's entry into the first topic to this stage's answer."
)
WORKER_START = _worker("start_seconds", "seconds", "Unix time at which the worker began.")

WRITTEN = Metric("shadowtime_metrics_written_total", (), "1", "Samples that VictoriaMetrics has accepted.")
REFUSED = Metric("shadowtime_metrics_refused_total", (), "1", "Samples that VictoriaMetrics refused for good.")
WRITE_RETRIES = Metric("shadowtime_metrics_retries_total", (), "1", "Batches repeated because VictoriaMetrics failed.")
WRITER_LAG = Metric("shadowtime_metrics_lag", (), "1", "Messages of the scoreboard that wait to be written.")
LIVE_PUSHED = Metric("shadowtime_live_pushed_total", (), "1", "Lines that Grafana Live has accepted.")
LIVE_DROPPED = Metric("shadowtime_live_dropped_total", (), "1", "Lines dropped because Grafana failed or was too slow.")


def _follow(name: str, unit: str, meaning: str) -> Metric:
    return Metric(f"shadowtime_follow_{name}", ("followed",), unit, meaning)


FOLLOW_EVENTS = _follow("events_total", "1", "Events of a followed cluster that were published.")
FOLLOW_ANSWERS = _follow("answers_total", "1", "Requests to the cluster.")
FOLLOW_FAILURES = _follow("failures_total", "1", "Requests without an answer, or with an unreadable one.")
FOLLOW_SECONDS = _follow("asking_seconds_total", "seconds", "Durations of requests to the cluster, added up.")
FOLLOW_LATE = _follow("late_total", "1", "Events that were published after their instant.")
FOLLOW_GUESSED = _follow("guessed_total", "1", "Ends of jobs that no source reported, and that were guessed.")
FOLLOW_LEFT_OUT = _follow("left_out_total", "1", "Jobs that are left out: in no pool, or larger than it.")
FOLLOW_REFUSED = _follow("refused_total", "1", "Lines that could not be read; the process logs them.")
FOLLOW_HELD_BACK = _follow(
    "held_back_total", "1", "Starts that would have broken an invariant of the log, and waited for accounting."
)
FOLLOW_CONTRADICTED = _follow("contradicted", "1", "1 while two answers of the cluster contradict each other.")
FOLLOW_BEHIND = _follow("behind_seconds", "seconds", "Delay of the published events behind the cluster.")
FOLLOW_SHARE = _follow("share", "share", "Share of the time of the cluster's scheduler that its answers took.")

SCRAPE_JOB: Final = "workers"
FOLLOW_JOB: Final = "followers"
ANSWERS: Final = f'up{{job="{SCRAPE_JOB}"}}'
"""VictoriaMetrics' own metric: 1 if a process answered the last scrape, 0 if it did not; by the label `worker`."""

METRICS: Final = tuple(value for value in list(globals().values()) if isinstance(value, Metric))
OF_PROCESSES: Final = (
    "shadowtime_worker",
    "shadowtime_metrics",
    "shadowtime_live",
    "shadowtime_follow",
    "shadowtime_shadow",
    "shadowtime_twin",
)
RESULTS: Final = tuple(metric for metric in METRICS if not metric.name.startswith(OF_PROCESSES))
