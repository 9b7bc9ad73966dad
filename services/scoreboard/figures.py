"""Figures of a run, for a time-series database."""

from collections import Counter
from collections.abc import Iterator
from math import isfinite
from typing import get_args

import numpy as np

from shadowtime.services.scoreboard.all_scores import Tally
from shadowtime.services.scoreboard.sampling import ALL, MAX_QUEUES, OTHERS, Sampling
from shadowtime.services.scoreboard.scores import BINS as TENTHS
from shadowtime.services.scoreboard.scores import ReliabilityTable
from shadowtime.services.scoreboard.waits_by_group import reasons_for_waiting
from shadowtime.shared import metric_names as names
from shadowtime.shared.distributions import EDGES, SHAPES
from shadowtime.shared.messages import AdjustmentClass, ClusterOpened, Figure, Happenings, label
from shadowtime.shared.metric_names import Metric
from shadowtime.shared.stages import StageHandler

QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
PREDICTED_QUANTILES = (0.1, 0.5, 0.9)
NOBODY = -1


def figures(run: StageHandler, tally: Tally, sampling: Sampling, time: int) -> Iterator[Figure]:
    """Yield all figures of a run as of `time`, in seconds, at or after the last event.

    A figure has the name of its metric, its label values and its value. Figures without a finite value are left out.
    """
    for metric, labels, value in (
        *_run(run.opened),
        *_machine(run, sampling, time),
        *_outcomes(tally, sampling),
        *_decisions(tally, sampling),
        *_calibration(tally),
        *_run_times(tally, sampling, time),
        *_adjustments(tally),
        *_wait_bounds(tally, sampling, time),
        *_forecasts(tally),
        *_expected_starts(tally, sampling),
        *_members(tally),
        *_drifts(tally),
    ):
        if value is not None and isfinite(value):  # sums of absurd predictions may be infinite
            yield metric.name, labels, float(value)


Samples = Iterator[tuple[Metric, tuple[str, ...], float | None]]


def _run(opened: ClusterOpened) -> Samples:
    yield names.RUN_INFO, (label(opened.policy), label(opened.runtime), opened.mode), 1


def _machine(run: StageHandler, sampling: Sampling, time: int) -> Samples:
    waiting, running = run.jobs.waiting.values(), run.jobs.running
    yield names.PROCESSORS, (), run.processors
    yield names.PROCESSORS_BUSY, (), sum(job.started.processors for job in running.values() if job.suspended is None)
    yield names.RUNNING_JOBS, (), len(running)
    queued = Counter(sampling.queue_of(job.queue_number) for job in waiting)
    for queue in (*sampling.queues, *([OTHERS] if len(sampling.queues) == MAX_QUEUES else ())):
        yield names.QUEUED_JOBS, (queue,), queued[queue]
    yield names.QUEUED_JOBS, (ALL,), len(waiting)
    yield names.QUEUED_PROCESSORS, (), sum(job.requested_processors for job in waiting)
    longest = min(waiting, key=lambda job: (job.since, job.job_number), default=None)
    yield names.LONGEST_WAIT, (), 0 if longest is None else time - longest.since
    yield names.LONGEST_WAITING_JOB, (), NOBODY if longest is None else longest.job_number
    for reason, count in reasons_for_waiting(run.capacities, waiting, running.values()).items():
        yield names.WAITING_REASONS, (reason,), count


