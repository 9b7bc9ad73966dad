"""Advice is calibrated: what becomes of jobs that follow it is what it states, over made-up and over archived logs."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.benchmarks.advice_followed import row
from tests.gates.archive import needs_archive, path_of

RISK = 0.05
LOAD = 0.7
TOLERANCE = 0.03
"""Greatest difference between the stated risk and the share that was cut, for every tenth of stated risk."""


def planted(folder: Path, seed: int = 7, jobs: int = 6_000) -> str:
    """Return a log of 40 users, each with their own spread of run times; some ask for too little, most for more."""
    draw = np.random.default_rng(seed)
    user = draw.integers(40, size=jobs)
    median, spread = np.exp(draw.uniform(5.0, 9.0, 40)), draw.uniform(0.1, 1.2, 40)
    times = np.maximum(median[user] * np.exp(spread[user] * draw.standard_normal(jobs)), 1).astype(int)
    request = np.ceil(median * np.exp(spread * draw.uniform(0.5, 3.0, 40)) / 300).astype(int) * 300
    wide = draw.choice([1, 2, 8, 32], size=jobs, p=[0.5, 0.25, 0.15, 0.1])
    submit = np.cumsum(draw.exponential((times * wide).mean() / 64 / LOAD, jobs)).astype(int)
    lines = [
        f"{number} {start} 0 {time} {size} -1 -1 {size} {request[who]} -1 1 {who + 1} -1 -1 -1 -1 -1 -1"
        for number, start, time, size, who in zip(range(1, jobs + 1), submit, times, wide, user, strict=True)
    ]
    path = folder / f"planted-{seed}.swf"
    path.write_text("\n".join(["; MaxProcs: 64", *lines, ""]))
    return str(path)


def assert_tenths(rows: list[dict[str, Any]]) -> None:
    """Assert that every tenth of stated risk is within `TOLERANCE`, or within three standard errors if it has few."""
    for each in rows:
        chance = 3 * (each["stated"] * (1 - each["stated"]) / each["jobs"]) ** 0.5
        assert abs(each["stated"] - each["cut"]) < max(TOLERANCE, chance), each


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return the figures of a made-up log, in which a third of the jobs follow the advice."""
    figures = row(planted(tmp_path_factory.mktemp("log")), "easy:plan=requested", "experts", RISK, share=0.35)
    return dict(figures["calibration"])


def test_two_thousand_pieces_of_advice_hold(found: dict[str, Any]) -> None:
    assert found["pieces"] > 2_000
    assert found["highest"] <= RISK
    assert min(found["shorter_same_longer"]) > 10
    assert found["near"] > 60
    assert 0.03 < found["near_cut"] < 0.07
    assert_tenths(found["advised"])


def test_risks_of_own_requests_hold(found: dict[str, Any]) -> None:
    (first, *_) = found["own"]
    assert first["jobs"] > 1_500
    assert abs(first["stated"] - first["cut"]) < TOLERANCE


@pytest.mark.nightly
def test_risks_of_own_requests_hold_over_several_logs(tmp_path: Path) -> None:
    """One log has about 250 jobs with a risk of 0.1 to 0.2. A stated risk is an estimate from about as many."""
    logs = [planted(tmp_path, seed) for seed in range(1, 8)]
    found = [row(log, "easy:plan=requested", "experts", RISK, share=0.35)["calibration"]["own"] for log in logs]
    tenths = [[each for rows in found for each in rows if each["from"] == begin] for begin in (0.0, 0.1, 0.2)]
    assert_tenths([pooled(rows) for rows in tenths])


def pooled(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return one row for the same tenth of several logs."""
    jobs = [each["jobs"] for each in rows]
    return {"jobs": sum(jobs)} | {
        name: np.average([each[name] for each in rows], weights=jobs) for name in ("stated", "cut")
    }


@pytest.mark.archive
@needs_archive
@pytest.mark.parametrize("log", ["KTH", "CTC", "Mira", "HPC2N", "SDSC-SP2"])
def test_advice_holds_on_archived_logs(log: str) -> None:
    size = {"CTC": "@338"}.get(log, "")
    share = {"KTH": 0.6}.get(log, 0.1)  # on KTH few risks are near 5 %: jobs run until their requests
    figures = row(f"{path_of(log)}{size}", "easy:plan=requested", "experts", RISK, jobs=26_000, share=share)
    found = figures["calibration"]
    assert found["pieces"] > 2_000
    assert found["highest"] <= RISK
    assert found["near"] > 80
    assert 0.03 < found["near_cut"] < 0.07
    assert_tenths(found["own"])
    assert_tenths(found["advised"])
