"""Trees on the state of the queue: what they see and learn, no leak, and that a restart changes nothing."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import orjson
import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.futures import bounder as module
from shadowtime.services.wait_bound.futures import wait_trees
from shadowtime.services.wait_bound.futures.queue_features import OF_QUEUE
from shadowtime.services.wait_bound.futures.recent_waits import RecentWaits
from shadowtime.services.wait_bound.futures.simulation import MachineFutures
from shadowtime.services.wait_bound.futures.wait_trees import WaitTrees
from shadowtime.services.wait_bound.handler import BOUNDERS
from shadowtime.shared.distributions import boosted_trees
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.spec import parse
from shadowtime.shared.stages.stage import StageRun

EVERY = 900
"""Seconds between two submissions."""

SPEC = "futures(trees=yes,days=1,futures=10)"
Row = np.ndarray[Any, np.dtype[np.float32]]


@pytest.fixture(autouse=True)
def _soon_grown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wait_trees, "FEWEST", 250)
    monkeypatch.setattr(wait_trees, "ROUNDS", 10)


def happenings(count: int, changed_after: int | None = None) -> list[Any]:
    """Return what happens to so many jobs; jobs that start after a time may wait for longer than they did."""
    chance = np.random.default_rng(3)
    events: list[Any] = []
    for number in range(count):
        submitted, user, size = EVERY * number, int(chance.integers(1, 4)), int(chance.integers(1, 5))
        wait = 300 * user + int(chance.integers(0, 3_000))
        run_time = int(chance.integers(60, 3_000))
        if changed_after is not None and submitted + wait > changed_after:
            wait += 7_000
        queue = None if number % 7 == 0 else user
        events.append(
            JobSubmitted(
                time=submitted,
                job_number=number,
                requested_processors=size,
                requested_time=3_600,
                user_id=user,
                queue_number=queue,
            )
        )
        if number % 23 == 0:
            events.append(JobWithdrawn(time=submitted + 50, job_number=number))
            continue
        start = submitted + wait
        events.append(JobStarted(time=start, job_number=number, processors=size, limit=3_600))
        events.append(JobEnded(time=start + run_time, job_number=number, run_time=run_time))
    return sorted(events, key=lambda event: event.time)


class Followed:
    """The stage, told of events, and the bounds that it published with the times when it did."""

    def __init__(self, spec: str = SPEC) -> None:
        self.run = StageRun(STAGES[2])
        self.sequence = 0
        self.said: list[tuple[int, tuple[WaitBound, ...] | None]] = []
        self.push(ClusterOpened(time=0, cluster="c", processors=64, wait_bound=spec, seed=5))

    def push(self, event: Any) -> None:
        told = self.run.push(Envelope(run="r", cluster="c", sequence=self.sequence, event=event))
        assert told is not None
        assert told.event == event
        self.sequence += 1
        if isinstance(event, JobSubmitted):
            self.said.append((event.time, told.wait_bounds))

    def follow(self, events: list[Any]) -> "Followed":
        for event in events:
            self.push(event)
        return self

    def restarted(self) -> None:
        saved = self.run.snapshot()
        self.run = StageRun(STAGES[2])
        self.run.restore(saved)


def test_a_restart_anywhere_changes_nothing() -> None:
    """Before trees, between two growths, and twice in a row; jobs wait and run at each."""
    events = happenings(900)
    whole, cut, at = Followed().follow(events), Followed(), 0
    for end in (10, 600, 1_021, 1_500, 1_501, 2_200, len(events)):
        cut.follow(events[at:end])
        cut.restarted()
        at = end
    assert cut.said == whole.said
    assert cut.run.snapshot() == whole.run.snapshot()


def test_a_restart_while_trees_are_grown_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "CELLS", 1)
    events = happenings(320)
    whole, cut, at, growing = Followed().follow(events), Followed(), 0, []
    for end in (*range(740, len(events), 13), len(events)):
        cut.follow(events[at:end])
        cut.restarted()
        growing.append(orjson.loads(cut.run.snapshot())["state"]["predictor"]["trees"][0]["growth"])
        at = end
    assert any(growing)
    assert cut.said == whole.said
    assert cut.run.snapshot() == whole.run.snapshot()


def test_the_same_log_gives_the_same_trees() -> None:
    first, second = (Followed().follow(happenings(500)) for _ in range(2))
    assert first.run.snapshot() == second.run.snapshot()


def test_what_happens_later_changes_nothing_before() -> None:
    time = 600 * EVERY
    as_it_was = Followed().follow(happenings(900))
    otherwise = Followed().follow(happenings(900, changed_after=time))
    before = [told for when, told in as_it_was.said if when <= time]
    assert before == [told for when, told in otherwise.said if when <= time]
    assert any(before)
    assert as_it_was.said != otherwise.said
    without = Followed("futures(futures=10)").follow(happenings(900))
    assert before != [told for _, told in without.said][: len(before)]


def waits(size: int) -> Iterator[int]:
    """Yield waits of jobs that only their size tells apart."""
    chance = np.random.default_rng(size)
    while True:
        yield int(size * 5_000 * chance.uniform(0.9, 1.1))


def test_trees_learn_what_the_simulated_machine_does_not_know(monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine is empty, so all futures start at once; yet jobs wait, those on two processors twice as long."""
    monkeypatch.setattr(wait_trees, "ROUNDS", 60)

    def told(spec: str) -> list[int]:
        bounder: Any = BOUNDERS.build(parse(spec))
        bounder.observe(ClusterOpened(time=0, cluster="c", processors=8))
        sizes = {size: waits(size) for size in (1, 2)}
        now = 0
        for number in range(1_200):
            now, size = 40_000 * number, 1 + number * 7 % 11 % 2
            job = JobSubmitted(time=now, job_number=number, requested_processors=size, requested_time=60, user_id=1)
            wait = next(sizes[size])
            bounder.observe(job)
            bounder.learn_one(job, wait)
            bounder.observe(JobStarted(time=now + wait, job_number=number, processors=size, limit=60))
            bounder.observe(JobEnded(time=now + wait + 60, job_number=number, run_time=60))
        asked = [JobSubmitted(time=now, job_number=9_999, requested_processors=size, user_id=1) for size in (1, 2)]
        return [bounder.predict_one(job)[0].bound for job in asked]

    with_trees, without = told("futures(trees=yes,days=100,futures=10)"), told("futures(futures=10)")
    assert with_trees == pytest.approx([5_400, 10_800], rel=0.25)
    assert without[0] == pytest.approx(without[1], rel=0.05)


