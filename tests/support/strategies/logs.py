"""Whole runs at random: how they open, changes of capacity, and logs that anything may stand in."""

from collections.abc import Callable, Sequence
from typing import get_args

from hypothesis import strategies as st

from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.shared.cluster.event_order import in_order
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Outcome,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.messages.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.testing.listed import specs
from shadowtime.testing.workloads import workloads

PROCESSORS = 8
TWO_POOLS = (Pool(name="cpu", processors=5, memory=12), Pool(name="gpu", processors=3, gpus=2))
FORECASTS = [f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")]
FORECASTS += ["easy:forecast=sampled", "easy:forecast=calibrated", "probabilistic:forecast=calibrated"]
BY_PRIORITY = ["easy:queue=priority", "conservative:queue=priority", "probabilistic:queue=priority,tau=0.5"]

OPENINGS = st.builds(
    ClusterOpened,
    time=st.just(0),
    cluster=st.just("c"),
    processors=st.just(PROCESSORS),
    policy=st.sampled_from([*specs("policy"), *FORECASTS, *BY_PRIORITY]),
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
    late = time - seconds // 2 if seconds % 7 == 1 else None  # told after its instant
    return (
        JobSubmitted(
            time=time,
            job_number=number,
            requested_processors=processors,
            requested_time=limit,
            user_id=seconds % 3 or None,
            queue_number=seconds % 2 or None,
            submit_time=late and late - 1,
            eligible_time=late,
            pool=1 if seconds % 6 == 1 else None,
            memory=seconds if seconds % 4 else None,
            gpus=seconds % 5 or None,
            priority=seconds if seconds % 3 else None,
            blocked=True if seconds % 9 == 1 else None,
        ),
        JobStarted(time=time, job_number=number, processors=processors, limit=limit, happened=late),
        JobEnded(
            time=time, job_number=number, run_time=seconds, outcome=outcome, requeued=seconds % 4 == 0, happened=late
        ),
        SchedulingPoint(time=time),
        CapacityChanged(time=time, processors=processors, pool=seconds % 2, memory=seconds, gpus=seconds % 3),
        Decided(time=time),
        JobWithdrawn(time=time, job_number=number, reason="held" if seconds % 2 else "cancelled", happened=late),
        JobChanged(time=time, job_number=number, priority=seconds, happened=late)
        if seconds % 10 == 4
        else JobChanged(
            time=time,
            job_number=number,
            requested_processors=processors if seconds % 3 else None,
            requested_time=limit,
            queue_number=processors if seconds % 5 == 0 else None,
            pool=seconds % 2 if seconds % 8 < 3 else None,
            memory=processors if seconds % 3 else None,
            priority=seconds if seconds % 4 else None,
            blocked=seconds % 2 == 0 if seconds % 5 < 3 else None,
            happened=late,
        ),
        JobSuspended(time=time, job_number=number, happened=late),
        JobResumed(time=time, job_number=number, happened=late),
        JobExpected(time=time, job_number=number, start=time + 5 * (seconds - 7), happened=late),
    )[kind]


def predicted(seconds: int) -> dict[str, object]:
    """Return what earlier stages may have added to an envelope."""
    run_time = RunTimePrediction(point=seconds / 2, observations=1) if seconds % 5 else None
    adjustment = WalltimeAdjustment(adjusted_time=seconds, observations=1) if seconds % 3 else None
    return {"run_time": run_time, "adjustment": adjustment}


EVENTS = st.tuples(
    st.sampled_from([0, 0, 0, 0, 1, 1, 1, 2, 2, 3, 3, 4, 5, 6, 7, 7, 8, 8, 9, 9, 10, 10]),
    st.sampled_from([0, 0, 0, 1, 7, -4]),  # seconds since the event before it
    st.integers(1, 6),
    st.integers(1, PROCESSORS + 1),
    st.integers(0, 20),
    st.sampled_from(get_args(Outcome)),
)


@st.composite
def wild_logs(draw: st.DrawFn) -> list[Envelope]:
    """Return logs that anything may stand in, also what earlier stages would never let through."""
    pools = draw(st.sampled_from([None, None, TWO_POOLS]))
    opened = draw(OPENINGS).model_copy(update={"pools": pools})
    log, time = [Envelope(run="r", sequence=0, event=opened)], 5
    for sequence, (kind, gap, number, processors, seconds, outcome) in enumerate(
        draw(st.lists(EVENTS, max_size=40)), 1
    ):
        time = max(time + gap, 0)
        event = event_of(kind, time, number, processors, seconds, outcome)
        log.append(Envelope(run="r", sequence=sequence, event=event).model_copy(update=predicted(seconds)))
    return log


def eventful(events: Sequence[Event], draw: Callable[[int], int]) -> list[Event]:
    """Return a recorded log with everything that real clusters do to its jobs, and say of them.

    A job is told at once or late, and may be cancelled while it waits, held and released, blocked for a while or for
    longer than the machine knows, changed while it waits or runs, or suspended while it runs. Of every second one the
    site says at first and at last when it expects it to start.

    Parameters
    ----------
    events
        All of the log in order, without its scheduling points.
    draw
        Returns a number from 0 up to one less than it is given.
    """
    lives: dict[int, dict[str, Event]] = {}
    told: dict[int, list[Event]] = {}

    def tell(*happening: Event) -> None:
        for each in happening:
            told.setdefault(each.time, []).append(each)

    for event in events:
        if isinstance(event, JobSubmitted | JobStarted | JobEnded):
            lives.setdefault(event.job_number, {})[event.kind] = event
        else:
            tell(event)
    for number, life in lives.items():
        submitted, started, ended = life["JobSubmitted"], life["JobStarted"], life["JobEnded"]
        assert isinstance(submitted, JobSubmitted)
        assert isinstance(started, JobStarted)
        assert isinstance(ended, JobEnded)
        first, begin, end = submitted.time, started.time, ended.time
        fate = draw(8)
        if fate == 0 and begin > first + 1:  # told late
            submitted = submitted.model_copy(update={"time": first + 1, "eligible_time": first})
            started = started.model_copy(update={"time": begin + 1, "happened": begin})
            ended = ended.model_copy(update={"time": end + 2, "happened": end})
        elif fate == 1 and begin > first:
            tell(submitted, JobWithdrawn(time=begin, job_number=number))
            continue
        elif fate == 2 and begin > first + 2:
            back = {"time": begin - 1, "submit_time": first}
            tell(submitted, JobWithdrawn(time=first + 1, job_number=number, reason="held"))
            submitted = submitted.model_copy(update=back)
        elif fate == 3 and begin > first + 1:
            tell(JobChanged(time=first + 1, job_number=number, requested_time=draw(50) + 1, queue_number=draw(3)))
        elif fate == 4 and end > begin + 3:
            stopped = [JobSuspended(time=begin + 1, job_number=number)]
            goes_on = [JobResumed(time=end - 1, job_number=number)] if draw(2) else []
            tell(*stopped, *goes_on)
            ended = ended.model_copy(update={"run_time": 1 + len(goes_on)})
        elif fate == 5 and end > begin + 1:
            tell(JobChanged(time=begin + 1, job_number=number, requested_time=draw(50) + 1, requested_processors=1))
        elif fate == 6 and begin > first + 2:
            tell(JobChanged(time=first + 1, job_number=number, priority=draw(5), blocked=draw(2) == 0))
            if draw(2):
                tell(JobChanged(time=begin - 1, job_number=number, blocked=False))
        elif fate == 7:
            submitted = submitted.model_copy(update={"priority": draw(5), "blocked": True if draw(2) else None})
            if begin > first + 1:
                tell(JobChanged(time=first + 1, job_number=number, priority=draw(5)))
        tell(submitted, started, ended)
        if number % 2:
            guess, since = begin + number % 5 - 2, submitted.since
            tell(JobExpected(time=submitted.time, job_number=number, start=end))
            tell(JobExpected(time=started.time, job_number=number, start=guess, happened=max(since, begin - 1)))
    log: list[Event] = []
    for time in sorted(told):
        log.extend(in_order([*told[time], SchedulingPoint(time=time)]))
    return log


@st.composite
def eventful_logs(draw: st.DrawFn) -> tuple[ClusterOpened, list[Event]]:
    """Return how a run opens, and its log, with everything that real clusters do to jobs."""
    jobs, changes = draw(workloads(processors=PROCESSORS, waits=True)), draw(CHANGES)
    source, events = Recorded(jobs, changes), list[Event]()
    while instant := source.next_instant():
        events.extend(each for each in instant if not isinstance(each, SchedulingPoint))
    draws = draw(st.randoms(use_true_random=False))
    opened = draw(OPENINGS).model_copy(update={"mode": "recorded"})
    return opened, eventful(events, draws.randrange)
