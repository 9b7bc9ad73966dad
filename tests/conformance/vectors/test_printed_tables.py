"""Arithmetic on tables as the papers print them: what our own results are compared with."""

from math import prod
from statistics import fmean
from typing import Any

import pytest

from tests.conformance.vectors.vector import vector

# Nissimov 2007, Tables 2 and 3: EASY, probabilistic, the change in per cent as printed (CTC, SDSC-SP2, SDSC-Blue, KTH)
MEAN_WAITS = [(21.3, 18.1, -15.2), (364, 373, 2.6), (131, 105, -19.5), (114, 113, -0.6)]
GEOMETRIC_WAITS = [(28.2, 25.3, -10.1), (639, 635, -0.7), (203, 135, -33.6), (181, 147, -18.9)]


@pytest.mark.parametrize(("table", "rows"), [("t2", MEAN_WAITS), ("t3", GEOMETRIC_WAITS)])
def test_printed_totals_are_geometric_means(table: str, rows: list[tuple[float, float, float]]) -> None:
    example = vector("p0_table_totals")
    ratios = [1 + percent / 100 for _, _, percent in rows]
    assert 100 * (prod(ratios) ** (1 / 4) - 1) == pytest.approx(example[f"{table}_total_geo"], abs=5e-4)
    assert 100 * (fmean(ratios) - 1) == pytest.approx(example[f"{table}_total_arith"], abs=5e-4 + 1e-9)
    recomputed = [100 * (after / before - 1) for before, after, _ in rows]
    assert recomputed == pytest.approx(example[f"recomputed_pct_{table}"], abs=6e-3)


def test_ratio_checks() -> None:
    example = vector("p1_ratio_checks")
    groups = [(14_486, 22), (25_702, 14), (25_526, 460), (13_588, 110)]  # Table 2: jobs, mean overestimation
    assert sum(jobs for jobs, _ in groups) == example["jobs_sum"]
    weighted = sum(jobs * factor for jobs, factor in groups) / example["jobs_sum"]
    assert weighted == pytest.approx(example["overest_weighted"], abs=5e-3)
    # "57 and 77 per cent better than BF, 35 and 65 better than 1/L", so 1/L over BF twice; and the same for delay
    slowdown, delay = [0.43 / 0.65, 0.23 / 0.35], [0.62 / 0.72, 0.35 / 0.41]
    assert slowdown == pytest.approx(example["implied_SF_over_BF_bsd"], abs=6e-4)
    assert delay == pytest.approx(example["implied_SF_over_BF_delay"], abs=6e-4)


def clock(text: str) -> int:
    """Return the seconds that a text such as `20d 9h 58m 56s` says."""
    units = {"d": 86_400, "h": 3600, "m": 60, "s": 1}
    seconds, number = 0, ""
    for character in text.replace(" ", ""):
        if character.isdigit():
            number += character
        else:
            seconds += int(number) * units[character]
            number = ""
    return seconds


PREDICTIONS_PER_QUEUE = (
    *(76_206, 18_242, 6_781, 63_751, 6_091, 54_953, 27_486, 2_181, 66_320, 15_781, 16_104, 47_407),
    *(3_985, 7_794, 21_126, 29_765, 58_163),
)
"""Brevik 2006, Table 1."""


def test_text_errors() -> None:
    example = vector("p2_text_errors")
    for seconds, said in example.items():
        if seconds.endswith("s") and seconds[:-1].isdigit():
            assert clock(said.split(" (")[0].removesuffix(" ok")) == int(seconds[:-1])
    assert clock("7h19m") != 15_840
    assert clock("20d8h59m") // 3600 != 1_763_936 // 3600
    assert sum(PREDICTIONS_PER_QUEUE) == example["sum_pred_counts"]


def test_runs_of_misses_by_chance() -> None:
    example = vector("p2_runs_false_positive")
    p = example["p"]
    for length in (2, 3):
        assert p**-length == pytest.approx(example[f"run{length}_naive"])
        # The expected time to the first run of r misses is the sum of p^-k for k = 1 … r.
        waiting = sum(p**-k for k in range(1, length + 1))
        assert waiting == pytest.approx(example[f"expected_wait_run{length}"])


MEAN_RUN_TIMES = {"ANL": 97.75, "CTC": 171.14, "SDSC95": 108.21, "SDSC96": 166.98}
"""Smith 1999, Table 1, in minutes."""

SCHEDULED = {  # Smith 1999, Tables 10 and 12: mean wait in minutes with actual run times, and with its predictor
    "LWF": {"ANL": (61.20, 78.22), "CTC": (11.15, 13.40), "SDSC95": (14.48, 16.19), "SDSC96": (6.80, 7.79)},
    "BF": {"ANL": (142.45, 148.77), "CTC": (23.75, 22.54), "SDSC95": (21.98, 22.17), "SDSC96": (10.42, 10.10)},
}


def test_table_checks() -> None:
    example = vector("p3_table_checks")
    wrong = []
    for row in example["pct"]:
        percent = 100 * row["err"] / MEAN_RUN_TIMES[row["workload"]]
        assert percent == pytest.approx(row["recomputed"], abs=0.05)
        if abs(percent - row["printed_pct"]) > 1:
            wrong.append((row["table"], row["workload"], row["alg"]))
    assert wrong == [("T13", "CTC", "Backfill"), ("T14", "SDSC95", "Backfill"), ("T12", "CTC", "LWF")]


@pytest.mark.parametrize("policy", ["LWF", "BF"])
def test_labels_of_least_work_first_and_backfill_are_swapped(policy: str) -> None:
    example: dict[str, Any] = vector("p3_table_checks")
    changes = {workload: 100 * (ours / actual - 1) for workload, (actual, ours) in SCHEDULED[policy].items()}
    assert changes == pytest.approx(example[f"{policy}_ours_vs_actual_pct"], abs=0.05 + 1e-9)


def test_headline_of_adjusted_requests() -> None:
    example = vector("p4_headline")
    requested, mean_adjusted, median_adjusted = 0.5, 0.679, 0.71
    assert 100 * (mean_adjusted / requested - 1) == pytest.approx(example["avg_acc_gain_pct"])
    assert 100 * (median_adjusted / requested - 1) == pytest.approx(example["median_acc_gain_pct"])
