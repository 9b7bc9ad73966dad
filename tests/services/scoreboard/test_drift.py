"""Predictions that do not hold are found, and those that hold are not accused: in simulations and on a planted log."""

from collections.abc import Iterator

import numpy as np
import orjson
import pytest

from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.generate import generate
from shadowtime.replayer.swf import Trace
from shadowtime.replayer.workload import Workload, prepare
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.scoreboard.coverage import WaitBoundCoverage
from shadowtime.services.scoreboard.drift import DAY, PLACES, STATISTICS, DriftWatch, Owner, Statistic
from shadowtime.services.scoreboard.e_detector import EDetector
from shadowtime.services.scoreboard.predictions_held import PredictionsHeld
from shadowtime.services.scoreboard.watched_share import WatchedShare
from shadowtime.shared.bounds import MAX_DRIFTS
from shadowtime.shared.drifts import Drift
from shadowtime.shared.events import Envelope, JobSubmitted
from shadowtime.shared.predictions import WaitBound
from tests.planted import arrivals_tripled, middle, requests_halved, run_times_doubled

LATE = Statistic("run_time", "longer", 0.1)


def dependent(chance: np.random.Generator, mean: float, days: int) -> Iterator[float]:
    """Yield shares of days whose expectation, given those before, is `mean`, and whose spread depends on them."""
    last = mean
    for _ in range(days):
        spread = 0.2 + 0.8 * last  # a day after a bad one is all or nothing
        last = mean if chance.random() > spread else float(chance.random() < mean)
        yield last


def test_evidence_is_expected_to_be_at_most_the_steps() -> None:
    """The property that bounds false alarms, for days that depend on those before (Shin 2022)."""
    chance = np.random.default_rng(7)
    for mean in (0.05, 0.2, 0.5):
        found = []
        for _ in range(2_000):
            detector = EDetector()
            for day, value in enumerate(dependent(chance, mean, 30)):
                detector.add(day, value, mean)
            found.append(detector.evidence)
        error = np.std(found) / np.sqrt(len(found))
        assert np.mean(found) <= 30 + 4 * error


def test_the_average_run_until_a_false_alarm_is_at_least_the_limit() -> None:
    chance, limit, runs = np.random.default_rng(3), 50.0, []
    for _ in range(300):
        detector, day = EDetector(), 0
        for value in dependent(chance, 0.15, 2_000):
            day += 1
            if detector.add(day, value, 0.15) >= limit:
                break
        runs.append(day)  # those that never alarmed count as less than they were
    assert np.mean(runs) >= limit


def test_a_share_alarms_when_it_rises_and_not_before_and_holds_again() -> None:
    chance = np.random.default_rng(1)
    share = WatchedShare(stated=0.1, limit=16_000.0)
    quiet = [share.add(day, float(chance.binomial(20, 0.1)) / 20) for day in range(400)]
    assert not any(quiet)
    risen = [share.add(day, float(chance.binomial(20, 0.4)) / 20) for day in range(400, 430)]
    at = risen.index("drifts")
    assert at < 14
    assert share.since is not None
    assert abs(share.since - 400) <= 3
    assert "holds" not in risen
    mended = [share.add(day, float(chance.binomial(20, 0.1)) / 20) for day in range(430, 480)]
    assert mended.index("holds") < 30


def test_no_user_makes_a_day_alone() -> None:
    """One who fails a thousand times a day, beside ten who do not, is a tenth of it."""
    watch = DriftWatch()
    alarms = []
    for day in range(100):
        alarms += watch.close(day * DAY)
        for user in range(10):
            watch.add("cluster", Owner(user), [(LATE, 0.05)])
        for _ in range(1_000):
            watch.add("cluster", Owner(99), [(LATE, 0.05 if day < 40 else 1.0)])
    assert not alarms


def test_memory_is_bounded_and_those_under_alarm_stay() -> None:
    watch = DriftWatch()
    for day in range(80):
        watch.close(day * DAY)
        watch.add("all", Owner(1), [(LATE, 0.0 if day < 40 else 1.0)])
    assert any(each.since is not None for each in watch.units["user"][1].values())
    for day in range(80, 84):
        watch.close(day * DAY)
        for user in range(2, 500):
            outcomes = [(Statistic("wait_bound", str(number), 0.05), 0.0) for number in range(STATISTICS + 5)]
            watch.add("all", Owner(user, user, user), outcomes)
    assert {scope: len(units) for scope, units in watch.units.items()} == PLACES
    assert 1 in watch.units["user"]
    assert max(len(shares) for units in watch.units.values() for shares in units.values()) == STATISTICS


