"""Outcomes of evaluated candidates against a recomputation from the whole log, and the reliability table."""

from typing import Any, Literal

import numpy as np
import orjson
import pytest
from hypothesis import assume, given
from numpy.random import PCG64, Generator
from pydantic import ValidationError

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.services.catalogue import configure
from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores.backfill_calibration import Calibration
from shadowtime.services.scoreboard.scores.reliability import ReliabilityTable
from shadowtime.shared.distributions.histogram import EDGES, RATIO
from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages.decisions import Evaluated
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.scores import Reliability
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads
from tests.support.weighed import WeighedLog

Row = tuple[float, float, bool, bool]
"""Exact probability, bound, whether it was started, whether it delayed."""


class Log(WeighedLog):
    """Tells what became of each candidate."""

    def outcomes(self) -> list[Row]:
        rows = []
        for now, attempt, ready, released in self.ready():
            for at, number in enumerate(attempt.job_numbers):
                still_runs = now + self.ends[number].run_time > ready
                delayed = released < attempt.needed + self.sizes[number] and still_runs
                started = attempt.accepted and at == len(attempt.job_numbers) - 1
                rows.append((attempt.probabilities[at], attempt.bounds[at], started, delayed))
        return rows


def expected_reliability(rows: list[Row], column: int) -> Reliability:
    table = ReliabilityTable()
    if rows:
        table.add(
            np.array([row[column] for row in rows]),
            np.array([row[2] for row in rows], dtype=np.int64),
            np.array([row[3] for row in rows]),
        )
    return table.reliability()


def check(log: Log, envelope: Envelope) -> None:
    assert envelope.scores is not None
    rows = log.outcomes()
    scores = envelope.scores.calibration
    if scores is None:
        assert not log.attempts
        return
    for mine, column in ((scores.exact, 0), (scores.bound, 1)):
        expected = expected_reliability(rows, column)
        assert mine.candidates == expected.candidates
        assert mine.bins == tuple(
            each.model_copy(update={"mean_probability": pytest.approx(each.mean_probability)}) for each in expected.bins
        )
        assert mine.brier_score == pytest.approx(expected.brier_score)
        assert mine.calibration_error == pytest.approx(expected.calibration_error)
    assert scores.exact.candidates == scores.exact_started.candidates + scores.exact_not_started.candidates
    assert scores.exact.candidates + scores.open_candidates == sum(len(each.job_numbers) for _, _, each in log.attempts)


def replay(jobs: Workload, source: ReplaySource, mode: Literal["closed", "recorded"], tau: float = 0.3) -> None:
    policy, runtime, adjustment = configure(f"probabilistic:tau={tau},runtime=empirical")
    opened = ClusterOpened(
        time=0,
        cluster="c",
        processors=jobs.processors,
        mode=mode,
        policy=policy,
        runtime=runtime,
        adjustment=adjustment,
    )
    log = Log(obeyed=mode == "closed")
    check(log, EmbeddedReplay(opened, source, [log]).run_to_end())


@pytest.mark.parametrize("mode", ["closed", "recorded"])
@given(jobs=workloads(waits=True))
@examples(60)
def test_outcomes_of_small_logs(mode: Literal["closed", "recorded"], jobs: Workload) -> None:
    assume(mode == "closed" or (jobs.columns["wait_time"] >= 0).any())
    replay(jobs, (Machine if mode == "closed" else Recorded)(jobs), mode)


@pytest.mark.parametrize("mode", ["closed", "recorded"])
def test_outcomes_of_the_bundled_log_in_several_batches(
    mode: Literal["closed", "recorded"], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Calibration, "MIN_BATCH", 16)
    jobs = prepare(read_swf(BUNDLED), limit=700)
    replay(jobs, (Machine if mode == "closed" else Recorded)(jobs), mode)


@pytest.mark.nightly
def test_probabilities_that_are_right_are_calibrated() -> None:
    """Run times of one known distribution, independent of each other; with one instant a bin the error is 0.09."""
    chance = Generator(PCG64([5]))
    bins = chance.choice([9, 11, 12, 13, 14], size=6000, p=[0.3, 0.2, 0.2, 0.2, 0.1])
    lengths = EDGES[bins] * RATIO ** chance.random(6000)
    times = np.cumsum(chance.exponential(420.0, size=6000)).astype(int)
    sizes = chance.choice([1, 2, 4, 8, 12], size=6000)
    rows = [
        TraceRow(number, int(time), int(size), 100_000, int(length))
        for number, (time, size, length) in enumerate(zip(times, sizes, lengths, strict=True), 1)
    ]
    jobs = workload(16, rows)
    policy, runtime, adjustment = configure("probabilistic:points=16,runtime=empirical")
    opened = ClusterOpened(time=0, cluster="c", processors=16, policy=policy, runtime=runtime, adjustment=adjustment)
    scores = EmbeddedReplay(opened, Machine(jobs)).run_to_end().scores
    assert scores is not None
    assert scores.calibration is not None
    exact, bound = scores.calibration.exact, scores.calibration.bound
    assert exact.candidates > 5000
    assert exact.calibration_error is not None
    assert bound.calibration_error is not None
    assert exact.calibration_error < 0.04
    assert bound.calibration_error > exact.calibration_error


