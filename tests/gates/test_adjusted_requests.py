"""Adjusted requests on full logs: the paper's accuracy in our form, and a scheme that chooses by itself."""

from functools import lru_cache
from typing import Any

import pytest

from tests.benchmarks.adjusted_requests import accuracy, cost
from tests.gates.archive import needs_archive

pytestmark = [pytest.mark.archive, needs_archive]


@lru_cache
def table(trace: str) -> dict[str, dict[str, Any]]:
    return {row["scheme"]: row for row in accuracy(trace)}


def test_kth_by_user() -> None:
    found = table("KTH")["percentile:key=user,window=1m,fallback=none,percentile=85"]
    assert found["mean_accuracy_requested"] == pytest.approx(0.473, abs=0.002)
    assert found["mean_accuracy"] == pytest.approx(0.517, abs=0.002)
    assert found["bad"] == pytest.approx(0.02, abs=0.002)


@pytest.mark.parametrize("trace", ["KTH", "SDSC-SP2", "CTC"])
def test_auto_is_as_accurate_as_the_best_fixed_scheme_within_its_bound(trace: str) -> None:
    rows = dict(table(trace))
    auto = rows.pop("auto")
    assert auto["bad"] <= 0.02
    assert auto["mean_accuracy"] >= max(row["mean_accuracy"] for row in rows.values() if row["bad"] <= 0.02)


def test_an_event_costs_twenty_microseconds() -> None:
    for row in cost("percentile"):
        assert row["microseconds_per_event"] <= 20