def test_a_wait_that_outlives_its_bound_counts_before_the_job_starts_and_once() -> None:
    held, coverage = PredictionsHeld(), WaitBoundCoverage()
    bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=3_600)
    job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=5)
    coverage.submit(1, [bound])
    other = JobSubmitted(time=0, job_number=2, requested_processors=1, user_id=6)
    coverage.submit(2, [bound])
    waiting = {1: job, 2: other}
    held.enter(10, waiting, coverage)
    held.wait(other, 10, coverage, None)
    coverage.reveal(2, 10)
    held.enter(DAY, {1: job}, coverage)
    (share,) = held.watch.units["cluster"][None].values()
    assert share.mean == 0.5  # that of job 1, which waits still, and of job 2
    held.wait(job, 2 * DAY, coverage, None)
    assert not held.watch.cells


def test_what_does_not_fit_into_one_event_is_told_at_the_next() -> None:
    held = PredictionsHeld()
    held.untold = [
        Drift(of="run_time", what="longer", scope="user", number=number, since=0, share=1, most=0)
        for number in range(MAX_DRIFTS + 3)
    ]
    assert [len(held.told()) for _ in range(3)] == [MAX_DRIFTS, 3, 0]


def test_a_restored_watch_goes_on_as_if_never_interrupted() -> None:
    chance, told = np.random.default_rng(5), []
    watch = DriftWatch()
    for day in range(120):
        watch.add("all", Owner(day % 3, 1, None), [(LATE, float(chance.random() < (0.1 if day < 60 else 0.8)))])
        again = DriftWatch()
        again.restore(orjson.loads(orjson.dumps(watch.snapshot())))
        assert again.snapshot() == watch.snapshot()
        found = watch.close((day + 1) * DAY)
        assert again.close((day + 1) * DAY) == found
        told += found
        watch = again
    assert told


def log() -> Workload:
    """Return half a year of a generated log."""
    return prepare(Trace("generated", *generate(3_000, 64, 5, 0.6)))


def found_in(workload: Workload, runtime: str = "experts") -> list[tuple[Drift, int]]:
    """Return what is told of a replay of it, and when."""
    told: list[tuple[Drift, int]] = []

    def note(envelope: Envelope) -> None:
        told.extend((each, envelope.event.time) for each in envelope.drifts or ())

    configuration = configure("easy", runtime, "auto")
    result = carry_out(
        Plan("easy", "generated", workload, configuration, wait_bound=canonical("wait-bound", "plain")), [note]
    )
    assert result.scores.drifts is not None
    assert len(result.scores.drifts.episodes) == sum(not each.holds for each, _ in told)
    return told


def test_nothing_is_told_of_a_log_in_which_nothing_changes() -> None:
    assert not [each for each, _ in found_in(log()) if each.scope == "cluster"]


@pytest.mark.parametrize("change", [run_times_doubled, arrivals_tripled])
def test_a_planted_change_is_told_of_after_it(change: object) -> None:
    workload = log()
    assert callable(change)
    told = found_in(change(workload, middle(workload)))
    alarms = [(each, time) for each, time in told if each.scope == "cluster" and not each.holds]
    assert alarms
    assert all(time > middle(workload) for _, time in alarms)


def test_planted_workloads_are_what_they_say() -> None:
    workload = log()
    at = middle(workload)
    late = workload.columns["submit_time"] >= at
    doubled, halved, tripled = (each(workload, at) for each in (run_times_doubled, requests_halved, arrivals_tripled))
    assert (doubled.columns["run_time"][late] == 2 * workload.columns["run_time"][late]).all()
    assert (doubled.columns["requested_time"] >= workload.columns["requested_time"]).all()
    assert (halved.columns["requested_time"][~late] == workload.columns["requested_time"][~late]).all()
    assert len(tripled) == len(workload) + 2 * int(late.sum())
    assert len(set(tripled.columns["job_number"].tolist())) == len(tripled)
    assert (np.diff(tripled.columns["submit_time"]) >= 0).all()
