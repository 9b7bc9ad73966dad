"""Worked examples of waits that are forecast by running the scheduler ahead."""

import pytest

from tests.conformance.vectors.vector import vector
from tests.support.asked_forecasts import Asked


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("fcfs", "predicted_waits"),
        ("easy", "backfill_predicted_waits"),
        ("all-reserve", "backfill_predicted_waits"),
    ],
)
def test_waits_behind_running_and_waiting_jobs(policy: str, expected: str) -> None:
    example = vector("p3_fcfs_wait_sim")
    asked = Asked(f"{policy}:forecast=yes", processors=example["machine"])
    for number, job in enumerate(example["running"]):
        asked.forecast(number, job["n"], job["pred_remaining"])
        asked.start(number, job["n"])
    waits = [asked.forecast(10 + number, job["n"], job["pred"]).wait for number, job in enumerate(example["queue"])]
    assert waits == example[expected]
