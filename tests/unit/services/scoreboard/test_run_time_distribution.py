"""Scores of distributions against their definitions, by integration, by simulation and over the whole log at once."""

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores import run_time_distributions as scores_of
from shadowtime.services.scoreboard.scores.run_time_distributions import MIN_MASS, PIT_BINS, RunTimeDistributionScores
from shadowtime.shared.distributions.histogram import EDGES, Masses, bin_of
from shadowtime.shared.distributions.outcomes import NO_QUANTILES, outcome_masses, pieces
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.messages import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Outcome,
)
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.messages.scores import Scores
from shadowtime.testing.examples import examples

HISTOGRAMS = (
    st.lists(st.floats(0, 1), min_size=1, max_size=16).map(lambda weights: [*weights, 0.25]).map(np.array)
)  # up to about 7 hours
TIMES = st.integers(0, 20) | st.integers(0, 40_000)
LIMITS = st.just(math.inf) | st.integers(1, 20).map(float) | st.integers(1, 50_000).map(float)


def log_score(masses: Masses, run_time: float, limit: float) -> float:
    return scores_of.log_score(outcome_masses(masses / masses.sum(), limit), run_time, limit)


def crps(masses: Masses, run_time: float, limit: float) -> float:
    outcomes = outcome_masses(masses / masses.sum(), limit)
    return scores_of.crps(pieces(outcomes, NO_QUANTILES, limit), outcomes, run_time, limit)


def pit_shares(masses: Masses, run_time: float, limit: float) -> Floats:
    outcomes = outcome_masses(masses / masses.sum(), limit)
    return scores_of.pit_shares(pieces(outcomes, NO_QUANTILES, limit), outcomes, run_time, limit)


def told(histogram: tuple[float, ...], at_request: float | None = None) -> RunTimePrediction:
    return RunTimePrediction(point=5.0, observations=1, histogram=histogram, at_request=at_request)


def cdf(masses: Masses, limit: float, time: float) -> float:
    """Return the probability that the machine is occupied for at most `time`, by the definition."""
    if time >= limit:
        return 1.0
    shares = masses / masses.sum()
    below = shares[0] if time >= 1 else 0.0
    for j in range(1, len(shares)):
        reached = (math.log(max(time, EDGES[j])) - math.log(EDGES[j])) / math.log(EDGES[j + 1] / EDGES[j])
        below += shares[j] * min(reached, 1.0)
    return float(below)


@given(masses=HISTOGRAMS, run_time=TIMES, limit=LIMITS)
@examples(60)
def test_crps_is_the_integral(masses: Masses, run_time: int, limit: float) -> None:
    time = max(min(run_time, limit), 1.0)
    end = max(min(float(EDGES[len(masses)]), limit), time)
    steps = np.unique(np.concatenate((np.geomspace(1.0, max(end, 1.0), 4_000), [time], EDGES[1 : len(masses) + 1])))
    steps = steps[steps <= end]
    middles = np.sqrt(steps[1:] * steps[:-1])
    heights = np.array([(cdf(masses, limit, each) - (each >= time)) ** 2 for each in middles])
    assert crps(masses, run_time, limit) == pytest.approx(float(heights @ np.diff(steps)), rel=5e-3, abs=5e-3)


@given(masses=HISTOGRAMS, limit=LIMITS)
@examples(200)
def test_the_log_score_is_about_events_that_exclude_each_other_and_leave_nothing_out(
    masses: Masses, limit: float
) -> None:
    reachable = [j for j in range(len(masses)) if EDGES[j] < limit]
    if limit <= 1:
        reachable = []  # whatever happens, happens at the limit
    within = [1.0 if j == 0 else math.nextafter(float(EDGES[j]), math.inf) for j in reachable]
    times = [time for time in within if time < limit] + ([limit] if math.isfinite(limit) else [])
    probabilities = [math.exp(-log_score(masses, time, limit)) for time in times]
    assert sum(probabilities) == pytest.approx(1, abs=len(times) * MIN_MASS)


