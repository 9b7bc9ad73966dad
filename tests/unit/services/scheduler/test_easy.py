"""EASY and EASY-SJBF against the textbook, and what backfilling promises the head of the queue."""

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.policy import Policy
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.tables.job_table import NEVER
from shadowtime.shared.kernels.easy_backfill import shadow_of
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, JobStarted, JobSubmitted, SchedulingPoint
from shadowtime.shared.messages.reasons import Backfilled, FitsNow
from shadowtime.shared.spec import Spec
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, StartedJob, WaitingJob, instances
from shadowtime.testing.workloads import workloads
from tests.support.textbook_easy import easy, expected_ends_of, run_time, shadow
from tests.support.told_scheduler import Told

EASY, SJBF = POLICIES.build(Spec("easy")), POLICIES.build(Spec("easy-sjbf"))
BEYOND = 1 << 60


def decide(policy: Policy, instance: Instance) -> list[Start]:
    decisions = policy.schedule(instance.now, *instance.tables(), instance.free)
    return [each for each in decisions if isinstance(each, Start)]


# The twin


@given(instance=instances())
@examples(800)
def test_easy_is_the_textbook(instance: Instance) -> None:
    assert decide(EASY, instance) == easy(instance)


@given(instance=instances())
@examples(800)
def test_easy_sjbf_is_the_textbook_with_sorted_candidates(instance: Instance) -> None:
    assert decide(SJBF, instance) == easy(instance, shortest_first=True)


@pytest.mark.parametrize("policy", [EASY, SJBF], ids=["easy", "easy-sjbf"])
@given(instance=instances())
@examples(300)
def test_a_candidate_starts_just_if_it_does_not_delay_the_head(policy: Policy, instance: Instance) -> None:
    """Brute force: plan the head anew with and without each candidate on the machine."""
    assume(instance.free > 0)
    starts = decide(policy, instance)
    jobs = {job.job_number: job for job in instance.queue}
    heads = [start for start in starts if start.reason == FitsNow()]
    assert [start.job_number for start in heads] == [job.job_number for job in instance.queue[: len(heads)]]
    waiting = instance.queue[len(heads) :]
    if not waiting:
        return
    uses = instance.uses
    ends = expected_ends_of(instance)
    ends += [
        (instance.now + run_time(jobs[each.job_number], truncate=uses.adjust_candidates), each.processors)
        for each in heads
    ]
    free = instance.free - sum(each.processors for each in heads)
    head, *candidates = waiting
    assert head.processors > free
    if policy is SJBF:
        candidates.sort(key=lambda job: (run_time(job, truncate=uses.adjust_queue), job.submit_time, job.job_number))
    accepted = []
    for job in candidates:
        with_job = [*ends, (instance.now + run_time(job, truncate=uses.adjust_candidates), job.processors)]
        planned, _ = shadow(head.processors, free, ends)
        delayed, _ = shadow(head.processors, free - job.processors, with_job)
        if job.processors <= free and (planned is None or delayed == planned):
            accepted.append(job.job_number)
            free, ends = free - job.processors, with_job
    assert accepted == [each.job_number for each in starts[len(heads) :]]


# Kernels

SMALL = st.integers(1, 9)
PAIRS = st.lists(st.tuples(SMALL, st.integers(0, 6)), max_size=8)


