"""Jobs that come, wait, run and end, and a predictor that is told of them as its stage tells it."""

from typing import Any

import numpy as np
import orjson

from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.shared.messages.envelope import Event, JobEnded, JobStarted, JobSubmitted, JobWithdrawn
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.spec import parse

EVERY = 700
"""Seconds between two submissions."""


def happenings(count: int, changed_after: int | None = None) -> list[Event]:
    """Return what happens to so many jobs, in order of time; run times revealed after a time may be others."""
    events: list[Event] = []
    chance = np.random.default_rng(7)
    for number in range(count):
        submitted, user, size = EVERY * number, int(chance.integers(1, 5)), int(chance.integers(1, 4))
        run_time = 300 * user * size + int(chance.integers(0, 60))
        request = None if number % 17 == 0 else 4000
        started = submitted + 100
        ends = started + run_time
        if changed_after is not None and ends > changed_after:
            ends = max(changed_after + 1, started + 2 * run_time)
        job = JobSubmitted(
            time=submitted, job_number=number, requested_processors=size, requested_time=request, user_id=user
        )
        events.append(job)
        if number % 23 == 0:
            events.append(JobWithdrawn(time=submitted + 50, job_number=number))
            continue
        events.append(JobStarted(time=started, job_number=number, processors=size))
        events.append(JobEnded(time=ends, job_number=number, run_time=ends - started, requeued=number % 29 == 0))
    return sorted(events, key=lambda event: event.time)


class Followed:
    """A predictor that is told of events as its stage tells it, and what it predicted."""

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.predictor: Any = PREDICTORS.build(parse(spec))
        self.jobs: dict[int, JobSubmitted] = {}
        self.said: list[tuple[int, RunTimePrediction | None]] = []

    def follow(self, events: list[Event]) -> "Followed":
        for event in events:
            if isinstance(event, JobSubmitted):
                self.jobs[event.job_number] = event
                self.said.append((event.time, self.predictor.predict_one(event)))
            elif isinstance(event, JobEnded) and not event.requeued:
                self.predictor.learn_one(self.jobs[event.job_number], event.run_time)
            self.predictor.observe(event)
        return self

    def restarted(self) -> None:
        stored = self.stored()
        self.predictor = PREDICTORS.build(parse(self.spec))
        self.predictor.restore(orjson.loads(stored))

    def stored(self) -> bytes:
        return orjson.dumps(self.predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)


def restarted_at(ends: tuple[int, ...], spec: str, events: list[Event]) -> tuple[Followed, Followed]:
    """Return a predictor that saw events in one go, and one that was restarted after each of these and at the end."""
    whole, cut = Followed(spec).follow(events), Followed(spec)
    at = 0
    for end in (*ends, len(events)):
        cut.follow(events[at:end])
        cut.restarted()
        at = end
    return whole, cut