def test_restored_in_the_middle() -> None:
    """Cut anywhere, the scoreboard ends with the same table."""
    jobs = prepare(read_swf(BUNDLED), limit=300)
    policy, runtime, adjustment = configure("probabilistic:runtime=empirical")
    opened = ClusterOpened(
        time=0, cluster="c", processors=jobs.processors, policy=policy, runtime=runtime, adjustment=adjustment
    )
    seen: list[Envelope] = []
    last = EmbeddedReplay(opened, Machine(jobs), [seen.append]).run_to_end()
    scoreboard = Scoreboard(opened)
    for number, envelope in enumerate(seen[1:]):
        if number % 97 == 0:
            state = orjson.loads(orjson.dumps(scoreboard.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY))
            scoreboard = Scoreboard(opened)
            scoreboard.restore(state)
        answer = scoreboard.handle(envelope.model_copy(update={"scores": None}))
    assert answer.scores == last.scores


def test_a_table_knows_those_that_were_started() -> None:
    table = ReliabilityTable()
    table.add(np.array([0.05, 1.0, 0.55]), np.array([1, 0, 0]), np.array([True, True, False]))
    assert [each.from_probability for each in table.reliability().bins] == [0.0, 0.5, 0.9]
    assert table.reliability(1).calibration_error == pytest.approx(0.95)
    assert table.reliability(0).brier_score == pytest.approx(0.55**2 / 2)
    assert ReliabilityTable().reliability() == Reliability(candidates=0)


@pytest.mark.parametrize("policy", ["easy", "probabilistic:runtime=empirical", "cautious"])
def test_nothing_is_left_of_jobs_that_have_ended(policy: str) -> None:
    jobs = prepare(read_swf(BUNDLED), limit=400)
    spec, runtime, adjustment = configure(policy)
    opened = ClusterOpened(
        time=0, cluster="c", processors=jobs.processors, policy=spec, runtime=runtime, adjustment=adjustment
    )
    seen: list[Envelope] = []
    EmbeddedReplay(opened, Machine(jobs), [seen.append]).run_to_end()
    scoreboard = Scoreboard(opened)
    for envelope in seen[1:]:
        scoreboard.handle(envelope.model_copy(update={"scores": None}))
    state = scoreboard.tally.calibration.snapshot()
    left = ("candidates", "new_candidates", "run_times")
    assert {name: len(state[name]) for name in left} == dict.fromkeys(left, 0)
    assert (state["heads"]["attempts"], state["heads"]["counted_from"]) == ([], [])


def test_candidates_of_a_head_that_could_not_start_are_let_go() -> None:
    """The machine shrinks below the head for a while, and small jobs pass it by."""
    rows = [TraceRow(1, 0, 8, 60, 60), TraceRow(2, 1, 8, 60, 60)]
    rows += [TraceRow(number, 70 + number * 20, 1, 15, 15) for number in range(3, 60)]
    jobs = workload(8, rows)
    changes = (CapacityChanged(time=30, processors=4), CapacityChanged(time=5000, processors=8))
    policy, runtime, adjustment = configure("probabilistic:runtime=empirical")
    opened = ClusterOpened(time=0, cluster="c", processors=8, policy=policy, runtime=runtime, adjustment=adjustment)
    scores = EmbeddedReplay(opened, Machine(jobs, changes)).run_to_end().scores
    assert scores is not None
    assert scores.calibration is not None
    assert scores.calibration.open_candidates > 20
    assert scores.calibration.exact.candidates == 0


@pytest.mark.parametrize("number", [99, 1])
def test_a_decision_about_a_job_that_does_not_wait_is_rejected(number: int) -> None:
    """A forged message ends no worker, and leaves nothing behind."""
    opened = ClusterOpened(time=0, cluster="c", processors=8)
    scoreboard = Scoreboard(opened)
    job = JobSubmitted(time=0, job_number=1, requested_processors=1)
    events: list[Event] = [job, JobStarted(time=0, job_number=1, processors=1)]
    for sequence, event in enumerate(events, 1):
        scoreboard.handle(Envelope(run="r", sequence=sequence, event=event))
    before = orjson.dumps(scoreboard.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
    weighed = Evaluated(
        head=7, needed=1, after=0, job_numbers=(number,), probabilities=(0.5,), bounds=(0.5,), accepted=False
    )
    with pytest.raises(LogViolation, match=f"job {number} was evaluated or started at 5, but it does not wait"):
        scoreboard.handle(Envelope(run="r", sequence=3, event=Decided(time=5, evaluated=(weighed,))))
    assert orjson.dumps(scoreboard.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) == before


@pytest.mark.parametrize(
    ("numbers", "changes", "message"),
    [
        ((1, 2), {"bounds": (0.5, 0.5)}, "head 7: expected 2 probabilities, one for each candidate; found 1"),
        ((1, 2), {"probabilities": (0.5, 0.5)}, "head 7: expected 2 bounds, one for each candidate; found 1"),
        ((1,), {"recalibrated": ()}, "head 7: expected 1 recalibrated, one for each candidate; found 0"),
        ((), {"probabilities": (), "bounds": (), "accepted": True}, "head 7: expected at least one candidate"),
    ],
)
def test_candidates_without_probabilities_are_no_message(
    numbers: tuple[int, ...], changes: dict[str, Any], message: str
) -> None:
    values: dict[str, Any] = {"probabilities": (0.5,), "bounds": (0.5,), "accepted": False} | changes
    with pytest.raises(ValidationError, match=message):
        Evaluated(head=7, needed=1, after=0, job_numbers=numbers, **values)
