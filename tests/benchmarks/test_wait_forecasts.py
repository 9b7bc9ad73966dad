"""Tables of wait forecasts know the run times only where they say so."""

import pytest

from tests.benchmarks.wait_forecasts import ACTUAL, QUEUES, Table, cost_at, rows


def test_a_row_for_each_predictor_and_policy(generated_log: str) -> None:
    found = {
        (row["policy"], row["runtime"]): row
        for row in rows(Table.WAITS, generated_log, ["fcfs", "all-reserve"], [ACTUAL, "requested"])
    }
    assert len(found) == 4
    assert found["fcfs", ACTUAL]["run_time_error"] == found["fcfs", ACTUAL]["wait_error"] == 0
    assert found["fcfs", "requested"]["wait_error"] > 0
    # The decisions are the same; only the forecasts go by what is predicted.
    assert found["all-reserve", ACTUAL]["mean_wait"] == found["all-reserve", "requested"]["mean_wait"]
    assert found["all-reserve", ACTUAL]["wait_error"] < found["all-reserve", "requested"]["wait_error"]


def test_schedules_are_made_by_the_predictor_too(generated_log: str) -> None:
    (row,) = rows(Table.SCHEDULES, generated_log, ["fcfs", "all-reserve"], [ACTUAL])
    assert (row["policy"], row["wait_error"]) == ("all-reserve", 0)


@pytest.mark.nightly
def test_the_next_job_costs_less_than_the_first() -> None:
    assert QUEUES[0] == 100
    found = cost_at("easy", 100)
    assert found["microseconds_for_the_next"] < found["microseconds"]
