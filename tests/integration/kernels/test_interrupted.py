"""Ctrl-C while the compiled machine runs, or while a process starts."""

import multiprocessing
import os
import signal
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.io.worker_processes import in_processes
from shadowtime.services.scheduler.machine import whole_log
from shadowtime.services.scheduler.machine.whole_log import LogMachine, MachineJobs, machine_policy
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.spec import parse


def test_a_kernel_ends_before_ctrl_c_is_raised(monkeypatch: pytest.MonkeyPatch) -> None:
    """Numba makes the results in Python: an exception there had ended the process with a segmentation fault."""
    advance = whole_log.advance_one

    def interrupted(*arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return advance(*arguments)

    monkeypatch.setattr(whole_log, "advance_one", interrupted)
    opened = ClusterOpened(time=0, cluster="c", processors=4, policy="fcfs", mode="closed")
    policy = machine_policy(POLICIES.build(parse("fcfs")), opened)
    assert policy is not None
    times = np.array([60, 60])
    jobs = MachineJobs(np.array([1, 2]), np.array([0, 5]), np.array([4, 1]), times, times, np.ones(2, dtype=np.int64))
    machine = LogMachine(policy, jobs, np.array([[0], [4]]))
    machine.plan_as_requested()
    with pytest.raises(KeyboardInterrupt):
        machine.run(1000)
    assert machine.starts.tolist() == [0, 60]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_process_that_starts_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that was half started survived its parent, and ended with a traceback."""
    submit = ProcessPoolExecutor.submit
    submitted: list[Any] = []

    def interrupted(self: ProcessPoolExecutor, *arguments: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        submitted.append(submit(self, *arguments))
        return submitted[0]

    monkeypatch.setattr(ProcessPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        list(in_processes(abs, [-1], 1, str))
    assert len(submitted) == 1
    assert not multiprocessing.active_children()