def _outcomes(tally: Tally, sampling: Sampling) -> Samples:
    waits = tally.waits
    waits.fold()
    summary = waits.summary(tally.capacity.until(waits.last_end))
    yield names.JOBS, (), waits.jobs
    yield names.WAIT_SUM, (), waits.wait
    yield names.SLOWDOWN_SUM, (), waits.slowdown
    for shape, (ended, total) in zip(SHAPES, sampling.shapes, strict=True):
        if ended:
            yield names.SHAPE_JOBS, (shape,), ended
            yield names.SHAPE_WAIT, (shape,), total

    for metric, field in (
        (names.MEAN_WAIT, "mean_wait"),
        (names.GEOMETRIC_MEAN_WAIT, "geometric_mean_wait"),
        (names.MAX_WAIT, "max_wait"),
        (names.ZERO_WAIT, "zero_wait_share"),
        (names.SLOWDOWN, "mean_bounded_slowdown"),
        (names.SLOWDOWN_UNCLAMPED, "mean_bounded_slowdown_unclamped"),
        (names.MEAN_RESPONSE, "mean_response"),
        (names.WEIGHTED_WAIT, "weighted_mean_wait"),
        (names.UTILIZATION, "utilization"),
    ):
        yield metric, (), summary[field]

    for share, wait in zip(QUANTILES, sampling.waits.quantiles(QUANTILES), strict=False):  # none before a job has ended
        yield names.WAIT_QUANTILE, (f"{share:g}",), wait
    for owner, (ended, total) in sampling.groups.largest():
        yield names.OWNER_JOBS, (owner,), ended
        yield names.OWNER_WAIT, (owner,), total
    for group, histogram in sampling.groups.histograms():
        for limit, count in histogram:
            yield names.WAITS, (group, limit), count

    yield names.ENDED_AT_LIMIT, (), tally.ended_at_limit
    yield names.KILLED, (), tally.killed
    yield names.WASTED, (), tally.wasted_processor_seconds
    for what, count in Happenings(**tally.happenings).model_dump().items():
        yield names.HAPPENINGS, (what,), count


def _decisions(tally: Tally, sampling: Sampling) -> Samples:
    yield names.SCHEDULING_POINTS, (), tally.scheduling_points
    for (kind, reason), count in sampling.decisions.items():
        yield names.DECISIONS, (kind, label(reason)), count
    if tally.calibration.heads.next_attempt:
        yield names.START_PROBABILITY, (), sampling.start_probability


def _calibration(tally: Tally) -> Samples:
    """Yield the reliability tables over the outcomes found so far. Later outcomes are found in batches."""
    for measure in ("exact", "recalibrated", "bound"):
        table: ReliabilityTable = getattr(tally.calibration, measure)
        brier_score, calibration_error = table.errors()
        yield names.BRIER_SCORE, (measure,), brier_score
        yield names.CALIBRATION_ERROR, (measure,), calibration_error
        if measure == "bound":
            continue
        for started, word in enumerate(("no", "yes")):
            for tenth in range(TENTHS):
                if count := int(table.candidates[started, tenth]):
                    labels = measure, f"{tenth / TENTHS:g}", word
                    yield names.CANDIDATES, labels, count
                    yield names.CANDIDATES_DELAYED, labels, int(table.delayed[started, tenth])
                    yield names.CANDIDATE_PROBABILITY, labels, float(table.probability[started, tenth])


def _run_times(tally: Tally, sampling: Sampling, time: int) -> Samples:
    errors, distributions = tally.run_times.scores(), tally.distributions.summary()
    yield names.RUN_TIME_PREDICTIONS, (), errors.predictions
    yield names.RUN_TIME_ERROR, (), errors.mean_absolute_error
    yield names.RUN_TIME_MEAN, (), errors.mean_run_time
    requested, wrong = sampling.requests
    yield names.REQUEST_ERROR, (), wrong / requested if requested else None
    yield names.RUN_TIME_LOG_SCORE, (), distributions["log_score"]
    yield names.RUN_TIME_CRPS, (), distributions["crps"]
    for tenth, share in enumerate(distributions["pit"]):
        yield names.RUN_TIME_PIT, (f"{tenth / len(distributions['pit']):g}",), share
    yield names.RUN_TIME_STATE, (), sampling.state
    if sampling.interval == sampling.moment_of(time) and sampling.predicted.any():
        below = np.cumsum(sampling.predicted) / sampling.predicted.sum()
        for share in PREDICTED_QUANTILES:
            place = int(np.searchsorted(below, share))
            yield names.PREDICTED_RUN_TIME, (f"{share:g}",), float(np.sqrt(max(EDGES[place], 1.0) * EDGES[place + 1]))


def _adjustments(tally: Tally) -> Samples:
    accuracy = tally.accuracy.scores()
    yield names.ACCURACY, ("adjusted",), accuracy.mean_accuracy
    yield names.ACCURACY, ("requested",), accuracy.mean_accuracy_requested
    yield names.MEDIAN_ACCURACY, (), accuracy.median_accuracy
    for outcome in get_args(AdjustmentClass) if tally.accuracy.jobs else ():
        yield names.ADJUSTMENTS, (outcome,), tally.accuracy.classes[outcome]


