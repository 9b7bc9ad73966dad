"""Predictions that do not hold are found, and those that hold are not accused: in simulations and on a planted log."""

from collections.abc import Iterator

import numpy as np
import orjson

from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scoreboard.drift_monitor import PredictionsHeld
from shadowtime.services.scoreboard.drift_scopes import PLACES, STATISTICS, DriftWatch, Owner, Statistic
from shadowtime.services.scoreboard.drift_share import EDetector, WatchedShare
from shadowtime.services.scoreboard.scores.bound_coverage import WaitBoundCoverage
from shadowtime.shared.bounds import MAX_DRIFTS
from shadowtime.shared.distributions.histogram import EDGES
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.drifts import Drift, DriftScores
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitBound
from shadowtime.shared.stages.stage import StageRun
from tests.support.planted import arrivals_tripled, middle, requests_halved, run_times_doubled

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
    held.unpublished = [
        Drift(of="run_time", what="longer", scope="user", number=number, since=0, share=1, most=0)
        for number in range(MAX_DRIFTS + 3)
    ]
    assert [len(held.take_drifts()) for _ in range(3)] == [MAX_DRIFTS, 3, 0]


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


HISTOGRAM = (0.0,) * 10 + (0.1, 0.2, 0.4, 0.2, 0.1)
OPENED = ClusterOpened(time=0, cluster="kth", processors=1_000)


def events(changed: int, factor: int, days: int = 80) -> Iterator[Envelope]:
    """Yield jobs of twelve users as a predictor foretells that does not learn; from a day on they run longer."""
    chance, sequence = np.random.default_rng(11), 0
    edges = EDGES[10:16]
    yield Envelope(run="r", sequence=0, event=OPENED)
    told = RunTimePrediction(point=1_000.0, observations=9, histogram=HISTOGRAM)
    for day in range(days):
        for number in range(12):
            job, time = 12 * day + number + 1, day * DAY + 5_000 * number
            place = int(chance.choice(5, p=HISTOGRAM[10:]))
            run_time = round(edges[place] * (edges[place + 1] / edges[place]) ** chance.random())
            run_time = min(run_time * (factor if day >= changed else 1), 4_999)
            submitted = JobSubmitted(
                time=time, job_number=job, requested_processors=1, requested_time=90_000, user_id=number
            )
            started = JobStarted(time=time, job_number=job, processors=1, limit=90_000)
            ended = JobEnded(time=time + run_time, job_number=job, run_time=run_time, outcome="completed")
            for event, prediction in ((submitted, told), (started, None), (ended, None)):
                sequence += 1
                yield Envelope(run="r", sequence=sequence, event=event, run_time=prediction)
    yield Envelope(run="r", sequence=sequence + 1, event=ClusterClosed(time=days * DAY))


def alarms(outputs: list[Envelope]) -> list[tuple[Drift, int]]:
    return [(each, output.event.time) for output in outputs for each in output.drifts or ()]


def pushed(envelopes: Iterator[Envelope], restart: int | None = None) -> list[Envelope]:
    """Return what the stage makes of events; it is taken up from its snapshot after so many."""
    run, outputs = StageRun(STAGES[-1]), []
    for envelope in envelopes:
        if envelope.sequence == restart:
            again = StageRun(STAGES[-1])
            again.restore(run.snapshot())
            run = again
        output = run.push(envelope)
        assert output is not None
        outputs.append(output)
    return outputs


def test_nothing_is_told_where_run_times_are_as_predicted() -> None:
    *_, closed = outputs = pushed(events(changed=99, factor=1))
    assert not alarms(outputs)
    assert closed.scores is not None
    assert closed.scores.drifts == DriftScores(days=79)


def test_run_times_that_double_are_told_at_the_end_that_shows_it_within_two_weeks() -> None:
    *_, closed = outputs = pushed(events(changed=40, factor=2))
    told = {each.what: (each.since // DAY, time // DAY) for each, time in alarms(outputs) if each.scope == "cluster"}
    since, found = told["longer"]
    assert abs(since - 40) <= 1
    assert 41 <= found <= 54
    assert {output.event.kind for output in outputs if output.drifts} == {"JobStarted"}
    assert closed.scores is not None
    assert closed.scores.drifts is not None
    assert {each.what for each in closed.scores.drifts.episodes if each.scope == "cluster"} == set(told)


def test_a_restart_changes_nothing_of_what_is_told() -> None:
    whole = pushed(events(changed=40, factor=2, days=60))
    for restart in (5, 1_234, 1_600):
        assert pushed(events(changed=40, factor=2, days=60), restart) == whole


def log() -> Workload:
    """Return a generated log."""
    return prepare(Trace("generated", *generate(500, 64, 5, 0.6)))


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
