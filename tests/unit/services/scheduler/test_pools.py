"""Three pools with memory and GPUs: each pass against the textbook."""

from typing import Any

import pytest
from hypothesis import given

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.policy import FITS_NOW, Policy, start
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables.histograms import Histograms
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import UNUSED
from tests.support import textbook_pools
from tests.support.occupancy import Occupancy
from tests.support.strategies.pools import LEAVES, POOLS, pooled_workloads
from tests.support.textbook_pools import Conservative, held_of
from tests.unit.services.scheduler.pool_points import EITHER, NOTHING, SOON, TAU, delay, ends_of, opened, started


@given(jobs=pooled_workloads(), changes=LEAVES)
@examples(200)
def test_easy_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine = Occupancy(POOLS)
    for event, answer in Chain(opened("easy")).play(Machine(jobs, changes)):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                running, _ = held_of(machine, pool)
                expected += textbook_pools.easy(event.time, machine.queue(pool), running, machine.free(pool))
            assert started(answer.event) == expected
        machine.see(event)


@given(jobs=pooled_workloads(), changes=LEAVES)
@examples(200)
def test_conservative_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine, plans = Occupancy(POOLS), [Conservative() for _ in POOLS]
    freed = [False] * len(POOLS)
    for event, answer in Chain(opened("conservative")).play(Machine(jobs, changes)):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool, plan in enumerate(plans):
                running, _ = held_of(machine, pool)
                room = machine.rooms[pool]
                expected += plan.starts(event.time, machine.queue(pool), running, room, NOTHING, freed=freed[pool])
                freed[pool] = False
            assert started(answer.event) == expected
        if isinstance(event, JobEnded):
            freed[machine.running[event.job_number].pool] = True
        elif isinstance(event, CapacityChanged):
            freed[event.pool or 0] = True
        machine.see(event)


@given(jobs=pooled_workloads(max_jobs=18), changes=LEAVES)
@examples(150)
def test_probabilistic_is_the_textbook(jobs: Workload, changes: list[CapacityChanged]) -> None:
    machine, predicted = Occupancy(POOLS), dict[int, Envelope]()
    chain = Chain(opened(f"probabilistic:tau={TAU}", "empirical"))
    for event, answer in chain.play(Machine(jobs, changes)):
        if isinstance(event, JobSubmitted):
            predicted[event.job_number] = chain.read["scheduler"][-1]
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                running, numbers = held_of(machine, pool)
                now = event.time
                expected += textbook_pools.probabilistic(
                    *(now, machine.queue(pool), running, machine.free(pool), TAU),
                    *(lambda number, now=now: ends_of(predicted[number], machine, now), numbers, delay),
                )
            assert started(answer.event) == expected
        machine.see(event)


# By hand


@pytest.mark.parametrize(
    ("memory", "asked", "seconds", "expected"),
    [
        (10, 0, 7200, [3]),
        (10, 1, 7200, []),  # the head needs all memory once it has processors
        (10, 1, 3600, [3]),  # by then this one has ended
        (9, 1, 7200, [3]),
    ],
)
def test_a_candidate_that_is_harmless_leaves_the_head_its_memory(
    memory: int, asked: int, seconds: int, expected: list[int]
) -> None:
    """Of 10 processors and 10 MiB job 9 holds 6 and none; the head takes 8 and `memory`, job 3 takes 3 and `asked`."""
    histograms = Histograms()
    queue, running = Queue(histograms, UNUSED, further=1), Running((), histograms, UNUSED, further=1)
    queue.add((1, 0, 8, *[3600] * 4, histograms.add(()), memory))
    queue.add((3, 1, 3, *[seconds] * 4, histograms.add(SOON), asked))
    running.add((9, 0, 6, *[3600] * 4, histograms.add(EITHER), 0, 0))
    running.idle[1] = 10
    decisions = POLICIES.build(parse("probabilistic:tau=0.2")).schedule(0, queue, running, 4)
    assert [each.job_number for each in decisions if isinstance(each, Start)] == expected


@pytest.mark.parametrize("policy", ["easy", "conservative", "probabilistic", "guarded:queue=saf", "all-reserve"])
def test_what_memory_alone_keeps_waiting_has_a_reservation_too(policy: str) -> None:
    """Job 9 holds 2 of 10 processors and 8 of 10 MiB for an hour; the head takes 2 and 9: then 1 MiB is extra."""
    for asked, seconds, starts in ((2, 3600, [3]), (2, 7200, []), (1, 7200, [3]), (3, 3600, []), (0, 7200, [3])):
        queue, running = Queue(None, UNUSED, further=1), Running((), None, UNUSED, further=1)
        queue.add((1, 0, 2, *[3600] * 4, -1, 9))
        queue.add((3, 1, 8, *[seconds] * 4, -1, asked))
        running.add((9, 0, 2, *[3600] * 4, -1, 0, 8))
        running.idle[1] = 2
        decisions = POLICIES.build(parse(policy)).schedule(0, queue, running, 8)
        assert [each.job_number for each in decisions if isinstance(each, Start)] == starts, (asked, seconds)


class Greedy(Policy):
    """Starts whatever waits, on as many processors as there are."""

    name = "greedy"
    Settings = PolicySettings

    def __init__(self, settings: PolicySettings) -> None:
        self.settings = settings

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> list[Start]:
        return [start(queue, row, FITS_NOW) for row in range(len(queue))]


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"requested_processors": 5}, "starts job 2 on 5 processors; pool gpu has 3 free"),
        ({"requested_processors": 1, "memory": 16}, "starts job 2 on 16 MiB of memory; pool gpu has 12 free"),
        ({"requested_processors": 1, "gpus": 4}, "starts job 2 on 4 GPUs; pool gpu has 3 free"),
        ({"requested_processors": 1, "gpus": 2, "gpu_type": "a100"}, "job 2 on 2 a100 GPUs; pool gpu has 1 free"),
    ],
)
def test_a_policy_that_starts_too_much_is_named(
    monkeypatch: pytest.MonkeyPatch, asked: dict[str, Any], reason: str
) -> None:
    monkeypatch.setitem(POLICIES.classes.data, "greedy", Greedy)
    run = StageRun(next(stage for stage in STAGES if stage.name == "scheduler"))
    first = JobSubmitted(time=0, job_number=1, requested_processors=3, requested_time=9, pool=1, memory=4, gpus=2)
    first = first.replaced(gpu_type="a100")
    second = JobSubmitted(time=0, job_number=2, requested_time=9, pool=1, **asked)
    events: list[Event] = [opened("greedy"), first, second, SchedulingPoint(time=0)]
    answers = [run.push(Envelope(run="r", sequence=at, event=event)) for at, event in enumerate(events)]
    assert answers[-1] is not None
    assert isinstance(answers[-1].event, Rejected)
    assert answers[-1].event.reason.endswith(reason)
    assert "policy 'greedy' starts" in answers[-1].event.reason
