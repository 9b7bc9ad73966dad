"""Replays in processes of their own say what they say in one process."""

import signal
from typing import Any

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.replayer.comparison.run_record import RunRecord
from shadowtime.replayer.comparison.side_by_side import pays, replay_on_cores
from shadowtime.replayer.io import Interruption, in_processes
from shadowtime.shared.errors import ReplayError
from tests.support.small_logs import generated, plan_of


def test_results_and_records_are_those_of_one_process() -> None:
    plans = [plan_of(generated(jobs=60), policy) for policy in ("easy", "fcfs", "wfp")]
    here, there = ([RunRecord(plan) for plan in plans] for _ in range(2))
    expected = [carry_out(plan, [record]) for plan, record in zip(plans, here, strict=True)]
    results = replay_on_cores(plans, [[record] for record in there], Interruption())
    assert [result.scores for result in results] == [result.scores for result in expected]
    assert [record.decisions_sha256 for record in there] == [record.decisions_sha256 for record in here]
    assert [record.jobs.wait.tolist() for record in there] == [record.jobs.wait.tolist() for record in here]


def test_ctrl_c_ends_all_of_them() -> None:
    plans = [plan_of(generated(jobs=60), policy) for policy in ("easy", "fcfs")]
    with Interruption() as interruption:
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            replay_on_cores(plans, [[], []], interruption)


def killed(number: int) -> Any:
    signal.raise_signal(signal.SIGKILL)


def test_a_process_that_dies_is_named() -> None:
    with pytest.raises(ReplayError, match=r"^policy 7: the process ended abnormally: killed, or out of memory$"):
        list(in_processes(killed, [7], 1, "policy {}".format))


def test_small_replays_stay_in_one_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.replayer.comparison.side_by_side.usable_cores", lambda: 2)
    plans = [plan_of(generated(jobs=60), policy) for policy in ("easy", "fcfs")]
    assert not pays(plans)
    monkeypatch.setattr("shadowtime.replayer.comparison.side_by_side.LEAST_JOBS", 120)
    assert pays(plans)
    assert not pays(plans[:1])
