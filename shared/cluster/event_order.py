"""The order of events at one instant, for every source (docs/algorithms.md#order-of-events-at-an-instant).

What has ended or stopped frees its processors before anything else, so that the scheduler sees them; then who leaves
the queue, leaves, the machine takes on its new size, what stopped goes on, what changes, changes, who arrives,
arrives, and the site's own scheduler says what it expects of who waits. The scheduling point follows what the scheduler
is to know, and starts follow the scheduling point. Events of one kind keep the order in which they are given. What a
decision itself causes, kills and then starts, is told after its instant, as it was decided.
"""

from collections.abc import Iterable

from shadowtime.shared.messages import (
    CapacityChanged,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)

EVENT_ORDER = (
    JobEnded,
    JobSuspended,
    JobWithdrawn,
    CapacityChanged,
    JobResumed,
    JobChanged,
    JobSubmitted,
    JobExpected,
    SchedulingPoint,
    JobStarted,
)

PLACE: dict[type, int] = {kind: place for place, kind in enumerate(EVENT_ORDER)}
"""The place of each kind of event in it."""


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return the events of one instant in the order in which they are told.

    >>> submitted = JobSubmitted(time=5, job_number=1, requested_processors=1, requested_time=60)
    >>> ended = JobEnded(time=5, job_number=2, run_time=3, outcome="completed")
    >>> [value.kind for value in in_order([SchedulingPoint(time=5), submitted, ended])]
    ['JobEnded', 'JobSubmitted', 'SchedulingPoint']
    """
    return sorted(events, key=lambda event: PLACE[type(event)])
