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


ROOM, STEP = 2**20, 2**10
"""Base and step of priorities when all are published anew: the last job in the queue gets `ROOM + STEP`."""


def priorities(order: Sequence[tuple[Job, int]], priorities_known: Mapping[Job, int]) -> dict[Job, int]:
    """Return a priority for each job, so that all are in order, the largest first. O(jobs log jobs).

    Parameters
    ----------
    order
        Jobs in order of the queue, each with its actual priority. Jobs of equal priority are in order of `Job`.
    priorities_known
        Published priorities of jobs. As many jobs as possible keep theirs. If there is no number left between two
        jobs, their neighbours are renumbered, in a range that is doubled until it has enough numbers.

    >>> a, b, c, d = (0, 1), (0, 2), (9, 3), (9, 4)
    >>> priorities([(a, 300), (c, 200), (b, 100)], {a: 290, b: 190, c: 90})
    {(0, 1): 290, (9, 3): 200, (0, 2): 190}
    >>> priorities([(a, 19), (b, 18), (c, 17)], {a: 9, b: 8})  # all but the new job have aged
    {(0, 1): 9, (0, 2): 8, (9, 3): 4}
    >>> priorities([(a, 9), (d, 8), (c, 7), (b, 6)], {a: 90, c: 5, b: 4})  # there is no number between 5 and 4
    {(0, 1): 90, (9, 4): 8, (9, 3): 5, (0, 2): 4}
    >>> priorities([(a, 9), (c, 8), (b, 7)], {a: 5, b: 4})
    {(0, 1): 1051648, (9, 3): 1050624, (0, 2): 1049600}
    """
    if not priorities_known:
        return dict(order)
    kept = _longest([(-priorities_known[job], job) if job in priorities_known else None for job, _ in order])
    own = [priority for _, priority in order]
    assigned = {at: priorities_known[order[at][0]] for at in kept}
    at, size = 0, len(order)
    while at < size:
        if at in assigned:
            at += 1
            continue
        first, until = at, at
        while until < size and until not in assigned:
            until += 1
        new, wider = _between(own[first:until], assigned.get(first - 1), assigned.get(until), anew=False), 1
        while new is None:
            first, until, wider = max(0, first - wider), min(size, until + wider), 2 * wider
            while until < size and until not in assigned:
                until += 1
            if first == 0 and until == size:
                new = [ROOM + STEP * place for place in range(size, 0, -1)]
            else:
                new = _between(own[first:until], assigned.get(first - 1), assigned.get(until), anew=True)
        assigned |= zip(range(first, until), new, strict=True)
        at = until

    return {job: assigned[place] for place, (job, _) in enumerate(order)}


def _between(own: Sequence[int], above: int | None, below: int | None, *, anew: bool) -> list[int] | None:
    """Return descending numbers between two limits; None if there are too few.

    The `own` priorities are returned if they are between the limits and in order. They are not if nothing is below and
    the last one is under half of the limit above: numbers near 0 would leave no room for later jobs. Jobs that are
    numbered `anew` get other numbers, and at most half of those between the limits.
    """
    falling = all(before >= after for before, after in pairwise(own))
    fits = (above is None or own[0] < above) and (below is None or own[-1] > below)
    near = above is None or below is not None or 2 * own[-1] >= above
    if falling and fits and near and not anew:
        return list(own)
    if above is None:
        return None if below is None else [below + STEP * number for number in range(len(own), 0, -1)]
    room = above - (-1 if below is None else below)
    if room <= (2 * len(own) if anew else len(own)):
        return None
    step = room / (len(own) + 1) if below is not None else min(room / (len(own) + 1), STEP)
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
