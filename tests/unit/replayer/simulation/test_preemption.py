"""A policy that preempts: what it kills waits again, and the whole pipeline carries it."""

from collections.abc import Sequence
from typing import Any

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.services.scheduler.policy import FITS_NOW, Output, start
from shadowtime.services.scheduler.tables.job_table import Queue, Running
from shadowtime.shared.messages.decisions import Kill
from shadowtime.shared.messages.envelope import Envelope, JobEnded, JobStarted
from tests.support.small_logs import job, plan_of, workload_of


def narrow_first(self: Any, now: int, queue: Queue, running: Running, free: int) -> Sequence[Output]:
    """Start the narrowest job that waits; kill what runs on more processors than it needs, if nothing else helps."""
    if not len(queue):
        return []
    row = min(range(len(queue)), key=lambda each: (int(queue.processors[each]), int(queue.job_number[each])))
    needed = int(queue.processors[row])
    if needed <= free:
        return [start(queue, row, FITS_NOW)]
    wider = [at for at in range(len(running)) if int(running.processors[at]) > needed]
    if not wider:
        return []
    killed = Kill(job_number=int(running.job_number[wider[0]]), requeue=True, reason="a narrower job came")
    return [killed, start(queue, row, FITS_NOW)]


def test_a_preempted_job_waits_and_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.services.scheduler.policies.fcfs.Fcfs.schedule", narrow_first)
    monkeypatch.setattr("shadowtime.services.scheduler.policies.fcfs.Fcfs.starts_only", False)
    log: list[Envelope] = []
    workload = workload_of(job(1, processors=4, run_time=60), job(2, submit_time=10, run_time=20))
    carry_out(plan_of(workload, "fcfs"), [log.append])

    events = [each.event for each in log]
    starts = [(each.time, each.job_number) for each in events if isinstance(each, JobStarted)]
    ends = [(each.time, each.job_number, each.outcome, each.requeued) for each in events if isinstance(each, JobEnded)]
    assert starts == [(0, 1), (10, 2), (30, 1)]
    assert ends == [(10, 1, "killed", True), (30, 2, "completed", False), (90, 1, "completed", False)]
