"""Worked examples of conservative backfilling, its orders, speculation and test runs."""

import math

import numpy as np
import pytest

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures
from shadowtime.services.scheduler.ordering.orders import ORDERS, PRIORITIES
from shadowtime.services.scheduler.policies.shapes import Mode, sizes
from shadowtime.services.scheduler.policies.trial_runs import MAX_TEST, MIN_TEST, TEST_ABOVE, attempt, next_time
from shadowtime.services.scheduler.tables.job_table import Queue
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.messages.envelope import Envelope, JobStarted
from shadowtime.shared.messages.speedup import ratio, reshaped_time
from shadowtime.testing.workloads import TraceRow, workload
from tests.conformance.vectors.vector import vector


class Drawn(WaitingColumns):
    """Jobs of which the vector says what is drawn."""

    def drawn(self, *, anew: bool) -> Floats:
        jobs = vector("p1_sort_orders")["jobs"]
        return np.array([job["R"] if anew else (job["p"] - 0.5) / PRIORITIES for job in jobs])


def in_order(name: str, weight: float = 0.0) -> str:
    """Return the jobs of the vector in this order."""
    jobs, now, queue = vector("p1_sort_orders")["jobs"], 100, Queue()
    for number, job in enumerate(jobs):
        queue.add((number, now - job["D"], 1, *[job["L"]] * 4, -1))
    waiting = Drawn(now, queue, "plan", RunTimeMeasures())
    found = ORDERS[name](waiting) - weight * waiting.waits
    return "".join(jobs[k]["id"] for k in np.argsort(found, kind="stable"))


@pytest.mark.parametrize("order", ["BF", "P", "R", "1/L", "P/L", "R/L"])
def test_orders(order: str) -> None:
    assert in_order(order) == vector("p1_sort_orders")["orders"][order]


@pytest.mark.parametrize("weight", [0.01, 0.05])
def test_delays_count_against_starvation(weight: float) -> None:
    assert in_order("R", weight) == vector("p1_sort_orders")["orders"][f"R+{weight}*D"]


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
    assert attempt(5000, estimate, estimate, least, speculate=True, test=False) is None
    for hole in (7200, 20_000):
        found = attempt(hole, estimate, estimate, least, speculate=True, test=False)
        assert found is not None
        assert (found.seconds, found.test_run) == (hole, False)
        assert str(hole) in example[f"hole_{hole}"]
    found = attempt(40_000, estimate, estimate, least, speculate=True, test=False)
    assert found is not None
    assert found.seconds == estimate  # the whole of it: no trial


def test_test_runs() -> None:
    example = vector("p1_test_run")
    assert (example["threshold"], example["min"], example["max"]) == (TEST_ABOVE, MIN_TEST, MAX_TEST)
    for case in example["cases"]:
        found = attempt(case["hole"], case["est"], case["est"], case["est"], speculate=True, test=True)
        assert (None if found is None else found.seconds) == case.get("test_len")
        assert found is None or found.test_run


def test_adaptation() -> None:
    example = vector("p1_adaptation")
    asked, run_time, estimate = (example["job"][key] for key in ("n", "run", "est"))
    modes: tuple[Mode, Mode] = ("half", "quarter")
    for name in modes:
        (size,) = sizes(name, asked, estimate)
        assert size == example[name]["n"]
        by = ratio(asked, size, None)
        assert reshaped_time(run_time, by) == example[name]["run"]
        assert reshaped_time(estimate, by) == example[name]["est"]
    assert sizes("greedy", asked, estimate) == (asked, example["half"]["n"], example["double"]["n"])
    assert reshaped_time(run_time, ratio(asked, 2 * asked, None)) == example["double"]["run"]
    odd = example["odd"]
    assert sizes("half", odd["n"], estimate) == (odd["half_ceil"],)
    assert reshaped_time(4000, ratio(odd["n"], odd["half_ceil"], None)) == math.ceil(odd["est_from_4000"])


def test_slowdown_is_over_the_original_run_time() -> None:
    example = vector("p1_adaptation")
    job = example["job"]
    jobs = workload(8, [TraceRow(1, 0, job["n"], job["est"], job["run"])])
    policy = "conservative:shape=half"
    last = RunPlan(policy, "c", jobs, configure(policy)).replay().run_to_end()
    assert last.scores is not None
    assert "ORIGINAL" in example["slowdown_denominator"]
    assert last.scores.policy.mean_bounded_slowdown == example["half"]["run"] / job["run"] == 2


@pytest.mark.parametrize("guarantees", ["yes", "no"])
@pytest.mark.parametrize("which", [0, 1])
def test_conservative_example(guarantees: str, which: int) -> None:
    example = vector("p1_conservative_example")
    rows = [
        TraceRow(number, job["submit"], job["n"], job["est"], job["actual"][which] if "actual" in job else job["est"])
        for number, job in enumerate(example["jobs"], 1)
    ]
    policy = f"conservative:guarantees={guarantees}"
    plan = RunPlan(policy, "c", workload(example["machine"], rows), configure(policy))
    starts: list[tuple[int, int]] = []

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            starts.append((envelope.event.job_number, envelope.event.time))

    plan.replay([note]).run_to_end()
    expected = example["starts_if_R1_runs_100" if which == 0 else "starts_if_R1_runs_40"]
    assert [time for _, time in sorted(starts)] == expected
