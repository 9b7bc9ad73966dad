"""Figures of sampled forecasts and of advice that is followed are made of whole replays."""

import pytest

from tests.benchmarks.advice_followed import row as followed
from tests.benchmarks.start_forecasts import row


def test_a_row_scores_all_forecasts_of_the_same_jobs(generated_log: str) -> None:
    found = row(generated_log, "easy", "empirical", jobs=150)
    assert found["jobs"] + found["without"] > 0
    assert set(found["covered"]) == {"0.5", "0.8", "0.95"}
    assert found["crps"]["sampled"] < found["crps"]["point"]
    assert abs(found["planted"]["covered_by_chance"]["0.5"] - 0.5) < 0.15


@pytest.mark.nightly
def test_the_rest_of_a_log_asks_as_it_did(generated_log: str) -> None:
    found = followed(generated_log, "easy:plan=requested", "empirical", 0.25, jobs=150)
    assert found["jobs"] > 0
    assert found["asked_otherwise"] <= found["jobs"]
