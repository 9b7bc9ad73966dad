"""Forecasts of waits against the waits: the sums against their definitions over the whole log at once."""

from statistics import fmean

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.scoreboard.scores.wait_forecasts import WaitForecastErrors
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
)
from shadowtime.shared.messages.predictions import WaitBound, WaitForecast
from shadowtime.testing.examples import examples

JOBS = st.lists(st.tuples(st.integers(0, 50), st.none() | st.integers(0, 50), st.booleans()), max_size=12)
"""Waits, forecasts, and whether the job starts before the end; seconds."""


@given(JOBS, st.data())
@examples(200)
def test_scores_are_their_definitions(jobs: list[tuple[int, int | None, bool]], data: st.DataObject) -> None:
    errors = WaitForecastErrors()
    for number, (_, forecast, _) in enumerate(jobs):
        errors.submit(number, WaitForecast(wait=forecast, reason="because" if forecast is None else None))
    cut = data.draw(st.integers(0, len(jobs)))
    for number, (wait, _, starts) in enumerate(jobs):
        if number == cut:
            state = orjson.loads(orjson.dumps(errors.snapshot()))
            errors = WaitForecastErrors()
            errors.restore(state)
        if starts:
            errors.reveal(number, wait)
            errors.reveal(number, wait + 1_000)  # a second start, of a job that was requeued
    scores = errors.scores()
    if not jobs:
        assert scores is None
        return
    assert scores is not None
    pairs = [(forecast, wait) for wait, forecast, starts in jobs if starts and forecast is not None]
    assert scores.forecasts == len(pairs)
    assert scores.without == sum(starts and forecast is None for _, forecast, starts in jobs)
    if not pairs:
        assert scores.mean_absolute_error is None
        return
    error, mean_wait = fmean(abs(forecast - wait) for forecast, wait in pairs), fmean(wait for _, wait in pairs)
    assert scores.mean_absolute_error == pytest.approx(error)
    assert scores.mean_forecast == pytest.approx(fmean(forecast for forecast, _ in pairs))
    assert scores.mean_wait == pytest.approx(mean_wait)
    assert scores.error_share == (pytest.approx(error / mean_wait) if mean_wait else None)


def test_the_scoreboard_keeps_forecasts_until_the_start() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4))
    job = JobSubmitted(time=10, job_number=1, requested_processors=4, requested_time=60)
    board.handle(Envelope(run="r", sequence=1, event=job, forecast=WaitForecast(wait=30)))
    again = Scoreboard(board.opened)
    again.restore(orjson.loads(orjson.dumps(board.snapshot())))
    events: list[Event] = [
        JobStarted(time=60, job_number=1, processors=4),
        JobEnded(time=90, job_number=1, run_time=30),
        ClusterClosed(time=90),
    ]
    answers = [again.handle(Envelope(run="r", sequence=sequence, event=event)) for sequence, event in enumerate(events)]
    assert answers[-1].scores is not None
    scores = answers[-1].scores.wait_forecast
    assert scores is not None
    assert (scores.forecasts, scores.mean_absolute_error, scores.error_share) == (1, 20.0, 0.4)


def test_a_trial_that_ends_too_soon_is_no_start() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4))
    job = JobSubmitted(time=10, job_number=1, requested_processors=4, requested_time=60)
    bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=30)
    said = Envelope(run="r", sequence=1, event=job, forecast=WaitForecast(wait=30), wait_bounds=(bound,))
    events: list[Event] = [
        JobStarted(time=20, job_number=1, processors=4, limit=5, trial=True),
        JobEnded(time=25, job_number=1, run_time=5, outcome="limit", requeued=True),
        JobStarted(time=50, job_number=1, processors=4, limit=60),
        JobEnded(time=80, job_number=1, run_time=30),
        ClusterClosed(time=80),
    ]
    board.handle(said)
    answers = [board.handle(Envelope(run="r", sequence=number, event=event)) for number, event in enumerate(events, 2)]
    scores = answers[-1].scores
    assert scores is not None
    assert scores.wait_forecast is not None
    assert (scores.wait_forecast.forecasts, scores.wait_forecast.mean_absolute_error) == (1, 10.0)
    assert [each.coverage for each in scores.wait_bounds] == [0.0]


def test_without_forecasts_there_is_no_score() -> None:
    board = Scoreboard(ClusterOpened(time=0, cluster="c", processors=4))
    answer = board.handle(Envelope(run="r", sequence=1, event=ClusterClosed(time=0)))
    assert answer.scores is not None
    assert answer.scores.wait_forecast is None
