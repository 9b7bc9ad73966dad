"""One pass of guarded backfilling over arrays: guards limit how long the order may hold back any one job."""

from typing import NamedTuple

import numpy as np

from shadowtime.shared.kernels import (
    BEYOND,
    Flags,
    Floats,
    Integers,
    IntegerTable,
    ascending,
    has_room,
    kernel,
    place_of,
)

FITS, BEFORE_ELDEST, BEFORE_HEAD = range(3)
"""Reasons of a start. `FITS`: all jobs before it in the order start, too. `BEFORE_ELDEST`: by plan, the start does not
delay the job that has waited longest. `BEFORE_HEAD`: by plan, it does not delay the head."""


class JobArrays(NamedTuple):
    """Jobs in order of (submit time, job number): times in seconds, and sizes, shape (jobs, resources)."""

    submit_times: Integers
    sizes: IntegerTable
    requested_times: Integers
    planned_times: Integers


class HeldResources(NamedTuple):
    """Resources that each running job holds, shape (running, resources), and the latest end of each running job."""

    sizes: IntegerTable
    ends: Integers


class Guards(NamedTuple):
    """Guards of each waiting job against the order, in seconds. Infinity disables a guard. See `GuardedSettings`."""

    threshold: float
    overtaken: float
    patience: float


class Pass(NamedTuple):
    """Result of a pass: the starts in order, as indices of waiting jobs, their reasons, and the protected jobs."""

    places: Integers
    reasons: Integers
    eldest: tuple[int, Integers]
    """Planned start of the job that has waited longest, in seconds, and the resources that it leaves free then."""
    head: int
    """Index of the first job of the order that does not fit; -1 if there is none, or nothing is tried behind it."""
    shadow: tuple[int, Integers]
    """The head's shadow time in seconds, and the extra amount of each resource."""
    strict: bool
    """Whether candidates were planned with their requested run times."""


@kernel
def guarded_pass(
    now: int,
    free: Integers,
    machine: int,
    jobs: JobArrays,
    waiting: Integers,
    keys: Floats,
    candidate_keys: Floats,
    work: Floats,
    held: HeldResources,
    guards: Guards,
) -> tuple[Integers, Integers, tuple[int, Integers], int, tuple[int, Integers], bool]:
    """Return the fields of a `Pass`. O(waiting log waiting + running log running).

    Parameters
    ----------
    now, free, machine
        The time in seconds, the free amount of each resource, and the processors of the whole machine.
    jobs, waiting
        Jobs, and the indices of the waiting jobs, in the same order.
    keys, candidate_keys
        Sort keys of the waiting jobs, least first: in the queue, and as candidates behind the head. If `candidate_keys`
        is empty, candidates are in the order of the queue.
    work
        Processor seconds of later jobs that have overtaken each waiting job.
    """
    # 1. Return at once unless some job fits.
    count = len(waiting)
    places, reasons = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    free, none = free.copy(), np.zeros_like(free)
    longest = -1
    for place in range(count):
        if has_room(free, jobs.sizes[waiting[place]]):
            longest = max(longest, jobs.requested_times[waiting[place]])
    if longest < 0:
        return places[:0], reasons[:0], (BEYOND, none), -1, (0, none), False

    # 2. Give the job that has waited longest its place, if this pass could delay it.
    by_end = np.argsort(held.ends, kind="mergesort")
    due, room = BEYOND, none.copy()
    deadline = jobs.submit_times[waiting[0]] + guards.patience
    if deadline < now + longest:
        due, room = place_of(jobs.sizes[waiting[0]], max(now, int(deadline)), free, held.sizes, held.ends, by_end)

    # 3. Order the jobs: first those that a guard protects, by submission, then the others by their keys.
    first: Flags = np.empty(count, dtype=np.bool_)
    order = np.empty(count, dtype=np.int64)
    served = 0
    for place in range(count):
        job = waiting[place]
        overtaken = work[place] > guards.overtaken * machine
        late = place == 0 and now >= deadline
        first[place] = overtaken or late or now - jobs.submit_times[job] > guards.threshold
        if first[place]:
            order[served] = place
            served += 1

    for place in np.argsort(keys, kind="mergesort"):
        if not first[place]:
            order[served] = place
            served += 1

    # 4. Start jobs in this order while they fit. A job that would delay the eldest is passed over.
    started, turn, why = 0, 0, FITS
    while turn < count and has_room(free, jobs.sizes[waiting[order[turn]]]):
        place = order[turn]
        job = waiting[place]
        size = jobs.sizes[job]
        late = place > 0 and now + jobs.requested_times[job] > due
        if late and not has_room(room, size):
            why = BEFORE_ELDEST
        else:
            if late:
                room -= size
            if place == 0:
                due, why = BEYOND, FITS
            free -= size
            places[started], reasons[started] = place, why
            started += 1

        turn += 1

    if turn >= count - 1:
        return places[:started], reasons[:started], (due, room), -1, (0, none), False

    # 5. The first job that does not fit is the head. Return unless a job behind it fits.
    head = order[turn]
    fits = False
    for place in order[turn + 1 :]:
        fits = fits or has_room(free, jobs.sizes[waiting[place]])
    if not fits:
        return places[:started], reasons[:started], (due, room), -1, (0, none), False

    # 6. Find the shadow time of the head. Behind a head that has waited too long, candidates are planned with requests.
    strict = now - jobs.submit_times[waiting[head]] > guards.threshold
    begun = waiting[places[:started]]
    sizes = np.concatenate((held.sizes, jobs.sizes[begun]))
    ends = np.concatenate((held.ends, now + jobs.requested_times[begun]))
    by_end = np.argsort(ends, kind="mergesort")
    shadow_time, extra = place_of(jobs.sizes[waiting[head]], now, free, sizes, ends, by_end)
    shadow = shadow_time, extra.copy()

    # 7. Backfill: start candidates that delay neither the head nor the eldest.
    behind = order[turn + 1 :]
    if len(candidate_keys):
        behind = ascending(behind)
        behind = behind[np.argsort(candidate_keys[behind], kind="mergesort")]
    for place in behind:
        job = waiting[place]
        size = jobs.sizes[job]
        if not has_room(free, size):
            continue
        late = place > 0 and now + jobs.requested_times[job] > due
        if late and not has_room(room, size):
            continue
        run_time = jobs.requested_times[job] if strict else jobs.planned_times[job]
        if now + run_time > shadow_time:
            if not has_room(extra, size):
                continue
            extra -= size

        if late:
            room -= size
        if place == 0:
            due = BEYOND
        free -= size
        places[started], reasons[started] = place, BEFORE_HEAD
        started += 1

    return places[:started], reasons[:started], (due, room), head, shadow, strict
