"""The pass of a policy on a simulated machine: the kernels of the policies, over arrays of all jobs."""

from typing import NamedTuple

import numpy as np

from shadowtime.services.scheduler.kernels import (
    STARTS,
    Guards,
    HeldResources,
    JobArrays,
    carried,
    guarded_pass,
    plan,
    settled,
)
from shadowtime.services.scheduler.ordering import sort_keys
from shadowtime.services.scheduler.tables import RunningJobs, expected_ends, fitting_together
from shadowtime.services.scheduler.work_limits import PLANNED
from shadowtime.shared.kernels import Flags, Floats, FloatTable, Integers, IntegerTable, easy_pass, kernel

IN_TURN, EASY, GUARDED, CONSERVATIVE, REPLANNED = range(5)
"""Kinds of pass. `IN_TURN`: the first job that does not fit blocks all behind it. `REPLANNED`: conservative, without
guarantees."""

AS_SUBMITTED, AS_QUEUE = -1, -2
"""Kinds of order that `sort_keys` does not have: the order of submission, and for candidates that of the queue."""


class KnownTables(NamedTuple):
    """Known facts about the first `jobs` jobs of each array, in order of submission.

    `planned_times` has a row for each variant of planned times, `bases` a row for each order. `run_times` is -1 for a
    job that has not ended in the run itself. `started` is the start of a job in the run, -1 if it has not started.
    `withdrawn` is the time at which a job was withdrawn from the queue of the run, -1 if it was not.
    """

    jobs: int
    submit_times: Integers
    processors: Integers
    requested_times: Integers
    planned_times: IntegerTable
    bases: FloatTable
    run_times: Integers
    started: Integers
    withdrawn: Integers


class MemberArrays(NamedTuple):
    """Columns of the configurations, shape (members,).

    `passes` are kinds of pass. `kinds` and `bases` are the kind of the queue's order and its row of
    `KnownTables.bases`; `candidate_kinds` and `candidate_bases` are the same for candidates. `plans` are rows of
    `KnownTables.planned_times`. The guards are in seconds. The weights are those of the wait in the two orders.
    `corrections` are those of `expected_ends`, for all configurations.
    """

    passes: Integers
    kinds: Integers
    bases: Integers
    candidate_kinds: Integers
    candidate_bases: Integers
    plans: Integers
    thresholds: Floats
    overtaken: Floats
    patience: Floats
    weights: Floats
    candidate_weights: Floats
    corrections: Integers


class PassColumns(NamedTuple):
    """The state of a machine at a pass.

    `now`, `free` and `machine` are its time, idle processors and size. `waiting` and `running` are indices of jobs.
    `work` is the work that overtook each waiting job. `starts` has the start of each job of the log. `patience` is that
    of the job that has waited longest, in seconds.
    """

    now: int
    free: int
    machine: int
    waiting: Integers
    work: Floats
    running: Integers
    starts: Integers
    patience: float


class CarriedPlan(NamedTuple):
    """State that a machine carries from pass to pass.

    `table` has the reservations of the waiting jobs at the last conservative pass. `freed` is whether processors were
    freed since then. `eldest` is the job that has waited longest, -1 if none, and `patience` the least patience that it
    was promised.
    """

    table: IntegerTable
    freed: bool
    eldest: int
    patience: float


@kernel
def keys_of(kind: int, basis: int, weight: float, known: KnownTables, state: PassColumns) -> Floats:
    """Return the sort keys of the waiting jobs in one order, the smallest first. O(waiting)."""
    waiting = state.waiting
    keys = sort_keys(kind, state.now, known.submit_times, known.processors, known.bases[basis], waiting)
    if weight > 0.0:
        for place in range(len(waiting)):
            keys[place] -= weight * (state.now - known.submit_times[waiting[place]])
    return keys


