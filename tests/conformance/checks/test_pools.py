"""A machine of pools with memory and GPUs: nothing is over-allocated, and no pool knows of another."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import CapacityChanged, ClusterOpened, Decided, Event, JobStarted
from shadowtime.shared.stages.stage import StageRun
from shadowtime.testing.chain import Chain
from shadowtime.testing.examples import examples
from tests.support.occupancy import Occupancy
from tests.support.strategies.pools import LEAVES, POOLED_OPENINGS, POOLS, PROCESSORS, pooled_logs, pooled_workloads


@given(opened=POOLED_OPENINGS, jobs=pooled_workloads(), changes=LEAVES)
@examples(300)
def test_nothing_is_over_allocated_by_any_policy(
    opened: ClusterOpened, jobs: Workload, changes: list[CapacityChanged]
) -> None:
    machine, started = Occupancy(POOLS), set()
    for event, answer in Chain(opened).play(Machine(jobs, changes)):
        if isinstance(answer.event, Decided):
            machine.require_room(answer.event.starts)
        machine.see(event)
        if isinstance(event, JobStarted):
            held = machine.running[event.job_number]
            left = machine.free(held.pool)
            assert all(left[name] >= 0 for name, size in held.size.items() if size and name in left), (event, left)
            started.add(event.job_number)
    assert started == {job.job_number for job in jobs}
    assert not machine.running


@given(log=pooled_logs())
@examples(300)
def test_nothing_is_over_allocated_whatever_real_clusters_do(log: tuple[ClusterOpened, list[Event]]) -> None:
    machine, chain = Occupancy(POOLS), Chain(log[0])
    chain.push(log[0])
    scheduler: Any = chain.stages["scheduler"].handler
    for event in log[1]:
        answer = chain.push(event).event
        if isinstance(answer, Decided):
            machine.require_room(answer.starts)
        machine.see(event)
        held = [job.started.gpu_types or () for job in scheduler.jobs.running.values() if job.submitted.pool == 1]
        sums = [sum(kind.gpus for kinds in held for kind in kinds if kind.name == name) for name in ("a100", "v100")]
        left = [has - total for has, total in zip(scheduler.capacities[1].of_types, sums, strict=True)]
        assert left == scheduler.pools[1].idle.tolist()[3:], event
    for pool in scheduler.pools:
        assert (len(pool.queue), len(pool.running), pool.used, pool.suspended) == (0, 0, 0, {})
        assert pool.idle.tolist() == pool.amounts
    assert not scheduler.places


@given(log=pooled_logs(), data=st.data())
def test_every_stage_goes_on_after_a_restart(log: tuple[ClusterOpened, list[Event]], data: st.DataObject) -> None:
    chain = Chain(log[0])
    for event in (log[0], *log[1]):
        chain.push(event)
    cut = data.draw(st.integers(1, len(log[1])))
    for stage in STAGES:
        read = chain.read[stage.name]
        whole, again = StageRun(stage), StageRun(stage)
        for envelope in read[:cut]:
            whole.push(envelope)
        again.restore(whole.snapshot())
        for envelope in read[cut:]:
            assert again.push(envelope) == whole.push(envelope), stage.name
        assert again.snapshot() == whole.snapshot(), stage.name


def starts_of(opened: ClusterOpened, jobs: Workload, changes: list[CapacityChanged]) -> dict[int, int]:
    events = [event for event, _ in Chain(opened).play(Machine(jobs, changes))]
    return {event.job_number: event.time for event in events if isinstance(event, JobStarted)}


@pytest.mark.parametrize(
    "policy", ["easy", "conservative", "probabilistic:budget=0.5", "guarded:queue=saf,threshold=20"]
)
@given(jobs=pooled_workloads(), changes=LEAVES)
@examples(40)
def test_a_pool_is_as_a_machine_alone(policy: str, jobs: Workload, changes: list[CapacityChanged]) -> None:
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS, pools=POOLS, policy=policy)
    together = starts_of(opened, jobs, changes)
    for at, pool in enumerate(POOLS):
        rows = jobs.columns["pool"] == at
        if not rows.any():
            continue
        columns = {name: column[rows] for name, column in jobs.columns.items()}
        columns["pool"] = np.zeros(int(rows.sum()), dtype=np.int64)
        own = replace(jobs, columns=columns, processors=pool.processors, pools=(pool,))
        alone = opened.model_copy(update={"processors": pool.processors, "pools": (pool,)})
        of_pool = [each.model_copy(update={"pool": 0}) for each in changes if each.pool == at]
        assert starts_of(alone, own, of_pool) == {number: together[number] for number in columns["job_number"].tolist()}
