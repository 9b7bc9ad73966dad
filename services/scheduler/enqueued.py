"""How a job enters the queue, with what it is planned with, and how that is forgotten once it has left for good."""

from collections.abc import Sequence

from shadowtime.services.scheduler.adjusted_prior import reweighted
from shadowtime.services.scheduler.adjusted_times import planned_times
from shadowtime.services.scheduler.job_table import NEVER, NUMBER, SLOT, Queue
from shadowtime.services.scheduler.policy_settings import PolicySettings
from shadowtime.shared.events import Envelope, JobSubmitted


def enqueue(
    queue: Queue, job: JobSubmitted, told: Envelope, settings: PolicySettings, further: Sequence[int] = ()
) -> None:
    """Queue a job with its priority, what is predicted of it and its adjusted request.

    Parameters
    ----------
    told
        What the stages before have said of the job.
    settings
        What the policy makes of adjusted requests.
    further
        What the job takes of each resource beside processors.

    >>> queue, job = Queue(), JobSubmitted(time=0, job_number=7, requested_processors=1, requested_time=60, priority=9)
    >>> enqueue(queue, job, Envelope(run="r", sequence=1, event=job), PolicySettings())
    >>> queue.job_number.tolist(), queue.predicted_time.tolist(), queue.priorities
    ([7], [60], {7: 9})
    """
    requested_time = NEVER if job.requested_time is None else job.requested_time
    prediction, adjustment = told.run_time, told.adjustment
    histogram = () if prediction is None else prediction.histogram
    if settings.distribution == "prior":
        histogram = reweighted(histogram, requested_time, adjustment)
    times = planned_times(requested_time, prediction, adjustment)
    if prediction is not None and (fraction := prediction.point - times.predicted_time) > 0 and fraction < 1:
        queue.fractions[job.job_number] = fraction
    if job.priority is not None:
        queue.priorities[job.job_number] = job.priority
    slot = queue.histograms.add(histogram)
    queue.add((job.job_number, job.since, job.requested_processors, *times, slot, *further))


def forget(queue: Queue, row: Sequence[int]) -> None:
    """Let go of what was known of a job, whose row was this, beside its row."""
    queue.histograms.remove(row[SLOT])
    queue.fractions.pop(row[NUMBER], None)
    queue.priorities.pop(row[NUMBER], None)
