"""GPUs of two types under contention: no start exceeds any type, and nobody waits for a type that he does not want."""

from typing import Any

import pytest

from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.services.scheduler.registry import RECOMMENDED
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
    Rejected,
)
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.workloads import TraceRow, workload
from tests.support import textbook_pools
from tests.support.gpu_jobs import POOL, contending, of_types, opened
from tests.support.occupancy import Occupancy
from tests.support.textbook_pools import held_of

POLICIES = (
    *("easy", "conservative", "guarded:queue=saf,threshold=20", "probabilistic:budget=0.5"),
    *(RECOMMENDED["best"].partition(":")[0], "all-reserve"),
)


def pool_of(chain: Chain) -> PoolScheduler:
    handler: Any = chain.stages["scheduler"].handler
    pool: PoolScheduler = handler.pools[0]
    return pool


@pytest.mark.parametrize("policy", [*POLICIES, "slurm"])
def test_no_start_exceeds_a_type_and_all_jobs_start(policy: str) -> None:
    for seed in range(8):
        jobs, machine, chain = contending(seed), Occupancy([POOL]), Chain(opened(policy, runtime="empirical"))
        started = 0
        for event, answer in chain.play(Machine(jobs)):
            if isinstance(answer.event, Decided):
                machine.require_room(answer.event.starts)
            machine.see(event)
            started += isinstance(event, JobStarted)
            left = machine.free(0)
            assert min(left.values()) >= 0, (seed, event, left)
            assert list(left.values()) == pool_of(chain).idle.tolist(), (seed, event)
        assert started == len(jobs), seed


def test_easy_is_the_textbook_with_types() -> None:
    for seed in range(40):
        machine = Occupancy([POOL])
        for event, answer in Chain(opened("easy")).play(Machine(contending(seed))):
            if isinstance(answer.event, Decided):
                running, _ = held_of(machine, 0)
                expected = textbook_pools.easy(event.time, machine.queue(0), running, machine.free(0))
                assert [start.job_number for start in answer.event.starts] == expected, seed
            machine.see(event)


@pytest.mark.parametrize("policy", POLICIES)
def test_who_wants_another_type_passes_who_waits(policy: str) -> None:
    """Job 1 has all a100 for 50 s, job 2 waits for one. Jobs 3 (a v100) and 4 (any one) start; 5 needs 3 of any."""
    rows = [TraceRow(number, number, 1, 50 if number == 1 else 200, 50) for number in range(1, 6)]
    jobs = of_types(workload(100, rows), [4, 1, 1, 1, 3], [0, 0, 1, -1, -1])
    starts = {
        event.job_number: (event.time, event.gpu_types)
        for event, _ in Chain(opened(policy)).play(Machine(jobs))
        if isinstance(event, JobStarted)
    }
    one = (GpuType(name="v100", gpus=1),)
    assert starts[1] == (1, (GpuType(name="a100", gpus=4),))
    assert (starts[2][0], starts[3], starts[4]) == (51, (3, one), (4, one))
    assert starts[5] == (51, (GpuType(name="a100", gpus=3),))


def test_a_job_that_waits_for_its_type_is_not_forecast_to_start_at_once() -> None:
    """Job 1 has all a100 until 51; 2 wants one, 3 a v100, 4 any one, and 5 three of any, of which two are left."""
    rows = [TraceRow(number, number, 1, 50 if number == 1 else 200, 50) for number in range(1, 6)]
    jobs = of_types(workload(100, rows), [4, 1, 1, 1, 3], [0, 0, 1, -1, -1])
    waits = {
        answer.event.job_number: answer.forecast and answer.forecast.wait
        for _, answer in Chain(opened("easy:forecast=yes")).play(Machine(jobs))
        if isinstance(answer.event, JobSubmitted)
    }
    assert waits == {1: 0, 2: 49, 3: 0, 4: 0, 5: 46}


