"""Events and envelopes of every kind, drawn at random."""

from typing import Any, get_args

from hypothesis import strategies as st

from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterClosed,
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
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import WaitForecast
from tests.support.strategies.decisions import EVALUATED, KILLS, STARTS
from tests.support.strategies.numbers import COUNTS, LABELS, SIZES, SPANS, TIMES, WORDS, some
from tests.support.strategies.predictions import ADJUSTMENTS, BOUNDS, CHANGE_POINTS, COVERAGES, DRIFTS, PREDICTIONS
from tests.support.strategies.scores import SCORES

LATE = st.none() | TIMES

EVENT_TYPES: tuple[type[Event], ...] = get_args(Event)

BY_TYPE: dict[type[Any], st.SearchStrategy[Any]] = {
    ClusterOpened: st.builds(
        ClusterOpened,
        time=TIMES,
        cluster=WORDS,
        processors=SIZES,
        mode=st.sampled_from(["closed", "recorded"]),
        policy=WORDS,
        runtime=WORDS,
        adjustment=WORDS,
        wait_bound=WORDS,
        seed=COUNTS,
    ),
    JobSubmitted: st.builds(
        JobSubmitted,
        time=TIMES,
        job_number=COUNTS,
        requested_processors=SIZES,
        requested_time=st.none() | SIZES,
        user_id=LABELS,
        group_id=LABELS,
        executable_number=LABELS,
        queue_number=LABELS,
        partition_number=LABELS,
        restartable=st.booleans(),
        moldable=st.booleans(),
        submit_time=st.none() | TIMES,
        eligible_time=st.none() | TIMES,
        priority=st.none() | COUNTS,
        blocked=st.none() | st.just(True),
    ),
    JobWithdrawn: st.builds(
        JobWithdrawn, time=TIMES, job_number=COUNTS, reason=st.sampled_from(["cancelled", "held"]), happened=LATE
    ),
    JobChanged: st.builds(
        JobChanged,
        time=TIMES,
        job_number=COUNTS,
        requested_processors=st.none() | SIZES,
        requested_time=st.none() | SIZES,
        user_id=LABELS,
        group_id=LABELS,
        queue_number=LABELS,
        partition_number=LABELS,
        priority=st.none() | COUNTS,
        blocked=st.none() | st.booleans(),
        happened=LATE,
    ),
    JobExpected: st.builds(JobExpected, time=TIMES, job_number=COUNTS, start=TIMES, happened=LATE),
    JobStarted: st.builds(
        JobStarted, time=TIMES, job_number=COUNTS, processors=SIZES, limit=st.none() | SIZES, happened=LATE
    ),
    JobSuspended: st.builds(JobSuspended, time=TIMES, job_number=COUNTS, happened=LATE),
    JobResumed: st.builds(JobResumed, time=TIMES, job_number=COUNTS, happened=LATE),
    JobEnded: st.builds(
        JobEnded,
        time=TIMES,
        job_number=COUNTS,
        run_time=SPANS,
        outcome=st.sampled_from(get_args(Outcome)),
        requeued=st.booleans(),
        happened=LATE,
    ),
    CapacityChanged: st.builds(CapacityChanged, time=TIMES, processors=SIZES),
    SchedulingPoint: st.builds(SchedulingPoint, time=TIMES),
    Decided: st.builds(
        Decided,
        time=TIMES,
        starts=some(STARTS),
        kills=some(KILLS),
        evaluated=some(EVALUATED),
    ),
    Rejected: st.builds(Rejected, time=TIMES, reason=WORDS),
    ClusterClosed: st.builds(ClusterClosed, time=TIMES),
}


def envelopes(event_type: type[Any]) -> st.SearchStrategy[Envelope]:
    """Return envelopes of events of one type, with and without what stages add."""
    return st.builds(
        Envelope,
        run=st.text(min_size=1, max_size=20),
        cluster=WORDS,
        sequence=COUNTS,
        event=BY_TYPE[event_type],
        run_time=st.none() | PREDICTIONS,
        adjustment=st.none() | ADJUSTMENTS,
        wait_bounds=some(BOUNDS),
        forecast=st.none()
        | st.builds(
            WaitForecast,
            wait=st.none() | SPANS,
            reason=st.none() | WORDS,
            starts_within=st.none() | some(st.tuples(st.floats(0, 1), SPANS)),
        ),
        coverage=some(COVERAGES),
        change_points=some(CHANGE_POINTS),
        drifts=st.none() | some(DRIFTS),
        scores=st.none() | SCORES,
    )
