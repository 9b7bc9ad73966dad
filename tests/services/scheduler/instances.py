"""Scheduling instances as plain lists, drawn at random, and the tables that policies take."""

from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from services.scheduler.job_table import NEVER, Histograms, Queue, Running


class WaitingJob(NamedTuple):
    """A row of the queue; times in seconds."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    histogram: tuple[float, ...] = ()


class StartedJob(NamedTuple):
    """A row of the running jobs; times in seconds."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    predicted_time: int
    start_time: int
    histogram: tuple[float, ...] = ()


class Instance(NamedTuple):
    """What a policy is asked: the waiting and running jobs in order of (submit time, job number)."""

    now: int
    free: int
    queue: list[WaitingJob]
    running: list[StartedJob]
    corrections: tuple[int, ...]

    def tables(self) -> tuple[Queue, Running]:
        """Return the same as tables."""
        histograms = Histograms()
        queue, running = Queue(histograms), Running(self.corrections, histograms)
        for *row, histogram in self.queue:
            queue.add((*row, histograms.add(histogram)))
        for *row, start_time, histogram in self.running:
            running.add((*row, histograms.add(histogram), start_time))
        return queue, running


def contents(queue: Queue, running: Running) -> list[list[float]]:
    """Return copies of all columns of both tables."""
    columns = [
        *(queue.job_number, queue.submit_time, queue.processors, queue.requested_time, queue.predicted_time),
        *(running.job_number, running.submit_time, running.processors, running.requested_time),
        *(running.predicted_time, running.start_time, running.corrections, queue.slot, running.slot),
        *queue.histograms.masses.tolist(),
    ]
    return [np.asarray(column).tolist() for column in columns]


TIMES = st.integers(1, 30)
PREDICTIONS = st.tuples(TIMES, st.one_of(TIMES, TIMES, st.just(NEVER)), st.booleans()).map(
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


@st.composite
def instances(draw: st.DrawFn, max_waiting: int = 8, max_running: int = 6) -> Instance:
    """Return instances in which little fits: small machines, many ties, missing requests, outlived predictions."""
    now = draw(st.integers(0, 60))
    numbers = draw(st.permutations(range(1, max_waiting + max_running + 1)))
    queue = [
        WaitingJob(number, draw(st.integers(0, now)), draw(st.integers(1, 8)), requested, predicted, draw(HISTOGRAMS))
        for number, (predicted, requested) in zip(
            numbers, draw(st.lists(PREDICTIONS, max_size=max_waiting)), strict=False
        )
    ]
    running = []
    for number, (predicted, requested) in zip(
        numbers[max_waiting:], draw(st.lists(PREDICTIONS, max_size=max_running)), strict=False
    ):
        start_time = draw(st.integers(0, now))
        submit_time = draw(st.integers(0, start_time))
        size, histogram = draw(st.integers(1, 6)), draw(HISTOGRAMS)
        running.append(StartedJob(number, submit_time, size, requested, predicted, start_time, histogram))
    return Instance(
        now,
        draw(st.integers(-3, 12)),
        sorted(queue, key=lambda job: (job.submit_time, job.job_number)),
        sorted(running, key=lambda job: (job.submit_time, job.job_number)),
        draw(st.sampled_from([(), (2, 5, 9), (60, 300, 900)])),
    )