def column(values: Sequence[int]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.array(values, dtype=np.int64)


@given(needed=st.integers(1, 30), free=st.integers(-5, 10), pairs=PAIRS)
@examples(500)
def test_shadow_of_is_its_plain_twin(needed: int, free: int, pairs: list[tuple[int, int]]) -> None:
    assume(free < needed)
    sizes, ends = column([size for size, _ in pairs]).reshape(-1, 1), column([end for _, end in pairs])
    time, extra = shadow(needed, free, [(end, size) for size, end in pairs])
    found = shadow_of(column([needed]), column([free]), sizes, ends)
    assert (found[0], found[1].tolist()) == (BEYOND if time is None else time, [extra])


# By hand


def waiting(job_number: int, processors: int, seconds: int) -> WaitingJob:
    return WaitingJob(job_number, job_number, processors, seconds, seconds)


def running(job_number: int, processors: int, until: int) -> StartedJob:
    return StartedJob(job_number, 0, processors, until, until, 0)


def numbers(starts: Sequence[Start]) -> list[int]:
    return [each.job_number for each in starts]


def test_candidates_are_tried_shortest_first_ties_in_order_of_the_queue() -> None:
    queue = [waiting(1, 8, 50), waiting(2, 2, 30), waiting(3, 2, 10), waiting(4, 2, 30), waiting(5, 1, 10)]
    instance = Instance(20, 5, queue, [running(9, 5, 100)], ())
    assert numbers(decide(SJBF, instance)) == [3, 5, 2]
    assert numbers(decide(EASY, instance)) == [2, 3, 5]


def test_heads_that_start_in_this_pass_count_for_the_shadow() -> None:
    queue = [waiting(1, 3, 40), waiting(2, 5, 10), waiting(3, 1, 41), waiting(4, 1, 40)]
    first, backfilled = decide(EASY, Instance(20, 5, queue, [running(9, 3, 500)], ()))
    assert (first.job_number, first.reason) == (1, FitsNow())
    assert backfilled.job_number == 4
    assert backfilled.reason == Backfilled(
        head=2, shadow_time=60, extra_processors=0, expected_end=60, ends_by_shadow_time=True
    )


def test_a_head_larger_than_the_machine_blocks_nobody() -> None:
    queue = [waiting(1, 9, 10), waiting(2, 2, NEVER), waiting(3, 2, 10)]
    starts = decide(EASY, Instance(20, 3, queue, [running(9, 1, 100)], ()))
    assert starts == [
        Start(
            job_number=2,
            processors=2,
            limit=None,
            reason=Backfilled(head=1, shadow_time=None, extra_processors=4, ends_by_shadow_time=True),
        )
    ]


def test_behind_a_job_without_a_request_only_extra_processors_serve() -> None:
    queue = [waiting(1, 4, 10), waiting(2, 2, 1000), waiting(3, 1, NEVER)]
    holder = StartedJob(9, 0, 3, NEVER, NEVER, 5)
    for free, expected in ((2, [2]), (3, [2, 3])):
        starts = decide(EASY, Instance(20, free, queue, [holder], ()))
        assert numbers(starts) == expected
        assert starts[0].reason == Backfilled(
            head=1, shadow_time=None, extra_processors=free - 1, expected_end=1020, ends_by_shadow_time=True
        )


# The promise


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf"])
@given(jobs=workloads(beyond_request=False))
@examples(150)
def test_the_head_starts_by_every_shadow_time_it_was_ever_given(policy: str, jobs: Workload) -> None:
    chain = Chain(ClusterOpened(time=0, cluster="c", processors=jobs.processors, policy=policy))
    promised: dict[int, int] = {}
    for event, answer in chain.play(Machine(jobs)):
        if isinstance(event, JobStarted):
            assert event.time <= promised.pop(event.job_number, event.time)
        if not isinstance(event, SchedulingPoint):
            continue
        assert isinstance(answer.event, Decided)
        scheduler = chain.stages["scheduler"].handler
        assert isinstance(scheduler, Scheduler)
        started = set(numbers(answer.event.starts))
        (pool,) = scheduler.pools
        table = pool.running
        ends = list(zip((table.start_time + table.predicted_time).tolist(), table.processors.tolist(), strict=True))
        free, queue = pool.free, pool.queue
        for row, number in enumerate(queue.job_number.tolist()):
            size, seconds = int(queue.processors[row]), int(queue.predicted_time[row])
            if number not in started:
                time, _ = shadow(size, free, ends)
                assert time is not None
                promised[number] = min(promised.get(number, time), time)
                break
            free -= size
            ends.append((event.time + seconds, size))


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "easy:queue=wfp3", "guarded", "probabilistic"])
@pytest.mark.parametrize("begin", [0, -10_000])
def test_the_head_is_not_delayed_before_second_0_either(policy: str, begin: int) -> None:
    told = Told(processors=4, policy=policy, begin=begin)
    told.tell(JobSubmitted(time=begin, job_number=1, requested_processors=3, requested_time=100))
    told.start(1, 3, begin)
    told.tell(JobSubmitted(time=begin, job_number=2, requested_processors=4, requested_time=100))
    told.tell(JobSubmitted(time=begin, job_number=3, requested_processors=1, requested_time=1_000))
    answer = told.tell(SchedulingPoint(time=begin))
    assert isinstance(answer, Decided)
    assert answer.starts == ()