def test_the_request_cuts_its_bin_in_two() -> None:
    masses = np.zeros(16)
    masses[[14, 15]] = 0.75, 0.25
    limit = math.sqrt(EDGES[14] * EDGES[15])  # the middle of bin 14
    assert math.exp(-log_score(masses, limit - 1, limit)) == pytest.approx(0.375)
    assert math.exp(-log_score(masses, limit, limit)) == pytest.approx(0.625)
    assert math.exp(-log_score(masses, limit + 50, limit)) == pytest.approx(0.625)
    assert math.exp(-log_score(masses, limit - 1, math.inf)) == pytest.approx(0.75)


def test_an_end_at_the_request_can_be_told_apart_from_one_shortly_before() -> None:
    scores, middle, limit = RunTimeDistributionScores(), 12_145, 14_400  # in the bin of 12,144 to 21,859 s
    histogram = (*[0.0] * 17, 1.0)
    outcomes: list[tuple[float, ...]] = []
    scores.add(told(histogram, at_request=0.25), limit, middle, lambda *outcome: outcomes.append(outcome))
    scores.fold()
    assert scores.log_score == pytest.approx(-math.log(0.75))
    assert outcomes == [pytest.approx((1, 0, 0.25))]
    scores.add(told(histogram, at_request=0.25), limit, limit, lambda *outcome: outcomes.append(outcome))
    scores.fold()
    assert scores.log_score == pytest.approx(-math.log(0.75) - math.log(0.25))
    assert outcomes[1] == pytest.approx((0, 0.4, 0.25))
    before = scores.crps
    scores.add(told(histogram, at_request=1.0), limit, limit)
    scores.fold()
    assert scores.crps == before
    scores.add(told(histogram), limit, middle)
    scores.fold()
    below = math.log(14_400 / 1.8**16) / math.log(1.8)  # bins alone: 0.29
    assert scores.log_score == pytest.approx(-math.log(0.75) - math.log(0.25) - math.log(below))


def test_what_was_held_impossible_costs_the_most_but_not_everything() -> None:
    worst = -math.log(MIN_MASS)
    assert log_score(np.array([0.0, 0.0, 1.0]), 3600.0, math.inf) == worst
    assert log_score(np.array([1.0]), 3600.0, 3600.0) == worst
    assert log_score(np.array([0.0, 0.0, 0.0, 1.0, 0.0]), 7.0, math.inf) == worst


def test_a_run_of_no_time_is_one_of_a_second() -> None:
    masses = np.array([0.25, 0.25, 0.5])
    for score in (log_score, crps):
        assert score(masses, 0.0, 60.0) == score(masses, 1.0, 60.0)
    assert log_score(masses, 0.0, 60.0) == pytest.approx(math.log(4))
    assert log_score(masses, 0.0, 1.0) == 0.0


@given(run_time=TIMES, atom=st.integers(1, 40_000))
def test_crps_of_a_point_is_the_absolute_error(run_time: int, atom: int) -> None:
    masses = np.zeros(bin_of(float(atom)) + 2)
    masses[-1] = 1.0  # all of it beyond the request: an atom at it
    time = max(min(run_time, atom), 1)
    assert crps(masses, run_time, atom) == pytest.approx(atom - time, abs=1e-6)


@given(masses=HISTOGRAMS, run_time=TIMES, limit=LIMITS)
def test_pit_shares_add_up_to_one(masses: Masses, run_time: int, limit: float) -> None:
    shares = pit_shares(masses, run_time, limit)
    assert shares.shape == (PIT_BINS,)
    assert shares.min() >= 0
    assert shares.sum() == pytest.approx(1)