@kernel
def in_order(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> Integers:
    """Return the places of the waiting jobs in the order of the queue, as `Ordering.rows`. O(waiting log waiting)."""
    places = np.arange(len(state.waiting))
    kind = members.kinds[member]
    if kind == AS_SUBMITTED:
        return places
    keys = keys_of(kind, members.bases[member], members.weights[member], known, state)
    aged = 0
    while aged < len(places) and state.now - known.submit_times[state.waiting[aged]] > members.thresholds[member]:
        aged += 1
    places[aged:] = aged + np.argsort(keys[aged:], kind="mergesort")
    return places


@kernel
def candidates_in_order(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> Integers:
    """Return the places of the waiting jobs in the order of candidates. This must not be the order of the queue."""
    kind, basis = members.candidate_kinds[member], members.candidate_bases[member]
    return np.argsort(keys_of(kind, basis, members.candidate_weights[member], known, state), kind="mergesort")


@kernel
def running_ends(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> HeldResources:
    """Return the sizes of the running jobs, and their expected ends by the planned times of the policy. O(running)."""
    planned, jobs = known.planned_times[members.plans[member]], len(state.running)
    sizes = np.empty((jobs, 1), dtype=np.int64)
    starts, times, requests = np.empty(jobs, np.int64), np.empty(jobs, np.int64), np.empty(jobs, np.int64)
    for place in range(jobs):
        job = state.running[place]
        sizes[place, 0], starts[place] = known.processors[job], state.starts[job]
        times[place], requests[place] = planned[job], known.requested_times[job]

    running = RunningJobs(sizes, starts, times, requests, requests, members.corrections)
    return HeldResources(sizes, expected_ends(state.now, running))


@kernel
def in_turn_places(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> Integers:
    """Return the places of the jobs that start under a policy without backfilling. O(waiting log waiting)."""
    places = in_order(member, members, known, state)
    sizes = known.processors[state.waiting[places]].reshape(-1, 1)
    return places[: fitting_together(np.full(1, state.free), sizes)]


@kernel
def easy_places(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> Integers:
    """Return the places of the jobs that start under EASY, as `easy_pass`."""
    places = in_order(member, members, known, state)
    jobs = state.waiting[places]
    order = places[:0]
    if members.candidate_kinds[member] != AS_QUEUE:
        ranks = np.empty_like(places)
        ranks[candidates_in_order(member, members, known, state)] = np.arange(len(places))
        order = ranks[places]

    held = running_ends(member, members, known, state)
    sizes, times = known.processors[jobs].reshape(-1, 1), known.planned_times[members.plans[member]][jobs]
    heads, _, _, rows = easy_pass(state.now, np.full(1, state.free), sizes, times, order, held.sizes, held.ends)
    return np.concatenate((places[:heads], places[rows]))


@kernel
def guarded_places(member: int, members: MemberArrays, known: KnownTables, state: PassColumns) -> Integers:
    """Return the places of the jobs that start under `guarded`, as `guarded_pass`."""
    runs, now = len(state.running), state.now
    sizes, latest = np.empty((runs, 1), dtype=np.int64), np.empty(runs, dtype=np.int64)
    for place in range(runs):
        job = state.running[place]
        sizes[place, 0] = known.processors[job]
        latest[place] = max(state.starts[job] + known.requested_times[job], now + 1)

    kind = members.candidate_kinds[member]
    candidates = np.empty(0)
    if kind != AS_QUEUE:
        candidates = keys_of(kind, members.candidate_bases[member], 0.0, known, state)
    places, _, _, _, _, _ = guarded_pass(
        now,
        np.full(1, state.free),
        state.machine,
        JobArrays(
            known.submit_times,
            known.processors.reshape(-1, 1),
            known.requested_times,
            known.planned_times[members.plans[member]],
        ),
        state.waiting,
        keys_of(members.kinds[member], members.bases[member], 0.0, known, state),
        candidates,
        state.work,
        HeldResources(sizes, latest),
        Guards(members.thresholds[member], members.overtaken[member], state.patience),
    )
    return places


@kernel
def conservative_places(
    member: int, members: MemberArrays, known: KnownTables, state: PassColumns, reserved: CarriedPlan
) -> tuple[Integers, IntegerTable]:
    """Return the places of the jobs that start under conservative backfilling, and the new reservations.

    Jobs have the requested shape only, and there are no trials. A reservation has the index of its job as job number.
    """
    keep = members.passes[member] == CONSERVATIVE
    idle, sizes = np.full(1, state.free), known.processors[state.waiting].reshape(-1, 1)
    order = in_order(member, members, known, state)
    if members.candidate_kinds[member] != AS_QUEUE:  # as `Ordering.in_turn`
        heads = 1 + fitting_together(idle, sizes[order])
        first: Flags = np.zeros(len(order), dtype=np.bool_)
        first[order[:heads]] = True
        behind = candidates_in_order(member, members, known, state)
        order = np.concatenate((order[:heads], behind[~first[behind]]))

    held = running_ends(member, members, known, state)
    table = carried(reserved.table, state.waiting, known.submit_times[state.waiting])
    promised = table[STARTS].copy() if keep else np.zeros(len(order), dtype=np.int64)
    cube = sizes.reshape(1, len(order), 1)
    times = known.planned_times[members.plans[member]][state.waiting].reshape(1, -1)
    shapes = np.zeros(len(order), dtype=np.int64)
    starts, planned_shapes, _, _, _, _ = plan(
        state.now, idle, held.sizes, held.ends, cube, times, promised, shapes, order, reserved.freed, keep, PLANNED
    )
    places, _, _ = settled(state.now, table, starts, planned_shapes, order, cube)
    return places, table


@kernel
def start_places(
    member: int, members: MemberArrays, known: KnownTables, state: PassColumns, reserved: CarriedPlan
) -> tuple[Integers, IntegerTable]:
    """Return the places of the waiting jobs that start at a pass, and the reservations of a conservative policy."""
    kind = members.passes[member]
    if kind == GUARDED:
        return guarded_places(member, members, known, state), reserved.table
    if kind == EASY:
        return easy_places(member, members, known, state), reserved.table
    if kind == IN_TURN:
        return in_turn_places(member, members, known, state), reserved.table
    return conservative_places(member, members, known, state, reserved)
