"""The order of events at one instant, for every source (docs/algorithms.md#order-of-events-at-an-instant).

Jobs that end or are suspended free their processors first, so that the scheduler sees them as free. Then jobs are
withdrawn, the machine's capacity changes, suspended jobs resume, jobs change, and new jobs are submitted. Expectations
of the site's own scheduler come next. The scheduling point comes after all these events, so that the scheduler knows
them. Starts come after the scheduling point. Events of one kind keep their given order. The effects of a decision are
emitted after the events of its instant: kills and then starts, in the order of the decision.
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
"""The place of each kind of event in `EVENT_ORDER`."""


def in_order(events: Iterable[Event]) -> list[Event]:
    """Return the events of one instant in the order in which they are emitted.

    >>> submitted = JobSubmitted(time=5, job_number=1, requested_processors=1, requested_time=60)
    >>> ended = JobEnded(time=5, job_number=2, run_time=3, outcome="completed")
    >>> [value.kind for value in in_order([SchedulingPoint(time=5), submitted, ended])]
    ['JobEnded', 'JobSubmitted', 'SchedulingPoint']
    """
    return sorted(events, key=lambda event: PLACE[type(event)])
