"""Scheduling instances as plain lists, drawn at random, and the tables that policies take."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from shadowtime.services.scheduler.adjusted_times import PlannedTimes
from shadowtime.services.scheduler.histograms import Histograms
from shadowtime.services.scheduler.job_table import NEVER, Queue, Running
from shadowtime.services.scheduler.policy_settings import PolicySettings


class WaitingJob(NamedTuple):
    """A row of the queue; times in seconds; an adjusted time of None stands for the request."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    histogram: tuple[float, ...] = ()
    adjusted_time: int | None = None


class StartedJob(NamedTuple):
    """A row of the running jobs; times in seconds; an adjusted time of None stands for the request."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    start_time: int
    histogram: tuple[float, ...] = ()
    adjusted_time: int | None = None


def times_of(job: WaitingJob | StartedJob) -> PlannedTimes:
    """Return the times of a job as its row has them."""
    adjusted_time = job.requested_time if job.adjusted_time is None else job.adjusted_time
    predicted_time = job.predicted_time
    return PlannedTimes(job.requested_time, adjusted_time, predicted_time, min(predicted_time, adjusted_time))


UNUSED = PolicySettings(queue=False, candidates=False, distribution="ignore")
"""Nothing is made of adjusted requests."""


class Instance(NamedTuple):
    """What a policy is asked: the waiting and running jobs in order of (submit time, job number)."""

    now: int
    free: int
    queue: list[WaitingJob]
    running: list[StartedJob]
    corrections: tuple[int, ...]
    uses: PolicySettings = UNUSED

    def tables(self) -> tuple[Queue, Running]:
        """Return the same as tables."""
        histograms = Histograms()
        queue, running = Queue(histograms, self.uses), Running(self.corrections, histograms, self.uses)
        for each in self.queue:
            queue.add((*each[:3], *times_of(each), histograms.add(each.histogram)))
        for job in self.running:
            running.add((*job[:3], *times_of(job), histograms.add(job.histogram), job.start_time))
        return queue, running

    def on_requests(self) -> "Instance":
        """Return the same with nothing predicted and nothing adjusted."""
        return self._replace(
            queue=[each._replace(predicted_time=each.requested_time) for each in self.queue],
            running=[each._replace(predicted_time=each.requested_time) for each in self.running],
            uses=UNUSED,
        )


def contents(queue: Queue, running: Running) -> list[list[float]]:
    """Return copies of all that is in both tables."""
    rows = [*queue.snapshot(), *running.snapshot()]
    columns = [running.corrections, *queue.histograms.masses.tolist()]
    return [*rows, *(np.asarray(column).tolist() for column in columns)]


TIMES = st.integers(1, 30)
PREDICTIONS = st.tuples(TIMES, st.one_of(TIMES, TIMES, st.sampled_from([400, NEVER])), st.booleans()).map(
    lambda drawn: (drawn[1] if drawn[2] else min(drawn[:2]), drawn[1])
)
"""Predicted and requested time: the prediction is at most the request, and half the time equal to it."""


HISTOGRAMS = st.one_of(
    st.just(()),
    st.lists(st.sampled_from([0.0, 0.0, 0.1, 0.25, 0.5, 1.0]), min_size=1, max_size=9)
    .filter(any)
    .map(lambda masses: tuple(mass / sum(masses) for mass in masses)),
)
"""Distributions of run times up to a minute; often none."""

USES = st.one_of(
    st.just(UNUSED),
    st.builds(
        PolicySettings,
        queue=st.booleans(),
        candidates=st.booleans(),
        running=st.booleans(),
        distribution=st.sampled_from(["ignore", "limit"]),
    ),
)
"""What is made of adjusted requests; half the time nothing. A prior is weighed before there is an instance."""


@st.composite
def instances(draw: st.DrawFn, max_waiting: int = 8, max_running: int = 6) -> Instance:
    """Return instances in which little fits.

    Small machines, many ties, missing requests, outlived predictions and adjusted requests.
    """
    now = draw(st.integers(0, 60))
    numbers = draw(st.permutations(range(1, max_waiting + max_running + 1)))

    def adjusted(requested: int) -> int | None:
        return draw(st.none() | TIMES.map(lambda time: min(time, requested)))

    queue = []
    for number, (predicted, requested) in zip(numbers, draw(st.lists(PREDICTIONS, max_size=max_waiting)), strict=False):
        submit_time, size, histogram = draw(st.integers(0, now)), draw(st.integers(1, 8)), draw(HISTOGRAMS)
        queue.append(WaitingJob(number, submit_time, size, requested, predicted, histogram, adjusted(requested)))
    running = []
    for number, (predicted, requested) in zip(
        numbers[max_waiting:], draw(st.lists(PREDICTIONS, max_size=max_running)), strict=False
    ):
        start_time = draw(st.integers(0, now))
        submit_time = draw(st.integers(0, start_time))
        size, histogram = draw(st.integers(1, 6)), draw(HISTOGRAMS)
        job = StartedJob(number, submit_time, size, requested, predicted, start_time, histogram, adjusted(requested))
        running.append(job)
    return Instance(
        now,
        draw(st.integers(-3, 12)),
        sorted(queue, key=lambda job: (job.submit_time, job.job_number)),
        sorted(running, key=lambda job: (job.submit_time, job.job_number)),
        draw(st.sampled_from([(), (2, 5, 9), (60, 300, 900)])),
        draw(USES),
    )
