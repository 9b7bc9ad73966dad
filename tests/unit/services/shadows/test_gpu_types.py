"""A shadow keeps types of GPUs apart as its cluster does."""

import pytest

from shadowtime.shared.messages.envelope import CapacityChanged, Decided, Event, JobStarted, JobSuspended
from tests.support.gpu_jobs import POOL, contending
from tests.support.occupancy import OF_TYPE, Occupancy
from tests.support.shadow_beside import Beside, closed, played, settings, told


@pytest.mark.parametrize("policy", ["easy", "conservative", "best"])
def test_an_exact_shadow_is_a_closed_replay_with_types(policy: str) -> None:
    jobs = contending(5)
    source = Beside(told(closed(jobs, "fcfs")), exact=True, kills=0.1)
    shadow, replay = played(settings(jobs, policy), source), closed(jobs, policy)
    assert [each.to_bytes() for each in shadow] == [each.to_bytes() for each in replay]
    assert any(isinstance(each.event, JobStarted) and each.event.gpu_types for each in shadow)


@pytest.mark.parametrize("seed", range(3))
def test_a_shadow_by_predictions_starts_no_job_beyond_a_type(seed: int) -> None:
    jobs = contending(seed)
    machine, log = Occupancy([POOL]), list[Event]()
    for envelope in played(settings(jobs, "easy"), Beside(told(closed(jobs, "fcfs")), exact=False, kills=0.1)):
        if isinstance(envelope.event, Decided):
            machine.require_room(envelope.event.starts)
        machine.see(envelope.event)
        log.append(envelope.event)
    lent = [event for event in log if isinstance(event, CapacityChanged)]
    assert any(isinstance(event, JobSuspended) for event in log)
    most = {kind.name: kind.gpus for kind in POOL.gpu_types or ()}
    assert any(kind.gpus > most[kind.name] for event in lent for kind in event.gpu_types or ())
    assert lent[-1].gpu_types == POOL.gpu_types, "all that was lent was given back"
    assert not machine.running
    assert not machine.waiting


def test_before_it_takes_over_a_shadow_holds_what_the_jobs_of_its_cluster_got() -> None:
    jobs = contending(4)
    real = told(closed(jobs, "fcfs"))
    source = Beside(real, exact=True, takes_over=60, kills=0.1)
    shadow = told(played(settings(jobs, "easy"), source))
    before = [event for event in real[1:] if event.time < 60]
    assert shadow[1 : len(before) + 1] == before
    machine = Occupancy([POOL])
    for event in shadow:
        machine.see(event)
        assert min(left for name, left in machine.free(0).items() if name.startswith(OF_TYPE)) >= 0, event