@pytest.mark.few(1)
@pytest.mark.parametrize("limit", [math.inf, 300.0])
def test_pit_of_a_calibrated_forecast_is_uniform(limit: float) -> None:
    chance = np.random.default_rng(7)
    total, count = np.zeros(PIT_BINS), 40_000
    for _ in range(count):
        masses = chance.dirichlet(np.full(12, 0.3))
        j = chance.choice(12, p=masses)
        drawn = 1.0 if j == 0 else float(np.exp(chance.uniform(math.log(EDGES[j]), math.log(EDGES[j + 1]))))
        total += pit_shares(masses, drawn, limit)
    assert total / count == pytest.approx(np.full(PIT_BINS, 0.1), abs=4 * math.sqrt(0.09 / count))


def test_a_forecast_that_says_too_long_shows_in_the_first_bins() -> None:
    scores = RunTimeDistributionScores()
    for run_time in (10, 20, 40):
        scores.add(told((0.0,) * 14 + (1.0,)), 7200, run_time)
    assert scores.summary()["pit"][0] == 1.0


JOBS = st.lists(st.tuples(HISTOGRAMS, st.none() | st.integers(1, 40_000), TIMES), max_size=8)


@given(jobs=JOBS, data=st.data())
def test_sums_are_the_means_of_the_whole_log_also_when_restored(
    jobs: list[tuple[Masses, int | None, int]], data: st.DataObject
) -> None:
    cut = data.draw(st.integers(0, len(jobs)))
    running = RunTimeDistributionScores()
    for prefix, (masses, request, run_time) in enumerate(jobs):
        if prefix == cut:
            again = RunTimeDistributionScores()
            again.restore(orjson.loads(orjson.dumps(running.snapshot())))
            running = again
        running.add(told(tuple((masses / masses.sum()).tolist())), request, run_time)
    summary = running.summary()
    scored = [(masses, run_time, math.inf if request is None else request) for masses, request, run_time in jobs]
    if not scored:
        assert summary == {"log_score": None, "crps": None, "pit": ()}
        return
    assert summary["log_score"] == pytest.approx(np.mean([log_score(*each) for each in scored]))
    assert summary["crps"] == pytest.approx(np.mean([crps(*each) for each in scored]))
    assert summary["pit"] == pytest.approx(np.mean([pit_shares(*each) for each in scored], axis=0))


def test_a_snapshot_stays_as_it_was() -> None:
    scores = RunTimeDistributionScores()
    snapshot = scores.snapshot()
    scores.add(told((1.0,)), 60, 1)
    assert snapshot == RunTimeDistributionScores().snapshot()


def scored(histogram: tuple[float, ...], *ends: tuple[int, Outcome, bool]) -> Scores:
    """Return the scores of a run of one job with a request of 600 s, by what its ends say."""
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=8))
    prediction = told(histogram)
    events: list[Event] = [JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=600)]
    for run_time, outcome, requeued in ends:
        events.append(JobStarted(time=events[-1].time, job_number=1, processors=1))
        time = events[-1].time + run_time
        events.append(JobEnded(time=time, job_number=1, run_time=run_time, outcome=outcome, requeued=requeued))
    for sequence, event in enumerate([*events, ClusterClosed(time=10_000)], 1):
        envelope = Envelope(run="r", sequence=sequence, event=event)
        answer = board.handle(envelope.model_copy(update={"run_time": prediction}) if sequence == 1 else envelope)
    assert answer.scores is not None
    return answer.scores


def test_the_scoreboard_scores_the_run_that_came_to_its_end() -> None:
    expected = pytest.approx(math.log(2))
    assert scored((0.5, 0.0, 0.5), (3, "completed", False)).run_time.log_score == expected
    assert scored((0.5, 0.0, 0.5), (70, "killed", True), (3, "completed", False)).run_time.log_score == expected


def test_the_scoreboard_does_not_score_what_it_cannot() -> None:
    for scores in (
        scored((), (3, "completed", False)),
        scored((0.0, 0.0), (3, "completed", False)),
        scored((0.5, 0.0, 0.5), (3, "killed", False)),
    ):
        assert (scores.run_time.log_score, scores.run_time.crps, scores.run_time.pit) == (None, None, ())
        assert scores.run_time.predictions == 1
