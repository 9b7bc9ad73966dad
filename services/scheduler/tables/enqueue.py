"""Entry of a job into the queue with its planning data, and removal of these data after the job has left for good."""

from collections.abc import Sequence

import numpy as np

from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.job_table import (
    ADJUSTED,
    NEVER,
    NUMBER,
    PREDICTED,
    REQUESTED,
    SLOT,
    START,
    Queue,
    planned_times,
)
from shadowtime.shared.distributions import BINS, EDGES, bin_of
from shadowtime.shared.messages import Envelope, JobSubmitted, RunTimeRevision, WalltimeAdjustment

# Reweighting of a run-time distribution by the probability that jobs end by their adjusted requests.


def reweighted(
    histogram: tuple[float, ...], requested_time: int, adjustment: WalltimeAdjustment | None
) -> tuple[float, ...]:
    """Return a histogram in which the end by the adjusted request has at least the probability of the percentile.

    A histogram with a higher probability is returned unchanged, and so is any histogram if the request is not adjusted.
    Otherwise the mass below the adjusted request is scaled to the percentile, and the mass above it to the remainder.
    The bin of the adjusted request is split in the logarithm of the run time. Its two parts are added up again, so the
    probability is exact only to within that bin. If there is no mass below, the bin of the adjusted request gets it. If
    there is no mass above, the bin of the request gets it. Both cases apply to a job without a histogram. O(bins).

    Parameters
    ----------
    histogram
        Probability of each bin of `shared.distributions.histogram`, from bin 0 on; empty without a prediction.
    requested_time
        Request in seconds.
    adjustment
        Adjusted request in seconds, and the percentile of earlier jobs that it stands for; None without an adjustment.

    >>> adjustment = WalltimeAdjustment(adjusted_time=10, observations=12, percentile=80)
    >>> np.round(reweighted((0.0, 0.25, 0.25, 0.0, 0.0, 0.0, 0.5), 30, adjustment), 3).tolist()
    [0.0, 0.4, 0.4, 0.0, 0.0, 0.0, 0.2]
    >>> np.round(reweighted((), 30, adjustment), 3).tolist()
    [0.0, 0.0, 0.0, 0.0, 0.8, 0.0, 0.2]
    """
    if adjustment is None or adjustment.percentile is None or adjustment.adjusted_time >= requested_time:
        return histogram
    probability, adjusted_time = adjustment.percentile / 100, float(adjustment.adjusted_time)
    masses = np.zeros(BINS)
    masses[: len(histogram)] = histogram
    at = bin_of(adjusted_time)
    share = 1.0 if at == 0 else float(np.log(adjusted_time / EDGES[at]) / np.log(EDGES[at + 1] / EDGES[at]))
    below = masses.copy()
    below[at] *= share
    below[at + 1 :] = 0.0
    above = masses - below
    if below.sum() >= probability * max(masses.sum(), 1e-9):
        return histogram
    if not below.any():
        below[at] = 1.0
    if not above.any():
        above[bin_of(float(requested_time))] = 1.0
    weighed = probability * below / below.sum() + (1.0 - probability) * above / above.sum()
    return tuple(weighed[: weighed.nonzero()[0][-1] + 1].tolist())


def enqueue(
    queue: Queue, job: JobSubmitted, envelope: Envelope, settings: PolicySettings, further: Sequence[int] = ()
) -> None:
    """Queue a job with its priority, prediction and adjusted request.

    Parameters
    ----------
    envelope
        Message about the job, with the prediction and the adjusted request that earlier stages added.
    settings
        Settings of the policy; they say how adjusted requests are used.
    further
        Amount of each resource beside processors that the job takes.

    >>> queue, job = Queue(), JobSubmitted(time=0, job_number=7, requested_processors=1, requested_time=60, priority=9)
    >>> enqueue(queue, job, Envelope(run="r", sequence=1, event=job), PolicySettings())
    >>> queue.job_number.tolist(), queue.predicted_time.tolist(), queue.priorities
    ([7], [60], {7: 9})
    """
    requested_time = NEVER if job.requested_time is None else job.requested_time
    prediction, adjustment = envelope.run_time, envelope.adjustment
    histogram = () if prediction is None else prediction.histogram
    if settings.distribution == "prior":
        histogram = reweighted(histogram, requested_time, adjustment)
        if adjustment is not None and adjustment.percentile is not None:
            queue.percentiles[job.job_number] = adjustment.percentile
    times = planned_times(requested_time, prediction, adjustment)
    if prediction is not None:
        _keep_fraction(queue, job.job_number, prediction.point, times.predicted_time)
    if job.priority is not None:
        queue.priorities[job.job_number] = job.priority
    slot = queue.histograms.add(histogram)
    queue.add((job.job_number, job.since, job.requested_processors, *times, slot, *further))


def _keep_fraction(queue: Queue, number: int, point: float, predicted_time: int) -> None:
    fraction = point - predicted_time
    if 0 < fraction < 1:
        queue.fractions[number] = fraction
    else:
        queue.fractions.pop(number, None)


def revised(queue: Queue, row: tuple[int, ...], revision: RunTimeRevision) -> tuple[int, ...]:
    """Return the row of a waiting or running job with a prediction that was made anew.

    The prediction counts as at least a second, at most the request, and at most the adjusted request where that
    applies. The distribution of the job, and the fraction of a second of its prediction, change in place. O(bins).

    >>> queue = Queue()
    >>> queue.add((7, 0, 1, 60, 50, 30, 30, -1))
    >>> revised(queue, queue.row(7), RunTimeRevision(job_number=7, point=55.5)), queue.fractions
    ((7, 0, 1, 60, 50, 55, 50, -1), {7: 0.5})
    """
    number, requested_time, adjusted_time = row[NUMBER], row[REQUESTED], row[ADJUSTED]
    predicted_time = min(max(int(revision.point), 1), requested_time)
    _keep_fraction(queue, number, revision.point, predicted_time)
    histogram = revision.histogram
    if histogram and (percentile := queue.percentiles.get(number)) is not None:
        adjustment = WalltimeAdjustment(adjusted_time=adjusted_time, observations=0, percentile=percentile)
        histogram = reweighted(histogram, requested_time, adjustment)
    slot = queue.histograms.replace(row[SLOT], histogram)
    return (*row[:PREDICTED], predicted_time, min(predicted_time, adjusted_time), slot, *row[START:])


def forget(queue: Queue, row: Sequence[int]) -> None:
    """Drop a job's data outside its row, such as its histogram, its priority and its prediction's fraction."""
    queue.histograms.remove(row[SLOT])
    queue.fractions.pop(row[NUMBER], None)
    queue.percentiles.pop(row[NUMBER], None)
    queue.priorities.pop(row[NUMBER], None)
