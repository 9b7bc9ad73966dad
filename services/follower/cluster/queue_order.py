"""Priorities that represent the order of a queue, with as few changes as possible.

In Slurm all priorities grow with age, but only their order matters. So the published priority of a job changes only if
its position in the queue has changed. The new priority is a number between those of its new neighbours.
"""

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from itertools import pairwise

from shadowtime.services.follower.cluster.known_lives import KnownLives
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey

Job = tuple[int, int]
"""Submission time and number of a job. Jobs of equal priority are in this order."""


def as_queued(observations: Mapping[LifeKey, JobObservation], lives: KnownLives) -> dict[Job, int]:
    """Return priorities of the waiting jobs that give the order of the cluster's queue."""
    waiting = [
        (-observation.priority, (key.submit, lives.by_key[key].number))
        for key, observation in observations.items()
        if observation.priority is not None and observation.state == "waiting"
    ]
    known = ((job, lives.by_number[job[1]].asked.get("priority")) for _, job in waiting)
    known_priorities = {job: priority for job, priority in known if priority is not None}
    return priorities([(job, -priority) for priority, job in sorted(waiting)], known_priorities)


def priorities(order: Sequence[tuple[Job, int]], priorities_known: Mapping[Job, int]) -> dict[Job, int]:
    """Return a priority for each job, so that all are in order, the largest first. O(jobs log jobs).

    Parameters
    ----------
    order
        Jobs in order of the queue, each with its actual priority. Jobs of equal priority are in order of `Job`.
    priorities_known
        Published priorities of jobs. As many jobs as possible keep theirs.

    Examples
    --------
    >>> a, b, c = (0, 1), (0, 2), (9, 3)
    >>> priorities([(a, 300), (c, 200), (b, 100)], {a: 290, b: 190, c: 90})
    {(0, 1): 290, (9, 3): 200, (0, 2): 190}
    >>> priorities([(a, 9), (c, 8), (b, 7)], {a: 5, b: 4, c: 3})  # there is no number between 5 and 4
    {(0, 1): 9, (9, 3): 8, (0, 2): 7}
    """
    kept = _longest([(-priorities_known[job], job) if job in priorities_known else None for job, _ in order])
    assigned: dict[Job, int] = {}
    at = 0
    while at < len(order):
        if at in kept:
            assigned[order[at][0]] = priorities_known[order[at][0]]
            at += 1
            continue

        until = next((place for place in range(at, len(order)) if place in kept), len(order))
        above = assigned[order[at - 1][0]] if at else None
        below = priorities_known[order[until][0]] if until < len(order) else None
        new = _between([priority for _, priority in order[at:until]], above, below)
        if new is None:
            return dict(order)
        assigned |= {order[place][0]: value for place, value in zip(range(at, until), new, strict=True)}
        at = until

    return assigned


def _between(own: Sequence[int], above: int | None, below: int | None) -> list[int] | None:
    """Return descending numbers between two limits: the `own` priorities if they fit; None if there are too few."""
    falling = all(before >= after for before, after in pairwise(own))
    fits = (above is None or own[0] < above) and (below is None or own[-1] > below)
    if falling and fits:
        return list(own)
    if above is None or below is None or above - below <= len(own):
        return None
    step = (above - below) / (len(own) + 1)
    return [above - max(int(step * number), number) for number in range(1, len(own) + 1)]


def _longest(values: Sequence[tuple[int, Job] | None]) -> set[int]:
    """Return the indices of a longest non-descending subsequence of values. Values that are None are skipped."""
    ends: list[tuple[int, Job]] = []
    places: list[int] = []
    before: dict[int, int | None] = {}
    for place, value in enumerate(values):
        if value is None:
            continue
        at = bisect_right(ends, value)
        before[place] = places[at - 1] if at else None
        if at == len(ends):
            ends.append(value)
            places.append(place)
        elif ends[at] > value:
            ends[at], places[at] = value, place

    moved: set[int] = set()
    last: int | None = places[-1] if places else None
    while last is not None:
        moved.add(last)
        last = before[last]
    return moved
