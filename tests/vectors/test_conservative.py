"""Worked examples of conservative backfilling, its orders, speculation and test runs."""

import numpy as np
import pytest

from replayer.embedded import EmbeddedReplay
from replayer.machine import Machine
from services.catalogue import configure
from services.scheduler.orders import criteria
from services.scheduler.speculation import LONGEST_TEST, SHORTEST_TEST, TEST_ABOVE, attempt, next_time
from shared.events import ClusterOpened, Envelope, JobStarted
from tests.checks.workloads import TraceRow, workload
from tests.vectors.vector import vector


@pytest.mark.parametrize("order", ["BF", "P", "R", "1/L", "P/L", "R/L"])
def test_orders(order: str) -> None:
    example = vector("p1_sort_orders")
    jobs = example["jobs"]
    drawn, run_times, delays = (
        np.array([job[key] for job in jobs]) for key in ("p" if order[0] == "P" else "R", "L", "D")
    )
    found = criteria(order, drawn.astype(float), delays, run_times)
    assert "".join(jobs[k]["id"] for k in np.argsort(-found, kind="stable")) == example["orders"][order]


@pytest.mark.parametrize("weight", [0.01, 0.05])
def test_delays_count_against_starvation(weight: float) -> None:
    example = vector("p1_sort_orders")
    jobs = example["jobs"]
    drawn, run_times, delays = (np.array([job[key] for job in jobs]) for key in ("R", "L", "D"))
    found = criteria("R", drawn, delays, run_times) + weight * delays
    assert "".join(jobs[k]["id"] for k in np.argsort(-found)) == example["orders"][f"R+{weight}*D"]


def test_speculated_times() -> None:
    example = vector("p1_spec_sequence")
    estimate = round(example["estimate"])
    found = [round(example["pct"] * estimate)]
    while len(found) < len(example["times"]):
        found.append(next_time(found[-1], estimate))
    assert found == example["times"]


def test_speculated_times_grow_to_fill_the_hole() -> None:
    example = vector("p1_spec_hole")
    estimate, least = example["estimate"], example["min_spec"]
    assert least == example["pct"] * estimate
    assert attempt(5000, estimate, least, speculate=True, test=False) is None
    for hole in (7200, 20_000):
        found = attempt(hole, estimate, least, speculate=True, test=False)
        assert found is not None
        assert (found.seconds, found.test_run) == (hole, False)
        assert str(hole) in example[f"hole_{hole}"]
    found = attempt(40_000, estimate, least, speculate=True, test=False)
    assert found is not None
    assert found.seconds == estimate  # the whole of it: no trial


def test_test_runs() -> None:
    example = vector("p1_test_run")
    assert (example["threshold"], example["min"], example["max"]) == (TEST_ABOVE, SHORTEST_TEST, LONGEST_TEST)
    for case in example["cases"]:
        found = attempt(case["hole"], case["est"], case["est"], speculate=True, test=True)
        assert (None if found is None else found.seconds) == case.get("test_len")
        assert found is None or found.test_run


@pytest.mark.parametrize("guarantees", ["yes", "no"])
@pytest.mark.parametrize("which", [0, 1])
def test_conservative_example(guarantees: str, which: int) -> None:
    example = vector("p1_conservative_example")
    rows = [
        TraceRow(number, job["submit"], job["n"], job["est"], job["actual"][which] if "actual" in job else job["est"])
        for number, job in enumerate(example["jobs"], 1)
    ]
    policy, runtime, adjustment = configure(f"conservative:guarantees={guarantees}")
    opened = ClusterOpened(time=0, cluster="c", processors=10, policy=policy, runtime=runtime, adjustment=adjustment)
    starts: list[tuple[int, int]] = []

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            starts.append((envelope.event.job_number, envelope.event.time))

    EmbeddedReplay(opened, Machine(workload(example["machine"], rows)), [note]).run_to_end()
    expected = example["starts_if_R1_runs_100" if which == 0 else "starts_if_R1_runs_40"]
    assert [time for _, time in sorted(starts)] == expected
