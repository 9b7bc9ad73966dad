"""Forecasts from sampled futures, against draws that are told one by one and machines that run them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.forecasting.calibrated import LEVELS
from shadowtime.services.scheduler.forecasting.forecaster import SchedulerState
from shadowtime.services.scheduler.forecasting.sampled import SAMPLES
from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.distributions.sampling import sampled_times
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitForecast
from shadowtime.shared.stages.stage import StageRun

(SCHEDULER,) = (stage for stage in STAGES if stage.name == "scheduler")
WIDE = (0.0,) * 8 + (0.25, 0.25, 0.25, 0.25)


def opened(policy: str, processors: int = 8, seed: int = 0) -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=processors, policy=configure(policy).policy, seed=seed)


class Told:
    """A scheduler that is told of jobs, whose run times are predicted by a histogram."""

    def __init__(self, policy: str, seed: int = 0) -> None:
        self.run = StageRun(SCHEDULER)
        self.push(opened(policy, seed=seed))

    def push(self, event: Event, histogram: tuple[float, ...] = ()) -> Envelope:
        sequence = self.run.sequence + 1
        predicted = None
        if histogram:
            assert isinstance(event, JobSubmitted)
            predicted = RunTimePrediction.of(np.array(histogram), event.requested_time, 9)
        answer = self.run.push(Envelope(run="r", sequence=sequence, event=event, run_time=predicted))
        assert answer is not None
        return answer

    def submit(self, time: int, number: int, processors: int, histogram: tuple[float, ...] = WIDE) -> WaitForecast:
        job = JobSubmitted(time=time, job_number=number, requested_processors=processors, requested_time=3600)
        forecast = self.push(job, histogram).forecast
        assert forecast is not None
        return forecast


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20).filter(any),
    st.integers(0, 400),
    st.integers(1, 10_000),
    st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=5),
)
def test_a_draw_is_the_share_of_what_is_left_below_its_time(
    masses: list[float], elapsed: int, more: int, draws: list[float]
) -> None:
    limit = elapsed + more
    table, none = np.array([masses]), np.array([float(limit)])
    found = sampled_times(
        table, np.array([float(elapsed)]), none, np.array([elapsed + 1.0]), np.array(draws).reshape(-1, 1)
    )[:, 0]
    assert (found > elapsed).all()
    assert (found <= limit).all()
    assert np.array_equal(found[np.argsort(draws)], np.sort(found))  # a larger draw is no shorter time

    def left(time: float) -> float:  # mass between what has run and a time
        total = 0.0
        for j, mass in enumerate(masses):
            low, high = EDGES[j], EDGES[j + 1]
            begin, end = max(low, elapsed), min(high, time)
            if j == 0:
                total += mass if elapsed < high and time >= 1 else 0.0
            elif end > begin:
                total += mass * np.log(end / begin) / np.log(high / low)
        return total

    if (whole := left(EDGES[-1])) > 1e-9:
        for draw, time in zip(draws, found.tolist(), strict=True):
            if elapsed + 1 < time < limit:  # rounded to whole seconds
                assert left(time - 0.51) / whole - 1e-6 <= draw <= left(time + 0.51) / whole + 1e-6


def test_a_job_that_fits_starts_at_once_in_all_futures() -> None:
    told = Told("easy:forecast=sampled").submit(0, 1, 8)
    assert (told.wait, told.starts_within) == (0, tuple((level, 0) for level in LEVELS))


def test_a_job_behind_one_that_runs_starts_when_that_ends() -> None:
    """Quantiles of the wait are those of what is left of the distribution of the running job."""
    chain = Told("easy:forecast=sampled")
    chain.submit(0, 1, 8)
    chain.push(JobStarted(time=0, job_number=1, processors=8, limit=3600))
    told = chain.submit(200, 2, 8)
    assert told.starts_within is not None
    masses = np.array(WIDE)
    for level, seconds in told.starts_within:
        run_time = 200 + seconds
        bins = [
            mass * np.log(min(run_time, high) / max(low, 200)) / np.log(high / low)
            for mass, low, high in zip(masses, EDGES, EDGES[1:], strict=False)
            if min(run_time, high) > max(low, 200)
        ]
        beyond = sum(
            mass * min(1.0, np.log(high / max(low, 200)) / np.log(high / low))
            for mass, low, high in zip(masses, EDGES, EDGES[1:], strict=False)
            if high > 200
        )
        assert sum(bins) / beyond == pytest.approx(level, abs=0.12)  # 200 draws


def test_nothing_predicted_leaves_one_future() -> None:
    chain = Told("easy:forecast=sampled")
    chain.submit(0, 1, 8, ())
    chain.push(JobStarted(time=0, job_number=1, processors=8, limit=3600))
    told = chain.submit(200, 2, 8, ())
    assert told.starts_within == tuple((level, 3400) for level in LEVELS)


def test_the_seed_draws_the_futures_and_nothing_else_does() -> None:
    def last(seed: int) -> WaitForecast:
        chain = Told("easy:forecast=sampled", seed)
        chain.submit(0, 1, 8)
        chain.push(JobStarted(time=0, job_number=1, processors=8, limit=3600))
        return chain.submit(200, 2, 8)

    assert last(1) == last(1)
    assert last(1).starts_within != last(2).starts_within
    assert last(1).wait == last(2).wait


@pytest.mark.parametrize("policy", ["easy", "easy-sjbf", "all-reserve", "cautious", "easy:queue=priority"])
def test_where_run_times_are_certain_all_futures_are_the_forecast(policy: str) -> None:
    """Of jobs that run as predicted the wait and all its quantiles are one number."""
    spec = f"{policy}{',' if ':' in policy else ':'}forecast=sampled,runtime=requested"
    workload = prepare(read_swf(BUNDLED), limit=300)
    said = []
    plan = RunPlan(policy, "bundled", workload, configure(spec))
    EmbeddedReplay(plan.opened(), plan.source(), [lambda each: said.append(each.forecast)]).run_to_end()
    forecasts = [each for each in said if each is not None]
    assert any(each.wait for each in forecasts)
    for each in forecasts:
        assert each.starts_within == tuple((level, each.wait) for level in LEVELS)


@pytest.mark.parametrize("policy", ["easy:runtime=empirical", "cautious"])
def test_decisions_and_forecasts_are_the_same_with_and_without_quantiles(policy: str) -> None:
    workload = prepare(read_swf(BUNDLED), limit=300)

    def told(forecast: str) -> list[tuple[object, object]]:
        found: list[tuple[object, object]] = []
        spec = f"{policy}{',' if ':' in policy else ':'}forecast={forecast}"
        plan = RunPlan(policy, "bundled", workload, configure(spec))
        watch = [lambda each: found.append((each.event, each.forecast and each.forecast.wait))]
        EmbeddedReplay(plan.opened(), plan.source(), watch).run_to_end()
        return found[1:]  # the first is the run's SPEC

    assert told("sampled") == told("calibrated") == told("yes")


def test_a_future_starts_the_job_as_soon_as_running_ahead_once_does() -> None:
    """With one job running, each future is told by hand: the end that was drawn of it."""
    chain = Told("easy:forecast=sampled")
    chain.submit(0, 1, 8)
    chain.push(JobStarted(time=0, job_number=1, processors=8, limit=3600))
    chain.submit(5, 2, 8)
    (pool,) = chain.run.handler.pools  # type: ignore[union-attr]
    futures = pool.policy.futures()
    state = SchedulerState(5, pool.queue, pool.running, pool.free)
    starts = futures.starts(state, 0)
    assert len(starts) == SAMPLES
    assert np.array_equal(starts, futures.drawn(state).ends[:, 0])


@pytest.mark.parametrize("policy", ["fcfs", "lwf", "easy:queue=srf", "conservative", "wfp", "tuned"])
def test_policies_that_are_not_run_ahead_have_no_futures(policy: str) -> None:
    chain = Told(policy)
    (pool,) = chain.run.handler.pools  # type: ignore[union-attr]
    assert pool.policy.futures() is None


def test_whoever_asks_for_what_there_is_not_is_told() -> None:
    with pytest.raises(SettingsError, match=r"fcfs.*forecast=sampled: this policy cannot forecast quantiles"):
        configure("fcfs:forecast=sampled")
    with pytest.raises(SettingsError, match="forecast=perhaps: expected yes, no, sampled or calibrated"):
        configure("easy:forecast=perhaps")
