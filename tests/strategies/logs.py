"""Whole runs at random: how they open, changes of capacity, and logs that anything may stand in."""

from collections.abc import Sequence
from typing import get_args

from hypothesis import strategies as st

from shadowtime.shared.events import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
    SchedulingPoint,
)
from shadowtime.shared.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.testing.listed import specs

PROCESSORS = 8
FORECASTS = [f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")]

OPENINGS = st.builds(
    ClusterOpened,
    time=st.just(0),
    cluster=st.just("c"),
    processors=st.just(PROCESSORS),
    policy=st.sampled_from([*specs("policy"), *FORECASTS]),
    runtime=st.sampled_from(specs("runtime")),
    adjustment=st.sampled_from(specs("adjustment")),
    wait_bound=st.sampled_from(specs("wait-bound")),
    seed=st.integers(0, 9),
    sample_every=st.none() | st.integers(1, 20),
)


def capacity_changes(times: Sequence[int]) -> list[CapacityChanged]:
    """Return a machine that shrinks and grows back by turns at the given times."""
    sizes = [PROCESSORS // 2, PROCESSORS]
    return [CapacityChanged(time=time, processors=sizes[turn % 2]) for turn, time in enumerate(sorted(times))]


CHANGES = st.lists(st.integers(0, 60), max_size=2).map(lambda times: times * 2).map(capacity_changes)


def event_of(kind: int, time: int, number: int, processors: int, seconds: int, outcome: Outcome) -> Event:
    """Return one of all kinds of events that may stand within a log."""
    limit = seconds or None
    return (
        JobSubmitted(
            time=time,
            job_number=number,
            requested_processors=processors,
            requested_time=limit,
            user_id=seconds % 3 or None,
        ),
        JobStarted(time=time, job_number=number, processors=processors, limit=limit),
        JobEnded(time=time, job_number=number, run_time=seconds, outcome=outcome, requeued=seconds % 4 == 0),
        SchedulingPoint(time=time),
        CapacityChanged(time=time, processors=processors),
        Decided(time=time),
    )[kind]


def predicted(seconds: int) -> dict[str, object]:
    """Return what earlier stages may have added to an envelope."""
    run_time = RunTimePrediction(point=seconds / 2, observations=1) if seconds % 5 else None
    adjustment = WalltimeAdjustment(adjusted_time=seconds, observations=1) if seconds % 3 else None
    return {"run_time": run_time, "adjustment": adjustment}


EVENTS = st.tuples(
    st.sampled_from([0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 5]),
    st.sampled_from([0, 0, 0, 1, 7, -4]),  # seconds since the event before it
    st.integers(1, 6),
    st.integers(1, PROCESSORS + 1),
    st.integers(0, 20),
    st.sampled_from(get_args(Outcome)),
)


@st.composite
def wild_logs(draw: st.DrawFn) -> list[Envelope]:
    """Return logs that anything may stand in, also what earlier stages would never let through."""
    log, time = [Envelope(run="r", sequence=0, event=draw(OPENINGS))], 5
    for sequence, (kind, gap, number, processors, seconds, outcome) in enumerate(
        draw(st.lists(EVENTS, max_size=40)), 1
    ):
        time = max(time + gap, 0)
        event = event_of(kind, time, number, processors, seconds, outcome)
        log.append(Envelope(run="r", sequence=sequence, event=event).model_copy(update=predicted(seconds)))
    return log
