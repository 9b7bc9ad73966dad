"""A run on a full machine with so many waiting jobs."""

from collections.abc import Iterator
from itertools import count
from typing import Any

from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitBound, WaitForecast, WalltimeAdjustment
from shadowtime.shared.messages.reasons import Backfilled

PROCESSORS = 1_024


RUNNING = 128


SECONDS_BETWEEN = 60
"""Of the log, between two updates."""


def full_machine(waiting: int) -> Iterator[list[Envelope]]:
    """Yield the beginning of a run with so many waiting jobs, then for ever what one update tells.

    At each a job ends, one is submitted, and one that waits is started.
    """
    numbers, sequences = count(1), count()

    def told(event: Event, **added: Any) -> Envelope:
        envelope = Envelope(run="full", cluster="full", sequence=next(sequences), event=event)
        return envelope.model_copy(update=added) if added else envelope

    def submitted(time: int) -> Envelope:
        number = next(numbers)
        asks = 3_600 * (1 + number % 24)
        job = JobSubmitted(
            time=time, job_number=number, requested_processors=8, requested_time=asks, user_id=number % 97
        )
        bound = WaitBound(
            grouping="ensemble", quantile=0.95, confidence=0.95, bound=900_000, starts_within=((0.9, 600_000),)
        )
        return told(
            job,
            run_time=RunTimePrediction(point=asks / 2, observations=9),
            adjustment=WalltimeAdjustment(adjusted_time=asks * 3 // 4, observations=9, key="user"),
            wait_bounds=(bound,),
            forecast=WaitForecast(wait=500_000),
        )

    def started(time: int, number: int) -> list[Envelope]:
        reason = Backfilled(head=max(1, number - 1), extra_processors=0, shadow_time=time, ends_by_shadow_time=True)
        start = Start(job_number=number, processors=8, reason=reason)
        return [told(Decided(time=time, starts=(start,))), told(JobStarted(time=time, job_number=number, processors=8))]

    beginning = [told(ClusterOpened(time=0, cluster="full", processors=PROCESSORS, name="easy"))]
    beginning += [submitted(0) for _ in range(waiting + RUNNING)]
    beginning += [each for number in range(1, RUNNING + 1) for each in started(0, number)]
    yield beginning
    for ended in count(1):
        time = ended * SECONDS_BETWEEN
        end = told(JobEnded(time=time, job_number=ended, run_time=SECONDS_BETWEEN))
        yield [end, submitted(time), *started(time, ended + RUNNING)]
