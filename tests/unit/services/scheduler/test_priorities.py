"""The site's priorities, and jobs that it blocks, in three pools: each pass against the textbook, and by hand."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.handler import BLOCKED, Scheduler
from shadowtime.shared.cluster.event_order import in_order
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.messages.reasons import ProbablyHarmless
from shadowtime.shared.stages.jobs_in_system import only_priority
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.text.events import sentences
from shadowtime.shared.text.reasons import RunContext
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from tests.support import textbook_pools
from tests.support.occupancy import Occupancy, Size
from tests.support.strategies.pools import LEAVES, POOLS, pooled_workloads
from tests.support.textbook_pools import Conservative, Ends, heads_of, held_of
from tests.support.told_scheduler import Told
from tests.unit.services.scheduler.pool_points import EITHER, NOTHING, TAU, delay, ends_of, opened, started

RELEASED = 90
"""When all is as it was at first: nothing is blocked from then on. There is a change of capacity at that time."""


class Site(Machine):
    """A machine whose site gives waiting jobs other priorities whenever something happens, and blocks some."""

    def __init__(self, jobs: Workload, changes: Sequence[CapacityChanged], chance: Random) -> None:
        super().__init__(jobs, changes)
        self._chance = chance

    def next_instant(self) -> Sequence[Event]:
        waiting = list(self._waiting)
        events = [self._submitted(event) for event in super().next_instant()]
        return in_order([*filter(None, map(self._told_of, waiting)), *events]) if events else ()

    def _submitted(self, event: Event) -> Event:
        if not isinstance(event, JobSubmitted):
            return event
        blocked = True if event.time < RELEASED and self._chance.random() < 0.2 else None
        priority = self._chance.choice((None, self._chance.randint(0, 5)))
        return event.model_copy(update={"priority": priority, "blocked": blocked})

    def _told_of(self, number: int) -> JobChanged | None:
        priority = self._chance.choice((None, None, self._chance.randint(0, 5)))
        blocked = self._chance.choice((None, None, None, True, False)) if self._time < RELEASED else False
        told = JobChanged(time=self._time, job_number=number, priority=priority, blocked=blocked)
        return None if priority is blocked is None else told


@st.composite
def sites(draw: st.DrawFn) -> Site:
    return Site(draw(pooled_workloads()), draw(LEAVES), draw(st.randoms(use_true_random=False)))


def by_priority(jobs: Sequence[JobSubmitted]) -> list[JobSubmitted]:
    return sorted(jobs, key=lambda job: math.inf if job.priority is None else -job.priority)


def behind_the_head(jobs: Sequence[JobSubmitted], free: Size) -> list[JobSubmitted]:
    """Return the jobs as they came up to the first that does not fit, and behind it by priority."""
    heads = 1 + len(heads_of(list(jobs), free))
    return [*jobs[:heads], *by_priority(jobs[heads:])]


def may_start(machine: Occupancy, pool: int) -> list[JobSubmitted]:
    return [job for job in machine.queue(pool) if not job.blocked]


def passes(chain: Chain, site: Site) -> Iterator[tuple[Event, Envelope, Occupancy]]:
    """Yield what happens, what is answered, and how the machine was before it."""
    machine = Occupancy(POOLS)
    for event, answer in chain.play(site):
        yield event, answer, machine
        machine.see(event)


Arranged = Callable[[Sequence[JobSubmitted], Size], list[JobSubmitted]]
EASY: dict[str, Arranged] = {
    "easy:queue=priority": lambda jobs, _: by_priority(jobs),
    "easy:candidates=priority": behind_the_head,
    "guarded:queue=priority": lambda jobs, _: by_priority(jobs),
    "probabilistic:queue=priority": lambda jobs, _: by_priority(jobs),
}
"""By requests all of them are EASY."""


@pytest.mark.parametrize("policy", EASY)
@given(site=sites())
def test_easy_is_the_textbook(policy: str, site: Site) -> None:
    for event, answer, machine in passes(Chain(opened(policy)), site):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                running, _ = held_of(machine, pool)
                free = machine.free(pool)
                expected += textbook_pools.easy(event.time, EASY[policy](may_start(machine, pool), free), running, free)
            assert started(answer.event) == expected


@given(site=sites())
def test_conservative_is_the_textbook(site: Site) -> None:
    """A new priority moves a job to an earlier place where there is one, and costs no job its place."""
    plans, freed = [Conservative() for _ in POOLS], [False] * len(POOLS)
    for event, answer, machine in passes(Chain(opened("conservative:queue=priority")), site):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool, plan in enumerate(plans):
                queue, (running, _) = by_priority(may_start(machine, pool)), held_of(machine, pool)
                expected += plan.starts(event.time, queue, running, machine.rooms[pool], NOTHING, freed=freed[pool])
                freed[pool] = False
            assert started(answer.event) == expected
        elif isinstance(event, JobEnded):
            freed[machine.running[event.job_number].pool] = True
        elif isinstance(event, CapacityChanged):
            freed[event.pool or 0] = True
        elif isinstance(event, JobChanged):
            job = machine.waiting[event.job_number]
            freed[job.pool or 0] |= not job.blocked
            if not only_priority(event):  # then it leaves, and comes back if it may start
                plans[job.pool or 0].places.pop(event.job_number, None)


@pytest.mark.parametrize("policy", ["all-reserve:queue=priority", "conservative:queue=priority,guarantees=no"])
@given(site=sites())
def test_a_plan_made_anew_is_the_textbook(policy: str, site: Site) -> None:
    for event, answer, machine in passes(Chain(opened(policy)), site):
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                queue, (running, _) = by_priority(may_start(machine, pool)), held_of(machine, pool)
                room = machine.rooms[pool]
                expected += Conservative().starts(event.time, queue, running, room, NOTHING, freed=False)
            assert started(answer.event) == expected


def ends(predicted: Mapping[int, Envelope], machine: Occupancy, now: int, number: int) -> Ends:
    return ends_of(predicted[number], machine, now)


@given(site=sites())
def test_probabilistic_is_the_textbook(site: Site) -> None:
    predicted: dict[int, Envelope] = {}
    chain = Chain(opened(f"probabilistic:tau={TAU},queue=priority", "empirical"))
    for event, answer, machine in passes(chain, site):
        said = chain.read["scheduler"][-1]
        if isinstance(event, JobSubmitted):
            predicted[event.job_number] = said
        elif isinstance(event, JobChanged) and not only_priority(event):
            renewed = predicted[event.job_number].model_copy(update={"run_time": said.run_time})
            predicted[event.job_number] = renewed
        elif isinstance(event, JobChanged):
            assert said.run_time is None  # what was predicted stands
        if isinstance(answer.event, Decided):
            expected: list[int] = []
            for pool in range(len(POOLS)):
                queue, (running, numbers) = by_priority(may_start(machine, pool)), held_of(machine, pool)
                now = event.time
                expected += textbook_pools.probabilistic(
                    *(now, queue, running, machine.free(pool), TAU),
                    *(partial(ends, predicted, machine, now), numbers, delay),
                )
            assert started(answer.event) == expected


POLICIES = [
    *EASY,
    "probabilistic:queue=priority,tau=0.9,budget=0.95,patience=1,recalibrate=yes",
    "conservative:queue=priority",
    "all-reserve:queue=priority",
    "guarded:queue=priority,threshold=40,overtaken=0.5,patience=80",
    "tuned:orders=spf,thresholds=40,overtaken=0.5,patience=1,least=3,every=9",
    "fcfs",
    "lwf:forecast=yes",
    "easy:candidates=priority,forecast=yes",
]


def without_blocked(events: Sequence[Event]) -> list[Event]:
    """Return a log in which blocked jobs are held: they leave, and are submitted when they may start."""
    log: list[Event] = []
    jobs = Occupancy(POOLS)
    for event in events:
        before = jobs.waiting.get(event.job_number) if isinstance(event, JobChanged) else None
        jobs.see(event)
        if isinstance(event, JobSubmitted) and event.blocked:
            continue
        if not isinstance(event, JobChanged) or before is None or (only_priority(event) and not before.blocked):
            log.append(event)
            continue
        now = jobs.waiting[event.job_number]
        if not before.blocked:
            log.append(JobWithdrawn(time=event.time, job_number=event.job_number, reason="held"))
        if not now.blocked:
            log.append(now.model_copy(update={"time": event.time}))
    return log


@pytest.mark.few(5)
@pytest.mark.parametrize("policy", POLICIES)
@given(site=sites(), data=st.data())
@examples(40)
def test_a_blocked_job_is_as_one_that_is_not_there_also_after_a_restart(
    policy: str, site: Site, data: st.DataObject
) -> None:
    chain = Chain(opened(canonical("policy", policy)))
    played = [(event, answer.event) for event, answer in chain.play(site)]
    answers = [answer for _, answer in played if isinstance(answer, Decided)]
    other = Chain(chain.opened)
    told = [other.push(event).event for event in without_blocked([event for event, _ in played])]
    assert [answer for answer in told if isinstance(answer, Decided)] == answers
    log = chain.read["scheduler"]
    cut = data.draw(st.integers(1, len(log)))
    whole, again = (StageRun(chain.stages["scheduler"].stage) for _ in range(2))
    for envelope in log[:cut]:
        whole.push(envelope)
    again.restore(whole.snapshot())
    assert again.snapshot() == whole.snapshot()
    for envelope in log[cut:]:
        assert again.push(envelope) == whole.push(envelope)
    assert again.snapshot() == whole.snapshot()
    handler = again.handler
    assert isinstance(handler, Scheduler)
    assert not any(pool.queue.priorities or pool.queue.fractions for pool in handler.pools)
    assert not handler.blocked


# By hand


def submitted(number: int, processors: int, seconds: int, time: int = 0, **more: object) -> JobSubmitted:
    job = JobSubmitted(time=time, job_number=number, requested_processors=processors, requested_time=seconds)
    return job.model_copy(update=more)


def changed(number: int, time: int = 0, **more: object) -> JobChanged:
    return JobChanged(time=time, job_number=number).model_copy(update=more)


def test_a_job_that_may_not_start_is_no_head_and_a_priority_puts_one_first() -> None:
    told = Told(policy="easy", keys="queue=priority")
    told.submit(9, 6, 100)
    told.start(9, 6, limit=100)
    told.tell(submitted(1, 8, 100, priority=7))
    told.tell(submitted(2, 5, 50, priority=5))
    told.tell(submitted(3, 4, 500))
    assert told.numbers(1) == []  # it would delay job 1
    told.tell(changed(1, 1, blocked=True))
    assert told.numbers(1) == [3]  # job 2 can start beside it
    told.tell(changed(3, 2, priority=9, blocked=True))
    assert told.numbers(2) == []
    told.tell(changed(3, 3, blocked=False))
    assert told.numbers(3) == [3]
    told.tell(changed(1, 4, blocked=False))
    assert told.numbers(4) == told.restarted().numbers(4) == [3]  # by its own priority it goes first
    told.tell(changed(1, 5, priority=1000))
    assert told.numbers(5) == told.restarted().numbers(5) == []


def test_the_machine_may_start_what_is_told_to_be_blocked() -> None:
    told = Told(policy="probabilistic", keys="queue=priority,budget=0.5")
    told.tell(submitted(1, 8, 100, blocked=True), RunTimePrediction(point=40.0, observations=2))
    assert told.numbers(0) == []
    told.start(1, 8, time=5, limit=100)
    assert told.scheduler.running.predicted_time.tolist() == [40]
    told.tell(changed(1, 6, priority=3))
    told.end(1, 9, requeued=True)  # nothing blocks it any more
    assert told.numbers(9) == [1]
    assert told.scheduler.queue.priorities == {1: 3}


def test_what_a_head_was_put_to_stays_with_it_when_its_priority_changes() -> None:
    told = Told(policy="probabilistic", keys="queue=priority,tau=1,budget=0.9")
    told.submit(9, 6, 3600, point=15.0, histogram=EITHER)
    told.start(9, 6, limit=3600)
    told.tell(submitted(1, 8, 100, priority=5))
    told.submit(3, 3, 3600, point=15.0, histogram=EITHER)
    (start,) = told.starts(1)
    assert isinstance(start.reason, ProbablyHarmless)
    spent = told.scheduler.policy.snapshot()["spent"]
    assert spent == [(1, pytest.approx(start.reason.probability))]
    told.tell(changed(1, 2, priority=50))
    assert told.scheduler.policy.snapshot()["spent"] == spent


def test_no_wait_is_forecast_of_a_job_that_may_not_start() -> None:
    chain = Chain(ClusterOpened(time=0, cluster="c", processors=8, policy=canonical("policy", "easy:forecast=yes")))
    chain.push(chain.opened)
    assert chain.push(submitted(1, 4, 100, blocked=True)).forecast == BLOCKED
    forecast = chain.push(changed(1, 5, blocked=False)).forecast
    assert forecast is not None
    assert forecast.wait == 0


def test_advice_names_the_head_and_the_probability_that_it_is_delayed() -> None:
    """Job 4700 holds 6 of the 10 processors of its pool, and job 4702 is the first that may start there."""
    pools = Pool(name="a", processors=4), Pool(name="b", processors=10)
    policy = canonical("policy", "probabilistic:queue=priority,tau=0.5")
    run = ClusterOpened(time=0, cluster="c", processors=14, pools=pools, mode="recorded", policy=policy)
    stage = StageRun(Chain(run).stages["scheduler"].stage)

    def tell(event: Event, *, known: bool = True) -> Envelope:
        prediction = RunTimePrediction(point=15.0, observations=2, histogram=EITHER) if known else None
        answer = stage.push(Envelope(run="r", sequence=stage.sequence + 1, event=event, run_time=prediction))
        assert answer is not None
        return answer

    tell(run, known=False)
    tell(submitted(4700, 6, 3600, pool=1))
    tell(JobStarted(time=0, job_number=4700, processors=6, limit=3600))
    tell(submitted(4701, 9, 100, pool=1, priority=99, blocked=True), known=False)
    tell(submitted(4711, 3, 3600, pool=1, priority=5))
    tell(submitted(4702, 8, 100, pool=1, priority=70), known=False)
    answer = tell(SchedulingPoint(time=0), known=False)
    assert [str(each) for each in sentences(answer, RunContext.of(run))] == [
        "job 4711 (3 procs) could start now: backfilled, delays job 4702 with 25 %, budget left 75 %"
    ]


def test_no_shadow_machine_follows_priorities() -> None:
    with pytest.raises(
        SettingsError, match="orders=priority: order priority: the sort keys of this order may change as jobs wait"
    ):
        canonical("policy", "tuned:orders=priority")
