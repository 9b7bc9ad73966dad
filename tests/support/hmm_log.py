"""A log for the hidden Markov model, and how its predictor is told of it."""

from collections.abc import Sequence

import numpy as np

from shadowtime.services.runtime_distribution.hmm.predictor import SLICE, WEEK, Hmm
from shadowtime.shared.messages.envelope import Event, JobEnded, JobStarted, JobSubmitted

HORIZON = 2 * WEEK  # slices, within the smallest history


def submitted(time: int, number: int = 1) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=360_000, user_id=1)


def log(seed: int, jobs: int, horizon: int = HORIZON) -> list[Event]:
    """Return a random log: jobs of two kinds by turns of 6 hours, some waiting long, some never ending."""
    chance = np.random.default_rng(seed)
    events: list[Event] = []
    for number, time in enumerate(np.sort(chance.integers(0, horizon * SLICE, jobs)).tolist()):
        begin = time + int(chance.exponential(3000))
        run_time = int(chance.lognormal(4 if time // 21_600 % 2 else 9, 0.7))
        events.append(submitted(time, number))
        events.append(JobStarted(time=begin, job_number=number, processors=1))
        events.append(JobEnded(time=begin + run_time, job_number=number, run_time=run_time))
    order = sorted(events, key=lambda event: event.time)  # stable: a job's own events keep their order
    return [event for event in order if event.time < horizon * SLICE]


def play(predictor: Hmm, events: Sequence[Event], told: int = 0) -> None:
    """Tell events as the stage does, all but those told already."""
    jobs = {event.job_number: event for event in events if isinstance(event, JobSubmitted)}
    for event in events[told:]:
        if isinstance(event, JobEnded):
            predictor.learn_one(jobs[event.job_number], event.run_time)
        predictor.observe(event)
