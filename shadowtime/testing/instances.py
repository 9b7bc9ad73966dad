"""Random scheduling instances as plain lists, and their conversion to the tables that policies read."""

from random import Random
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from shadowtime.services.scheduler import NEVER, Histograms, PlannedTimes, PolicySettings, Queue, Running


class WaitingJob(NamedTuple):
    """A row of the queue. Times are in seconds. An adjusted time of None stands for the request."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    histogram: tuple[float, ...] = ()
    adjusted_time: int | None = None


class StartedJob(NamedTuple):
    """A row of the running jobs. Times are in seconds. An adjusted time of None stands for the request."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    start_time: int
    histogram: tuple[float, ...] = ()
    adjusted_time: int | None = None


def times_of(job: WaitingJob | StartedJob) -> PlannedTimes:
    """Return the planned times of a job, as in its row of a table."""
    adjusted_time = job.requested_time if job.adjusted_time is None else job.adjusted_time
    predicted_time = job.predicted_time
    return PlannedTimes(job.requested_time, adjusted_time, predicted_time, min(predicted_time, adjusted_time))


UNUSED = PolicySettings(adjust_queue=False, adjust_candidates=False, distribution="ignore")
"""Settings under which adjusted requests are not used."""


class Instance(NamedTuple):
    """The input of one scheduling pass: the waiting and running jobs in order of (submit time, job number)."""

    now: int
    free: int
    queue: list[WaitingJob]
    running: list[StartedJob]
    corrections: tuple[int, ...]
    uses: PolicySettings = UNUSED

    def tables(self) -> tuple[Queue, Running]:
        """Return the instance as tables."""
        histograms = Histograms()
        queue, running = Queue(histograms, self.uses), Running(self.corrections, histograms, self.uses)
        for waiting in self.queue:
            queue.add((*waiting[:3], *times_of(waiting), histograms.add(waiting.histogram)))
        for job in self.running:
            running.add((*job[:3], *times_of(job), histograms.add(job.histogram), job.start_time))
        return queue, running

    def on_requests(self) -> "Instance":
        """Return the instance without predictions and without adjusted requests."""
        return self._replace(
            queue=[job._replace(predicted_time=job.requested_time) for job in self.queue],
            running=[job._replace(predicted_time=job.requested_time) for job in self.running],
            uses=UNUSED,
        )


def contents(queue: Queue, running: Running) -> list[list[float]]:
    """Return a copy of the contents of both tables."""
    rows = [*queue.snapshot(), *running.snapshot()]
    columns = [running.corrections, *queue.histograms.masses.tolist()]
    return [*rows, *(np.asarray(column).tolist() for column in columns)]


TIMES = range(1, 31)
REQUESTED = st.sampled_from([*TIMES, *15 * (400, NEVER)])
CUT = st.sampled_from([*30 * (None,), *TIMES])
"""Upper limit of a prediction or an adjusted request. Half of the time there is none."""

MASSES = (0.0, 1.0, 0.5, 0.25, 0.1, 0.0)


def as_histogram(code: int) -> tuple[float, ...]:
    """Return up to nine shares that add up to 1, encoded in the digits of a number; none if all digits stand for 0."""
    code, more = divmod(code, 9)
    masses = [MASSES[code // 6**place % 6] for place in range(1 + more)]
    return tuple(mass / sum(masses) for mass in masses) if any(masses) else ()


HISTOGRAMS = st.just(()) | st.integers(0, 9 * 6**9 - 1).map(as_histogram)
"""Distributions of run times up to two minutes; often none."""

USES = st.one_of(
    st.just(UNUSED),
    st.builds(
        PolicySettings,
        adjust_queue=st.booleans(),
        adjust_candidates=st.booleans(),
        running=st.booleans(),
        distribution=st.sampled_from(["ignore", "limit"]),
    ),
)
"""Uses of adjusted requests; half of the time none. There is no prior, because it is applied before an instance."""


FREE = st.integers(-3, 12)
CORRECTIONS = st.sampled_from([(), (2, 5, 9), (60, 300, 900)])
SECONDS = st.integers(0, 60)
WAITING = st.tuples(REQUESTED, CUT, CUT, SECONDS, st.integers(1, 8), HISTOGRAMS)
RUNNING = st.tuples(REQUESTED, CUT, CUT, SECONDS, SECONDS, st.integers(1, 6), HISTOGRAMS)


@st.composite
def instances(draw: st.DrawFn, max_waiting: int = 8, max_running: int = 6) -> Instance:
    """Return a random instance in which few jobs fit.

    Instances have small machines, many ties, missing requests, exceeded predictions and adjusted requests. Drawing
    dominates the cost of an example. So only few numbers are drawn, from strategies that are built once.
    """
    now, mixed = draw(SECONDS), draw(st.integers(0, 999))
    numbers = list(range(1, max_waiting + max_running + 1))
    if mixed:
        Random(mixed).shuffle(numbers)

    queue = []
    for number, (requested, predicted, adjusted, submitted, size, histogram) in zip(
        numbers, draw(st.lists(WAITING, max_size=max_waiting)), strict=False
    ):
        times = requested, min(predicted or requested, requested)
        cut = adjusted and min(adjusted, requested)
        queue.append(WaitingJob(number, submitted % (now + 1), size, *times, histogram, cut))

    running = []
    for number, (requested, predicted, adjusted, started, submitted, size, histogram) in zip(
        numbers[max_waiting:], draw(st.lists(RUNNING, max_size=max_running)), strict=False
    ):
        start_time = started % (now + 1)
        times = requested, min(predicted or requested, requested)
        cut = adjusted and min(adjusted, requested)
        running.append(StartedJob(number, submitted % (start_time + 1), size, *times, start_time, histogram, cut))

    return Instance(
        now,
        draw(FREE),
        sorted(queue, key=lambda job: (job.submit_time, job.job_number)),
        sorted(running, key=lambda job: (job.submit_time, job.job_number)),
        draw(CORRECTIONS),
        draw(USES),
    )