def _forecasts(tally: Tally) -> Samples:
    if (forecast := tally.forecasts.scores()) is not None:
        yield names.FORECASTS, (), forecast.forecasts
        yield names.FORECAST_ERROR, (), forecast.mean_absolute_error
        yield names.FORECAST_MEAN, (), forecast.mean_forecast
        yield names.FORECAST_WAIT, (), forecast.mean_wait


def _expected_starts(tally: Tally, sampling: Sampling) -> Samples:
    """Yield the errors of the site's expected starts, and of our forecasts for the same jobs.

    Queues that share a label are left out.
    """
    shown = {ALL, *sampling.queues}
    for starts in tally.expected.scores() or ():
        queue = ALL if starts.queue is None else str(starts.queue)
        words = {"first": starts.first, "last": starts.last}
        if starts.paired is not None:
            paired = vars(starts.paired).items()
            words |= {f"{name}, of those forecast": value for name, value in paired if name != "forecast"}
            words["forecast"] = starts.paired.forecast

        for by, scores in words.items() if queue in shown else ():
            yield names.EXPECTED, (by, queue), scores.jobs
            yield names.EXPECTED_ERROR, (by, queue), scores.mean_absolute_error
            yield names.EXPECTED_BIAS, (by, queue), scores.mean_error


def _members(tally: Tally) -> Samples:
    members = tally.members
    if members.decides is not None:
        yield names.MEMBER_DECIDES, (label(members.decides),), 1
    for standing in members.standings:
        yield names.MEMBER_WEIGHT, (label(standing.member),), standing.weight
        yield names.MEMBER_SLOWDOWN, (label(standing.member),), standing.slowdown


def _drifts(tally: Tally) -> Samples:
    """Yield whether each share is under alarm now: the cluster's shares, and all shares that ever were under alarm.

    Also yield the evidence of the cluster's shares.
    """
    held = tally.held
    of_cluster = held.watch.units["cluster"].get(None, {})
    failing: dict[tuple[str, str, str, int | None], bool] = {
        (of, what, "cluster", None): False for of, what, _ in of_cluster
    }
    failing |= {
        (episode.of, episode.what, episode.scope, episode.number): episode.until is None for episode in held.episodes
    }
    for (of, what, scope, number), fails in failing.items():
        whose = scope if number is None else f"{scope} {number}"
        yield names.DRIFTING, (of, label(what), whose), float(fails)
    for statistic, share in of_cluster.items():
        yield names.DRIFT_EVIDENCE, (statistic.of, label(statistic.what)), share.evidence


def _wait_bounds(tally: Tally, sampling: Sampling, time: int) -> Samples:
    """Yield the coverage of bounds. Bounds of queues beyond the first `MAX_QUEUES` are left out."""

    def labels(grouping: str, queue: int | None, quantile: float) -> tuple[str, str, str]:
        return label(grouping), ALL if queue is None else str(queue), f"{quantile:g}"

    shown = {ALL, *sampling.queues}
    for coverage in tally.coverage.scores():
        scope = labels(coverage.grouping, coverage.queue, coverage.quantile)
        if scope[1] in shown:
            yield names.BOUNDED, scope, coverage.predictions
            yield names.UNBOUNDED, scope, coverage.without
            yield names.COVERAGE, scope, coverage.coverage
            yield names.OVER_RMS, scope, coverage.over_rms

    for of, bound in sampling.bounds.items():
        if (scope := labels(*of))[1] in shown:
            yield names.WAIT_BOUND, scope, bound
    for of, (share, low, high) in sampling.coverage.items():
        if (scope := labels(*of))[1] in shown:
            yield names.RECENT_COVERAGE, scope, share
            yield names.BAND_LOW, scope, low
            yield names.BAND_HIGH, scope, high

    for grouping, queue, _ in sampling.bounds:
        name = ALL if queue is None else str(queue)
        if name in shown:
            yield names.CHANGE_POINTS, (label(grouping), name), sampling.change_points[grouping, queue]

    if sampling.interval == sampling.moment_of(time):
        for name, wait in sampling.started_waits.items():
            yield names.STARTED_WAIT, (name,), wait
