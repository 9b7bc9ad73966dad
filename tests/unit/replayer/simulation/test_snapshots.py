"""What a snapshot must refuse, and what it must carry."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.shared.errors import ReplayError, SnapshotMismatch
from shadowtime.shared.messages.decisions import Kill, Start
from shadowtime.shared.messages.envelope import CapacityChanged, ClusterOpened, Decided, Envelope, JobEnded
from shadowtime.shared.messages.reasons import FitsNow
from shadowtime.shared.stages.stage import StageRun
from tests.support.small_logs import generated, job, plan_of, workload_of

OPENED = ClusterOpened(time=0, cluster="c", processors=4)


def stepped(policy: str, steps: int) -> EmbeddedReplay:
    replay = plan_of(generated(), policy).replay()
    for _ in range(steps):
        replay.step()
    return replay


def test_a_snapshot_of_other_settings_is_refused() -> None:
    other = plan_of(generated(), "easy").replay()
    with pytest.raises(SnapshotMismatch, match="the snapshot has settings"):
        other.restore(stepped("fcfs", 30).snapshot())


def test_a_used_replay_goes_back_to_the_beginning() -> None:
    replay = stepped("easy", 0)
    beginning, whole = replay.snapshot(), stepped("easy", 0).run_to_end()
    for _ in range(30):
        replay.step()
    replay.restore(beginning)
    assert replay.run_to_end() == whole


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"[]", b"null", b"{}"])
def test_a_damaged_snapshot_is_named(damage: bytes) -> None:
    with pytest.raises(SnapshotMismatch):
        StageRun(STAGES[0]).restore(damage)
    with pytest.raises(SnapshotMismatch):
        stepped("easy", 0).restore(damage)


@pytest.mark.parametrize("field", ["opened", "sequence", "state"])
def test_a_snapshot_without_a_field_is_named(field: str) -> None:
    run = StageRun(STAGES[0])
    run.push(Envelope(run="r", sequence=0, event=OPENED))
    saved = json.loads(run.snapshot())
    del saved[field]
    with pytest.raises(SnapshotMismatch, match="damaged"):
        StageRun(STAGES[0]).restore(json.dumps(saved).encode())


def test_the_state_of_a_policy_travels(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler, again = Scheduler(OPENED), Scheduler(OPENED)
    taken: list[Any] = []
    monkeypatch.setattr(scheduler.pools[0].policy, "snapshot", lambda: {"spent": 0.5}, raising=False)
    monkeypatch.setattr(again.pools[0].policy, "restore", taken.append, raising=False)
    again.restore(scheduler.snapshot())
    assert taken == [{"spent": 0.5}]


def started(
    capacity: tuple[CapacityChanged, ...] = (), jobs: int = 8, waiting: tuple[dict[str, int], ...] = ()
) -> tuple[Machine, Callable[[], Machine]]:
    """Return a machine on which jobs 1, 2, … run 10, 20, … seconds, and what makes another over the same log."""
    running = [job(n, run_time=10 * n, requested_time=1000) for n in range(1, jobs + 1)]
    workload = workload_of(*running, *waiting, processors=jobs)
    machine = Machine(workload, capacity)
    machine.next_instant()
    starts = tuple(Start(job_number=n, processors=1, limit=1000, reason=FitsNow()) for n in range(1, jobs + 1))
    machine.apply(Decided(time=0, starts=starts))
    return machine, lambda: Machine(workload, capacity)


@pytest.mark.parametrize("killed", range(1, 9))
def test_the_others_still_end_in_order_after_a_kill(killed: int) -> None:
    machine, _ = started()
    machine.apply(Decided(time=0, kills=(Kill(job_number=killed, requeue=False, reason="test"),)))
    ends = []
    while events := machine.next_instant():
        ends += [(event.time, event.job_number) for event in events if isinstance(event, JobEnded)]
    assert ends == [(10 * n, n) for n in range(1, 9) if n != killed]


def test_the_size_of_the_machine_travels() -> None:
    capacity = CapacityChanged(time=5, processors=3), CapacityChanged(time=15, processors=9)
    machine, another = started(capacity, waiting=(job(9, processors=3),))
    machine.next_instant()
    again = another()
    again.restore(machine.snapshot())
    for each in (machine, again):
        assert [event.kind for event in each.next_instant()] == ["JobEnded", "SchedulingPoint"]
        each.next_instant()
        assert each.snapshot()["changed"] == 2
        assert not each.can_start()
        wide = Start(job_number=9, processors=3, limit=1000, reason=FitsNow())
        with pytest.raises(ReplayError, match="on 3 processors; the machine has 2 free"):
            each.apply(Decided(time=15, starts=(wide,)))