def test_what_trees_ask_for_is_the_state_at_submission() -> None:
    machine = MachineFutures(10, arrivals=False)
    machine.observe(ClusterOpened(time=0, cluster="c", processors=10))

    def job(number: int, size: int, time: int, user: int, limit: int = 100, **asked: Any) -> JobSubmitted:
        return JobSubmitted(
            time=time, job_number=number, requested_processors=size, requested_time=limit, user_id=user, **asked
        )

    histogram = (0.0,) * 6 + (1.0,)  # of 19 to 34 s
    machine.submit(job(1, 6, 0, user=7), histogram)
    machine.observe(JobStarted(time=10, job_number=1, processors=6, limit=100))
    machine.submit(job(2, 8, 20, user=8, limit=50, queue_number=3), ())
    machine.submit(job(3, 2, 30, user=7), histogram)
    machine.submit(job(4, 1, 30, user=7, blocked=True), histogram)
    found = machine.features(job(5, 5, 40, user=7, queue_number=3), histogram, 40)
    assert found.shape == (OF_QUEUE,)
    assert found[:6].tolist() == [4, 2, 10, 60, 45, 20]  # 8 x 50 + 2 x 100, and 8 x 50 + 2 x 26, of ten processors
    assert found[6] == pytest.approx((np.log(80) + np.log(70)) / 2)
    assert found[7:17].tolist() == [1, 20, 2, 8, 50, 20, 42, 1, 70, 60]
    assert found[17:26].tolist() == [5, 100, 25, 500, 1, 6, 3, 1, 40]
    assert machine.features(job(5, 5, 40, user=7, blocked=True), (), 40)[17:20].tolist() == [5, 100, 100]


