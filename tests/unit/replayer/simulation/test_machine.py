"""The machine of a closed replay: it obeys, and refuses what cannot be."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.source import JobTraits
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.messages import (
    CapacityChanged,
    Decided,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
    SchedulingPoint,
)
from shadowtime.shared.messages.decisions import Kill, Start
from shadowtime.shared.messages.reasons import FitsNow
from tests.support.small_logs import generated, job, workload_of


def start(job_number: int, processors: int = 1, limit: int | None = 100) -> Decided:
    return Decided(time=0, starts=(Start(job_number=job_number, processors=processors, limit=limit, reason=FitsNow()),))


def kill(job_number: int, *, requeue: bool) -> Decided:
    return Decided(time=0, kills=(Kill(job_number=job_number, requeue=requeue, reason="test"),))


def machine_with(*jobs: dict[str, int], capacity: Sequence[CapacityChanged] = ()) -> Machine:
    """Return a machine of 4 processors at the first instant of its log."""
    machine = Machine(workload_of(*jobs), capacity)
    machine.next_instant()
    return machine


def end_of(events: Sequence[Event]) -> JobEnded:
    """Return the end that must be the first of these events."""
    assert isinstance(events[0], JobEnded)
    return events[0]


def brief(event: Event) -> str:
    """Return kind and job number, as in `JobEnded 1`."""
    return f"{event.kind} {event.job_number}" if isinstance(event, JobSubmitted | JobEnded | JobStarted) else event.kind


def test_order_at_one_instant() -> None:
    """Terminations by job number, changes of capacity, arrivals by job number, then the scheduling point (G1)."""
    jobs = [job(5), job(2), job(9, 60), job(3, 60)]
    machine = Machine(workload_of(*jobs), [CapacityChanged(time=60, processors=3)])
    assert [brief(each) for each in machine.next_instant()] == ["JobSubmitted 2", "JobSubmitted 5", "SchedulingPoint"]
    assert [brief(each) for each in machine.apply(start(5))] == ["JobStarted 5"]
    machine.apply(start(2))
    assert machine.next_time() == 60
    events = machine.next_instant()
    assert [brief(each) for each in events] == [
        "JobEnded 2",
        "JobEnded 5",
        "CapacityChanged",
        "JobSubmitted 3",
        "JobSubmitted 9",
        "SchedulingPoint",
    ]
    assert {each.time for each in events} == {60}


def test_kills_come_before_starts_and_free_processors_for_them() -> None:
    machine = machine_with(job(1, processors=4), job(2, processors=4))
    machine.apply(start(1, 4))
    decided = Decided(
        time=0,
        kills=(Kill(job_number=1, requeue=True, reason="test"),),
        starts=(Start(job_number=2, processors=4, limit=100, reason=FitsNow()),),
    )
    assert [brief(each) for each in machine.apply(decided)] == ["JobEnded 1", "JobStarted 2"]


def test_submission_says_nothing_of_the_future() -> None:
    submitted = Machine(workload_of(job(1, 7, run_time=4242))).next_instant()[0]
    assert isinstance(submitted, JobSubmitted)
    assert 4242 not in submitted.model_dump().values()
    assert (submitted.time, submitted.requested_time, submitted.requested_processors) == (7, 100, 1)


def test_a_moldable_job_runs_on_other_sizes_with_its_work_unchanged() -> None:
    machine = machine_with(job(1, processors=2, run_time=50, requested_time=100))
    (started,) = machine.apply(start(1, 4, limit=50))
    assert isinstance(started, JobStarted)
    assert (started.processors, machine.next_time()) == (4, 25)
    ended = end_of(machine.next_instant())
    assert (ended.run_time, ended.own_run_time, ended.outcome, ended.requeued) == (25, 50, "completed", False)


def test_a_narrowed_job_is_killed_at_its_request() -> None:
    machine = machine_with(job(1, processors=2, run_time=500, requested_time=100))
    machine.apply(start(1, 1, limit=200))
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.own_run_time, ended.outcome, ended.requeued) == (200, 100, "limit", False)


@pytest.mark.parametrize(
    ("run_time", "limit", "outcome"),
    [(14, 7, "limit"), (13, 7, "completed"), (14, 6, "limit"), (14, 8, "completed"), (14, None, "completed")],
)
def test_rounding_on_another_size_hides_no_cut(run_time: int, limit: int | None, outcome: Outcome) -> None:
    """On two processors a request of 13 s and a run time of 14 s both last for 7."""
    machine = machine_with(job(1, run_time=run_time, requested_time=13))
    machine.apply(start(1, 2, limit=limit))
    assert end_of(machine.next_instant()).outcome == outcome


def test_a_narrowed_job_on_trial_waits_again() -> None:
    machine = machine_with(job(1, processors=2, run_time=500, requested_time=100))
    machine.apply(start(1, 1, limit=199))
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.run_time, ended.original_run_time, ended.requeued) == (199, 199, None, True)


def test_a_job_that_is_not_moldable_runs_as_requested() -> None:
    machine = Machine(workload_of(job(2, processors=2)), traits=JobTraits(moldable=False))
    machine.next_instant()
    with pytest.raises(ReplayError, match="on 1 processors, but the job requests 2, and jobs are not moldable"):
        machine.apply(start(2, 1))


@pytest.mark.parametrize("mark", [True, False])
def test_marks_go_to_every_submission(mark: bool) -> None:
    submitted = Machine(workload_of(job(1)), traits=JobTraits(mark, mark)).next_instant()[0]
    assert isinstance(submitted, JobSubmitted)
    assert (submitted.restartable, submitted.moldable) == (mark, mark)


def test_job_ends_at_the_limit_of_its_start() -> None:
    machine = machine_with(job(1, run_time=500, requested_time=100))
    machine.apply(start(1, limit=100))
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.run_time, ended.outcome, ended.requeued) == (100, 100, "limit", False)


def test_without_a_limit_a_job_runs_as_long_as_it_takes() -> None:
    machine = machine_with(job(1, run_time=500, requested_time=100))
    machine.apply(start(1, limit=None))
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.outcome) == (500, "completed")


@pytest.mark.parametrize("limit", [60, 61, 100])
def test_a_limit_that_suffices_changes_nothing(limit: int) -> None:
    machine = machine_with(job(1, run_time=60, requested_time=100))
    machine.apply(start(1, limit=limit))
    ended = end_of(machine.next_instant())
    assert (ended.run_time, ended.outcome, ended.requeued) == (60, "completed", False)


@pytest.mark.parametrize(
    ("status", "outcome"), [(0, "failed"), (1, "completed"), (5, "cancelled"), (-1, "completed"), (3, "completed")]
)
def test_outcome_is_that_of_the_log(status: int, outcome: Outcome) -> None:
    machine = machine_with(job(1, status=status))
    machine.apply(start(1))
    assert end_of(machine.next_instant()).outcome == outcome


def test_speculated_limit_below_the_request_requeues() -> None:
    machine = machine_with(job(1, run_time=50, requested_time=100))
    started = machine.apply(start(1, limit=20))[0]
    assert isinstance(started, JobStarted)
    assert started.trial
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.run_time, ended.outcome, ended.requeued) == (20, 20, "limit", True)
    machine.apply(start(1, limit=60))
    ended = end_of(machine.next_instant())
    assert (ended.time, ended.run_time, ended.outcome, ended.requeued) == (70, 50, "completed", False)
    assert machine.next_instant() == ()


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("limit", [100, 20])
def test_killed_job_waits_again_only_if_requeued(requeue: bool, limit: int) -> None:
    machine = machine_with(job(1, run_time=50, requested_time=100), job(2, 10))
    machine.apply(start(1, limit=limit))
    machine.next_instant()
    ended = end_of(machine.apply(kill(1, requeue=requeue)))
    assert (ended.time, ended.run_time, ended.outcome, ended.requeued) == (10, 10, "killed", requeue)
    if requeue:
        assert brief(machine.apply(start(1))[0]) == "JobStarted 1"
    else:
        with pytest.raises(ReplayError, match="the policy starts job 1 at 10, but the job does not wait"):
            machine.apply(start(1))


@pytest.mark.parametrize(
    ("decided", "complaint"),
    [
        (start(2, 2), "the policy starts job 2 at 0 on 2 processors; the machine has 1 free"),
        (start(17), "the policy starts job 17 at 0, but the job does not wait"),
        (start(1, 3), "the policy starts job 1 at 0, but the job does not wait"),  # it runs
        (start(3), "the policy starts job 3 at 0, but the job does not wait"),  # it comes later
        (kill(2, requeue=True), "the policy kills job 2 at 0, but the job does not run"),
        (kill(17, requeue=True), "the policy kills job 17 at 0, but the job does not run"),
    ],
)
def test_what_cannot_be_names_the_job(decided: Decided, complaint: str) -> None:
    machine = machine_with(job(1, processors=3), job(2, processors=2), job(3, 50))
    machine.apply(start(1, 3))
    with pytest.raises(ReplayError, match=f"^{complaint}$"):
        machine.apply(decided)


def test_a_machine_that_shrinks_keeps_its_jobs_and_starts_none_until_enough_are_free() -> None:
    changes = [CapacityChanged(time=10, processors=2), CapacityChanged(time=70, processors=4)]
    machine = machine_with(job(1, processors=4), job(2, processors=2), job(3, processors=4), capacity=changes)
    machine.apply(start(1, 4))
    assert list(machine.next_instant()) == [changes[0], SchedulingPoint(time=10)]
    with pytest.raises(ReplayError, match="the policy starts job 2 at 10 on 2 processors; the machine has -2 free"):
        machine.apply(start(2, 2))
    assert end_of(machine.next_instant()).time == 60
    with pytest.raises(ReplayError, match="the policy starts job 3 at 60 on 4 processors; the machine has 2 free"):
        machine.apply(start(3, 4))
    machine.next_instant()
    machine.apply(start(3, 4))


def test_can_start_while_any_waiting_job_fits() -> None:
    machine = machine_with(job(1, processors=3), job(2, processors=2), job(3, 50))
    assert machine.can_start()
    machine.apply(start(1, 3))
    assert not machine.can_start()
    machine.next_instant()  # job 3, of one processor, arrives
    assert machine.can_start()
    machine.apply(start(3))
    assert not machine.can_start()


def test_jobs_that_wait_for_ever_are_named() -> None:
    machine = machine_with(job(8, processors=4), job(9), capacity=[CapacityChanged(time=5, processors=2)])
    machine.next_instant()
    complaint = "deadlock: none of 2 waiting jobs starts: job 8 requests 4 processors; the machine has 2"
    with pytest.raises(ReplayError, match=complaint):
        machine.next_instant()


def applicable_settings(
    machine: Machine, events: Sequence[Event], waiting: dict[int, JobSubmitted], free: int
) -> Decided:
    """Decide as FCFS without a block would; a policy is not what is tested here."""
    starts = []
    for event in events:
        if isinstance(event, JobSubmitted):
            waiting[event.job_number] = event
    for each in list(waiting.values()):
        if each.requested_processors <= free:
            free -= each.requested_processors
            del waiting[each.job_number]
            decision = Start(
                job_number=each.job_number,
                processors=each.requested_processors,
                limit=each.requested_time,
                reason=FitsNow(),
            )
            starts.append(decision)
    return Decided(time=events[0].time, starts=tuple(starts))


def test_restored_at_any_instant_it_tells_the_same_rest() -> None:
    workload = generated(jobs=40, seed=3)
    last = int(workload.columns["submit_time"][-1])
    capacity = [CapacityChanged(time=last // 3, processors=8), CapacityChanged(time=2 * last // 3, processors=16)]
    machine = Machine(workload, capacity)
    waiting: dict[int, JobSubmitted] = {}
    free, capacity_now = 16, 16
    script: list[tuple[Any, Decided, list[Event]]] = []  # a snapshot, then what was decided and told after it
    while events := machine.next_instant():
        for event in events:
            if isinstance(event, JobEnded):
                free += next(each.processors for each in workload if each.job_number == event.job_number)
            elif isinstance(event, CapacityChanged):
                free += event.processors - capacity_now
                capacity_now = event.processors
        state = json.loads(json.dumps(machine.snapshot()))  # plain values only
        decided = applicable_settings(machine, events, waiting, free)
        free -= sum(each.processors for each in decided.starts)
        script.append((state, decided, [*events, *machine.apply(decided)]))
    assert sum(isinstance(event, JobEnded) for _, _, events in script for event in events) == len(workload)

    for position, (state, _, _) in enumerate(script):
        again = Machine(workload, capacity)
        again.restore(state)
        assert json.loads(json.dumps(again.snapshot())) == state
        again.apply(script[position][1])
        for _, decided, told in script[position + 1 :]:
            assert [*again.next_instant(), *again.apply(decided)] == told
        assert again.next_instant() == ()


def test_restore_also_takes_a_used_machine_back() -> None:
    changes = [CapacityChanged(time=5, processors=2)]
    machine = machine_with(job(1, processors=4), capacity=changes)
    state = machine.snapshot()
    machine.next_instant()
    machine.restore(state)
    machine.apply(start(1, 4))  # the machine has not shrunk yet