def test_those_that_name_a_type_get_theirs_before_others_at_an_instant() -> None:
    rows = [TraceRow(number, 0, 1, 10, 10) for number in (1, 2)]
    jobs = of_types(workload(100, rows), [2, 4], [-1, 0])
    started = [event for event, _ in Chain(opened("easy")).play(Machine(jobs)) if isinstance(event, JobStarted)]
    assert [(event.time, event.gpu_types) for event in started] == [
        (0, (GpuType(name="v100", gpus=2),)),
        (0, (GpuType(name="a100", gpus=4),)),
    ]


def test_a_recorded_job_holds_what_the_log_says_or_else_what_the_rule_says() -> None:
    rows = [TraceRow(number, number, 1, 90, 90, wait_time=0) for number in (1, 2, 3)]
    got = ["gres/gpu:v100=3", "", "gres/gpu:a100=1,gres/gpu:v100=1"]
    jobs = of_types(workload(100, rows), [3, 2, 2], [-1, -1, -1], got)
    chain, idle = Chain(opened("easy").replaced(mode="recorded")), dict[int, list[int]]()
    for event, _ in chain.play(Recorded(jobs)):
        if isinstance(event, JobStarted):
            idle[event.job_number] = pool_of(chain).idle.tolist()[1:]
    assert idle == {1: [4, 4, 0], 2: [2, 2, 0], 3: [0, 1, -1]}


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"gpus": 2, "gpu_type": "h100"}, "job 7 requests 2 h100 GPUs; gpu has only a100, v100"),
        ({"gpus": 2, "gpu_type": "a100+h100"}, "job 7 requests 2 a100+h100 GPUs; gpu has only a100, v100"),
        ({"gpus": 5, "gpu_type": "a100"}, "job 7 requests 5 a100 GPUs; gpu has 4"),
        ({"gpus": 8}, "job 7 requests 8 GPUs; gpu has 7"),
        ({"gpus": 7}, None),
        ({"gpus": 4, "gpu_type": "a100"}, None),
    ],
)
def test_a_job_that_no_type_can_hold_is_too_large(asked: dict[str, Any], reason: str | None) -> None:
    run = StageRun(next(stage for stage in STAGES if stage.name == "scheduler"))
    job = JobSubmitted(time=0, job_number=7, requested_processors=1, requested_time=9, pool=0, **asked)
    events: list[Event] = [opened("easy"), job]
    answers = [run.push(Envelope(run="r", sequence=at, event=event)) for at, event in enumerate(events)]
    event = answers[-1] and answers[-1].event
    assert (event.reason if isinstance(event, Rejected) else None) == reason


def test_nodes_of_one_type_that_leave_stop_only_jobs_of_this_type() -> None:
    rows = [TraceRow(number, 5, 1, 10, 10) for number in (1, 2, 3)]
    jobs = of_types(workload(100, rows), [1, 1, 1], [0, 1, -1])
    gone = CapacityChanged(time=0, processors=50, gpus=3, gpu_types=(GpuType(name="a100", gpus=0),))
    back = CapacityChanged(time=60, processors=100, gpus=7, gpu_types=(GpuType(name="a100", gpus=4),))
    played = Chain(opened("easy")).play(Machine(jobs, [gone, back]))
    starts = {event.job_number: event.time for event, _ in played if isinstance(event, JobStarted)}
    assert starts == {1: 60, 2: 5, 3: 5}


def test_a_machine_continues_with_the_types_that_its_jobs_hold() -> None:
    machine, chain = Machine(contending(3)), Chain(opened("easy"))
    chain.push(chain.opened)
    while events := machine.next_instant():
        for event in events:
            answer = chain.push(event).event
            if isinstance(answer, Decided):
                for caused in machine.apply(answer):
                    chain.push(caused)
        again = Machine(contending(3))
        again.restore(machine.snapshot())
        assert again.snapshot() == machine.snapshot()
        machine = again
    assert not pool_of(chain).used


def test_a_cluster_without_types_opens_as_ever() -> None:
    assert ClusterOpened(time=0, cluster="c", processors=4).as_json().count(b"gpu_types") == 0
