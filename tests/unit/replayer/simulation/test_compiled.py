"""The compiled machine: the same starts and scores as the pipeline, and no run that it does not cover."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan, carry_out, carry_out_compiled
from shadowtime.replayer.comparison.run_record import RunRecord
from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.services.scheduler import work_limits
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.messages import CapacityChanged
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads
from tests.support.small_logs import generated, plan_of

ORDERS = (
    "fcfs",
    "lcfs",
    "spf",
    "sqf",
    "saf",
    "srf",
    "exp",
    "wfp3",
    "unicep",
    "f1",
    "f2",
    "f3",
    "f4",
    "P",
    "P/L",
    "1/L",
)
BY_DISTRIBUTION = ("area", "saved", "gittins")
RUNTIMES = ("requested", "last-two", "empirical", "queue-maximum", "class-p90", "empirical-request")


@st.composite
def specs(draw: st.DrawFn) -> str:
    """Draw the SPEC of a policy that the machine covers."""
    orders = st.sampled_from(ORDERS + BY_DISTRIBUTION)
    keys = {"runtime": draw(st.sampled_from(RUNTIMES))}
    name = draw(st.sampled_from(["fcfs", "lwf", "easy", "easy-sjbf", "wfp", "guarded", "conservative", "tuned"]))
    if name == "tuned":
        keys["orders"] = draw(st.sampled_from(["unicep+wfp3+exp", "spf+fcfs", "gittins"]))
        keys["thresholds"] = draw(st.sampled_from(["0+7+30", "20"]))
        keys["taus"] = draw(st.sampled_from(["0", "0+0.3"]))
        keys["by"] = draw(st.sampled_from(["plan", "request", "predicted", "expected"]))
        keys["every"] = draw(st.sampled_from(["1", "5", "40"]))
        keys["least"] = draw(st.sampled_from(["1", "3"]))
    if name in ("easy", "easy-sjbf", "guarded", "conservative"):
        keys["queue"] = draw(orders)
        keys["threshold"] = draw(st.sampled_from(["inf", "0", "7", "30"]))
        keys["by"] = draw(st.sampled_from(["plan", "request", "predicted", "expected"]))
    if name in ("easy", "guarded", "conservative"):
        keys["candidates"] = draw(st.sampled_from(["queue"]) | orders)
    if name in ("easy", "conservative"):
        keys["weight"] = draw(st.sampled_from(["0", "0.5", "40"]))
    if name in ("easy", "easy-sjbf", "lwf", "conservative"):
        keys["plan"] = draw(st.sampled_from(["predicted", "requested"]))
    if name == "guarded":
        keys["overtaken"] = draw(st.sampled_from(["inf", "0", "3"]))
        keys["patience"] = draw(st.sampled_from(["inf", "0", "10"]))
        keys["tau"] = draw(st.sampled_from(["0", "0.3"]))
    if name == "conservative":
        keys["guarantees"] = draw(st.sampled_from(["yes", "no"]))
    keys["fallback"] = draw(st.sampled_from(["request", "incremental"]))
    return f"{name}:{','.join(f'{key}={value}' for key, value in keys.items())}"


CAPACITIES = st.lists(st.tuples(st.integers(0, 150), st.integers(1, 10)), max_size=3).map(
    lambda changes: tuple(CapacityChanged(time=time, processors=size) for time, size in sorted(changes))
)


def outcome(plan: RunPlan) -> Any:
    """Return the starts and ends by job number and the scores of a run through the pipeline; an error as its text."""
    record = RunRecord(plan)
    try:
        scores = carry_out(plan, [record]).scores
    except ReplayError as error:
        return str(error)
    return record.jobs.start_time.tolist(), record.jobs.end_time.tolist(), scores


def on_machine(plan: RunPlan) -> Any:
    """Return the same of a run on the compiled machine; None if it leaves the run to the pipeline."""
    result = carry_out_compiled(plan)
    if result is None or result.compiled is None:
        return None
    order = np.argsort(plan.workload.columns["job_number"])
    return result.compiled.starts[order].tolist(), result.compiled.ends[order].tolist(), result.scores


@examples(500)
@given(workloads(), specs(), CAPACITIES)
def test_machine_and_pipeline_agree(jobs: Workload, spec: str, capacity: tuple[CapacityChanged, ...]) -> None:
    plan = RunPlan(spec, "random", jobs, configure(spec), capacity=capacity)
    through_stages, by_machine = outcome(plan), on_machine(plan)
    if isinstance(through_stages, str):
        assert by_machine is None, through_stages
    else:
        assert by_machine == through_stages


@pytest.mark.parametrize(
    "spec",
    [
        *("easy", "fcfs", "lwf", "wfp", "conservative", "guarded:overtaken=1000,patience=20000"),
        *("easy:runtime=last-two,candidates=spf,fallback=incremental", "easy:queue=saf,threshold=72000"),
    ],
)
def test_a_generated_log_is_the_same(spec: str) -> None:
    plan = plan_of(generated(600), spec)._replace(configuration=configure(spec))
    assert on_machine(plan) == outcome(plan)


@pytest.mark.parametrize(
    "spec",
    [
        *("probabilistic", "slurm", "all-reserve", "easy:forecast=yes", "fcfs:forecast=yes"),
        *("easy:queue=R", "easy:queue=priority", "conservative:shape=half", "conservative:speculate=0.5"),
        *("conservative:widen=yes", "conservative:test_runs=yes", "easy:adjustment=auto", "easy:runtime=hmm"),
        "easy:runtime=last-two(predict=anew)",
    ],
)
def test_runs_beyond_the_machine_are_left_to_the_pipeline(spec: str) -> None:
    assert on_machine(plan_of(generated(20))._replace(configuration=configure(spec))) is None


def test_further_questions_are_left_to_the_pipeline() -> None:
    plan = plan_of(generated(20))
    assert on_machine(plan) is not None
    assert on_machine(plan._replace(wait_bound="bmbp")) is None
    assert on_machine(plan._replace(mode="recorded")) is None
    assert on_machine(plan._replace(sample_every=60)) is None


def test_limits_of_the_pipeline_are_left_to_it(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [TraceRow(number, 0, 1, 10, 10) for number in range(1, 6)]
    plan = plan_of(workload(8, rows))
    assert on_machine(plan) is not None
    for name, most in (("MAX_STARTS", 4), ("MAX_LIVE_JOBS", 4), ("MAX_TIME", 9)):
        with monkeypatch.context() as patched:
            patched.setattr(f"shadowtime.replayer.simulation.compiled.{name}", most)
            assert on_machine(plan) is None
    assert work_limits.MAX_STARTS == 10_000


def test_a_number_used_twice_is_left_to_the_pipeline() -> None:
    rows = [TraceRow(1, 0, 1, 10, 10), TraceRow(1, 50, 1, 10, 10)]
    assert on_machine(plan_of(workload(8, rows))) is None


def test_a_record_takes_the_schedule_of_the_machine() -> None:
    plan = plan_of(generated(60))
    through_stages, taken = RunRecord(plan), RunRecord(plan)
    carry_out(plan, [through_stages])
    result = carry_out_compiled(plan)
    assert result is not None
    assert result.compiled is not None
    taken.take_schedule(result.compiled)
    assert taken.jobs.sha256 == through_stages.jobs.sha256
    assert taken.jobs.processors.tolist() == through_stages.jobs.processors.tolist()
    assert not taken.decisions_sha256