def test_waits_are_remembered_by_queue_and_by_size() -> None:
    recent = RecentWaits()

    def job(queue: int, size: int) -> JobSubmitted:
        return JobSubmitted(time=0, job_number=1, requested_processors=size, requested_time=10, queue_number=queue)

    for queue in range(70):
        recent.learn(job(queue, 1 + queue % 2), float(queue))
    means = recent.features(job(3, 2), now=0)
    assert means[3:6].tolist() == [3.0] * 3  # its own, learned once
    assert recent.features(job(99, 2), now=0)[3] == pytest.approx(66.3, abs=1.0)  # one of all beyond 64
    assert recent.features(job(99, 64), now=0)[6] == -1
    assert means[9:11].tolist() == [65.5, 69.0]
    recent.came(job(1, 4))
    assert recent.features(job(1, 1), now=86_400)[-1] == pytest.approx(40 / math.e)
    again = RecentWaits()
    again.restore(orjson.loads(orjson.dumps(recent.snapshot())))
    assert again.snapshot() == recent.snapshot()
    assert (again.features(job(5, 1), 9) == recent.features(job(5, 1), 9)).all()


def row(value: float) -> Row:
    return np.array([value], np.float32)


def test_only_waits_that_are_known_are_learned_the_last_ones_and_of_jobs_that_are_followed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(wait_trees, "MAX_FOLLOWED", 2)
    trees = WaitTrees((0.5,), width=1, history=300, days=1)
    for number in range(3):
        trees.submit(number, row(0))
        trees.learn(2, 10)  # not followed
    trees.withdraw(0)
    trees.learn(0, 10)
    trees.learn(1, 10)
    assert trees.snapshot()["known"]["count"] == 1
    for number in range(900):
        trees.submit(number, row(number % 2))
        trees.learn(number, (900 if number < 500 else 90) + number % 13)
        trees.grow_if_due(0)
        trees.grow()
    found = trees.quantiles(row(1))
    assert found is not None
    assert trees.snapshot()["counts"] == [845, 0]
    assert np.exp(found[0]) - 60 == pytest.approx(96, abs=3)


def test_trees_are_grown_anew_at_fixed_times_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "EARLY", 0)
    trees = WaitTrees((0.5,), width=1, history=1_000, days=2)
    grown = []
    for number in range(600):
        trees.submit(number, row(0))
        trees.learn(number, number)
        trees.grow_if_due(1_000 * number)
        trees.grow()
        grown.append(trees.snapshot()["counts"][1])
    assert [time for time in range(1, 600) if grown[time] != grown[time - 1]] == [250, 347, 520]


@pytest.mark.parametrize(("keys", "culprit"), [("days=0", "days=0"), ("trees=maybe", "trees=maybe")])
def test_wrong_settings_are_named(keys: str, culprit: str) -> None:
    with pytest.raises(SettingsError, match="wait bound 'futures'") as error:
        BOUNDERS.build(parse(f"futures:{keys}"))
    assert culprit in str(error.value)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda: False)
    with pytest.raises(SettingsError) as error:
        BOUNDERS.canonical(parse("futures:trees=yes"))
    assert str(error.value) == (
        "wait bound 'futures': trees=yes: it needs LightGBM, which is not installed: pip install 'shadowtime[boosted]'"
    )
    assert BOUNDERS.canonical(parse("futures:trees=no"))
