"""Forecasts of waits against what happens, and the work that consecutive submissions share."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import CapacityChanged, ClusterOpened, Envelope, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import WaitForecast
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import Stage
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads
from tests.support.asked_forecasts import Asked
from tests.support.clairvoyance import clairvoyant_stages
from tests.support.strategies.logs import CHANGES

ON_PREDICTIONS = [f"{name}:forecast=yes" for name in ("fcfs", "lwf", "easy", "easy-sjbf", "all-reserve")]
ON_REQUESTS = [f"{spec},plan=requested" for spec in ON_PREDICTIONS[1:]]
EVERY_FORECAST = pytest.mark.parametrize("policy", ON_PREDICTIONS + ON_REQUESTS)
PROCESSORS = 8


class Waits:
    """Observes a replay: what was forecast of each job, and how long it waited until its first start."""

    def __init__(self) -> None:
        self.forecasts: dict[int, WaitForecast] = {}
        self.submitted: dict[int, int] = {}
        self.waits: dict[int, int] = {}

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobSubmitted):
            assert envelope.forecast is not None
            self.forecasts[event.job_number] = envelope.forecast
            self.submitted[event.job_number] = event.time
        elif isinstance(event, JobStarted):
            self.waits.setdefault(event.job_number, event.time - self.submitted[event.job_number])


def waits_of(jobs: Workload, policy: str, stages: Sequence[Stage]) -> Waits:
    """Return what was forecast in a closed replay, and what happened."""
    waits, spec = Waits(), configure(policy)
    opened = ClusterOpened(time=0, cluster="c", processors=jobs.processors, policy=spec.policy, runtime=spec.runtime)
    EmbeddedReplay(opened, Machine(jobs), [waits], stages=stages).run_to_end()
    return waits


@EVERY_FORECAST
@given(jobs=workloads(processors=PROCESSORS))
@examples(80)
def test_what_nothing_disturbs_comes_true(policy: str, jobs: Workload) -> None:
    """The last job to arrive: nobody comes after it, and run times are as predicted."""
    found = waits_of(jobs, policy, clairvoyant_stages(jobs))
    last = next(reversed(found.submitted))
    assert found.forecasts[last] == WaitForecast(wait=found.waits[last])


@pytest.mark.parametrize("policy", ["fcfs:forecast=yes", "all-reserve:forecast=yes"])
@given(jobs=workloads(processors=PROCESSORS))
@examples(80)
def test_later_jobs_are_not_in_the_way_of_earlier_ones(policy: str, jobs: Workload) -> None:
    found = waits_of(jobs, policy, clairvoyant_stages(jobs))
    assert {number: each.wait for number, each in found.forecasts.items()} == found.waits


def test_less_work_overtakes() -> None:
    """The error that is built into forecasts of LWF (Smith 1999, section 3)."""
    jobs = workload(4, [TraceRow(1, 0, 4, 100, 100), TraceRow(2, 10, 4, 50, 50), TraceRow(3, 20, 4, 10, 10)])
    found = waits_of(jobs, "lwf:forecast=yes", clairvoyant_stages(jobs))
    assert [each.wait for each in found.forecasts.values()] == [0, 90, 80]
    assert found.waits == {1: 0, 2: 100, 3: 80}


# Shared work


class Checked(Scheduler):
    """A scheduler whose every forecast is made again from nothing."""

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        answer = super().on_submitted(envelope, job)
        pool = self.pools[job.pool or 0]
        fresh = pool.policy.forecaster()
        assert fresh is not None
        state = job.time, pool.queue, pool.running, pool.free
        assert answer.forecast == fresh.forecast(*state, job.job_number)
        return answer


CHECKED = [Stage(each.name, each.reads, each.writes, Checked) if each.name == "scheduler" else each for each in STAGES]


@EVERY_FORECAST
@given(
    jobs=workloads(processors=PROCESSORS, waits=True),
    keys=st.sampled_from(["", ",fallback=incremental", ",running=yes,adjust_queue=no"]),
    runtime=st.sampled_from(["requested", "last-two"]),
    adjustment=st.sampled_from(["none", "percentile:minimum=1"]),
    changes=CHANGES,
    recorded=st.booleans(),
)
@examples(80)
def test_what_is_kept_changes_no_forecast(
    policy: str,
    jobs: Workload,
    keys: str,
    runtime: str,
    adjustment: str,
    changes: list[CapacityChanged],
    *,
    recorded: bool,
) -> None:
    spec = configure(policy + keys, runtime, adjustment)
    opened = ClusterOpened(time=0, cluster="c", processors=PROCESSORS, **spec._asdict())
    source = Recorded(jobs, changes) if recorded else Machine(jobs, changes)
    EmbeddedReplay(opened, source, stages=CHECKED).run_to_end()


@EVERY_FORECAST
def test_what_is_kept_ends_with_the_first_end_that_was_forecast(policy: str) -> None:
    """Though nothing starts at it, and nothing happens: the job has outlived its prediction."""
    asked = Asked(policy, runtime="last-two")
    asked.forecast(1, 1, 100, point=5)
    asked.start(1, 1)
    asked.forecast(2, 9, 100, point=50)
    asked.start(2, 9)
    assert asked.forecast(3, 10, 100, time=1, point=20) == WaitForecast(wait=49)
    assert asked.forecast(4, 10, 100, time=10, point=30).wait == 110


@pytest.mark.parametrize("policy", ["easy:forecast=yes", "all-reserve:forecast=yes"])
def test_what_is_kept_ends_when_a_running_job_is_expected_to_end_later(policy: str) -> None:
    """Job 1 outlives its first correction at 160: job 3 may start before job 2 from then on, and holds it up."""
    asked = Asked(f"{policy},fallback=incremental", runtime="last-two")
    asked.forecast(1, 6, 10_000, point=100)
    asked.start(1, 6)
    asked.forecast(2, 10, 100, time=150, point=100)
    assert asked.forecast(3, 4, 1_000, time=155, point=60) == WaitForecast(wait=145)
    assert asked.forecast(4, 4, 1_000, time=165, point=60) == WaitForecast(wait=160)


@pytest.mark.few(5)
@EVERY_FORECAST
@pytest.mark.parametrize(
    ("key", "adjustment"), [("fallback=incremental", "none"), ("running=yes", "percentile:minimum=1")]
)
def test_what_is_kept_changes_no_forecast_of_the_bundled_log(policy: str, key: str, adjustment: str) -> None:
    jobs, spec = prepare(read_swf(BUNDLED), limit=1_500), configure(f"{policy},{key}", "last-two", adjustment)
    opened = ClusterOpened(time=0, cluster="c", processors=jobs.processors, **spec._asdict())
    EmbeddedReplay(opened, Machine(jobs), stages=CHECKED).run_to_end()


def test_shorter_candidates_go_first_though_longer_ones_were_run_ahead() -> None:
    asked = Asked("easy-sjbf:forecast=yes")
    asked.forecast(1, 6, 100)
    asked.start(1, 6)
    asked.forecast(2, 8, 100)
    waits = [asked.forecast(*job).wait for job in ((3, 3, 50), (4, 1, 10), (5, 2, 20))]
    assert waits == [0, 0, 0]  # of which 3 turns out to be wrong


@EVERY_FORECAST
def test_a_job_that_has_outlived_its_prediction_runs_twice_as_long_then_to_its_request(policy: str) -> None:
    asked = Asked(policy, runtime="last-two")
    asked.forecast(1, 10, 500, point=100)
    asked.start(1, 10)
    assert asked.forecast(2, 10, 500, time=60, point=100) == WaitForecast(wait=40)
    assert asked.forecast(3, 10, 500, time=100, point=100) == WaitForecast(wait=200)
    assert asked.forecast(4, 10, 500, time=200, point=100) == WaitForecast(wait=500)
    assert asked.forecast(5, 10, 500, time=500, point=100) == WaitForecast(wait=301)


@pytest.mark.parametrize("policy", ["lwf", "easy-sjbf"])
def test_planning_goes_by_requests_where_told_to(policy: str) -> None:
    """Job 4 is the short one by its prediction, the long one by its request."""
    waits = []
    for plan in ("predicted", "requested"):
        asked = Asked(f"{policy}:forecast=yes,plan={plan}", runtime="last-two")
        asked.forecast(1, 8, 100, point=90)
        asked.start(1, 8)
        asked.forecast(2, 10, 10_000, point=9_000)
        asked.forecast(3, 2, 30, point=30)
        waits.append(asked.forecast(4, 2, 35, point=5).wait)
    assert waits == [0, 30]


# Bad input


@EVERY_FORECAST
def test_behind_a_job_without_a_request_there_is_no_telling(policy: str) -> None:
    asked = Asked(policy)
    assert asked.forecast(1, 10, None) == WaitForecast(wait=0)
    asked.start(1, 10)
    assert asked.forecast(2, 10, 60, time=5) == WaitForecast(reason="it waits for a job without a request")


@EVERY_FORECAST
def test_on_a_machine_that_has_become_too_small_there_is_no_telling(policy: str) -> None:
    asked = Asked(policy)
    asked.forecast(1, 8, 100)
    asked.start(1, 8)
    asked.tell(CapacityChanged(time=10, processors=4))
    too_small = WaitForecast(reason="the machine is now too small for it or for a job ahead of it")
    assert asked.forecast(2, 5, 60, time=20) == too_small
    assert asked.forecast(3, 5, 60, time=20) == too_small
    asked.tell(CapacityChanged(time=30, processors=10))
    assert asked.forecast(4, 9, 60, time=40).wait is not None


@pytest.mark.parametrize("policy", ["wfp", "conservative"])
def test_other_policies_are_not_run_ahead(policy: str) -> None:
    with pytest.raises(SettingsError, match=f"policy '{policy}' has no key 'forecast'; known keys: "):
        configure(f"{policy}:forecast=yes")


def test_nobody_is_told_what_he_did_not_ask_for() -> None:
    for name in POLICIES.classes:
        assert POLICIES.build(parse(name)).forecaster() is None
