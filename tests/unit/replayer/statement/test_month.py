"""Predicted starts of a month against the real ones: who counts, and as what."""

from typing import Any

import pytest

from shadowtime.replayer.statement.month import AT_ONCE, FIRST, LAST, OURS, MonthOfStarts, StartsInTime
from shadowtime.shared.messages import (
    Envelope,
    Event,
    JobChanged,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    StartErrorScores,
    WaitForecast,
)

FORECAST = WaitForecast(wait=60, starts_within=((0.5, 60), (0.9, 120), (0.95, 150)))


def month_of(*events: Event, first: int = 0, forecast: WaitForecast = FORECAST) -> MonthOfStarts:
    """Return the month of a run in which each submission has the same forecast."""
    month = MonthOfStarts(first)
    for sequence, event in enumerate(events):
        more: dict[str, Any] = {"forecast": forecast} if isinstance(event, JobSubmitted) else {}
        month.push(Envelope(run="mine/live", sequence=sequence, event=event, **more))
    return month


def submitted(number: int, time: int = 100, queue: int | None = 1) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=60, queue_number=queue)


def started(number: int, time: int, happened: int | None = None) -> JobStarted:
    return JobStarted(time=time, job_number=number, processors=1, happened=happened)


def errors(month: MonthOfStarts) -> dict[str, StartErrorScores]:
    return dict(month.words())


def test_a_job_that_starts_by_its_time_has_kept_it_to_the_second() -> None:
    month = month_of(submitted(1), submitted(2), started(1, 250), started(2, 251))
    assert month.starts_by(251) == [StartsInTime(None, 2, 1, 0), StartsInTime(1, 2, 1, 0)]
    assert month.starts_by(251)[0].share == 0.5


def test_the_waits_that_are_known_first_do_not_count_before_their_time() -> None:
    """A job that starts at once counts no sooner than one beside it with the same stated time, which still waits."""
    month = month_of(submitted(1), submitted(2), started(1, 100))
    assert month.starts_by(250)[0] == StartsInTime(None, 0, 0, 2)
    assert month.starts_by(251)[0] == StartsInTime(None, 2, 1, 0)


def test_a_start_that_is_published_late_counts_from_when_it_happened() -> None:
    assert month_of(submitted(1), started(1, 300, happened=200)).starts_by(300)[0].kept == 1


def test_a_job_that_waits_is_open_until_its_time_has_come_and_then_too_late() -> None:
    month = month_of(submitted(1))
    assert month.starts_by(250)[0] == StartsInTime(None, 0, 0, 1)
    assert month.starts_by(251)[0] == StartsInTime(None, 1, 0, 0)


@pytest.mark.parametrize("within", [None, ((0.5, 0), (0.9, 60), (0.95, 100))])
def test_a_start_at_once_can_be_expected_at_the_submission(within: Any) -> None:
    """Half of the futures start at once, so that is the median. Only a job that is still there after a pass waits."""
    month = month_of(
        submitted(1),
        submitted(2),
        started(1, 100),
        started(2, 140),
        forecast=WaitForecast(wait=0, starts_within=within),
    )
    scores = errors(month)
    assert {name: (row.jobs, row.mean_error) for name, row in scores.items()} == {OURS: (2, -20), AT_ONCE: (2, -20)}
    if within is not None:
        assert month.starts_by(300)[0] == StartsInTime(None, 2, 2, 0)


def test_only_first_starts_of_jobs_of_the_month_count() -> None:
    early = submitted(1, time=50)
    month = month_of(early, submitted(2), started(1, 110), started(2, 120), started(2, 900), first=60)
    assert month.starts_by(900)[0] == StartsInTime(None, 1, 1, 0)
    assert month.jobs == 1


def test_nothing_was_predicted_of_a_job_that_leaves_or_moves() -> None:
    gone = JobWithdrawn(time=110, job_number=1, reason="cancelled")
    moved = JobChanged(time=110, job_number=2, queue_number=9)
    other = JobChanged(time=110, job_number=3, queue_number=1, requested_time=30)
    month = month_of(submitted(1), submitted(2), submitted(3), gone, moved, other, started(2, 900), started(3, 120))
    assert month.starts_by(900) == [StartsInTime(None, 1, 1, 0), StartsInTime(1, 1, 1, 0)]


def test_partitions_with_most_jobs_come_first() -> None:
    jobs = [(1, 5), (2, 7), (3, 7), (4, None)]
    month = month_of(*(submitted(number, queue=queue) for number, queue in jobs), *(started(n, 110) for n, _ in jobs))
    assert [(row.queue, row.jobs) for row in month.starts_by(300)] == [(None, 4), (7, 2), (5, 1)]


def test_errors_are_of_the_same_jobs() -> None:
    words = (JobExpected(time=105, job_number=1, start=500), JobExpected(time=150, job_number=1, start=230))
    month = month_of(submitted(1), submitted(2), *words, started(1, 200), started(2, 110))
    scores = errors(month)
    assert [*scores] == [OURS, AT_ONCE, FIRST, LAST]
    assert {name: row.mean_error for name, row in scores.items()} == {OURS: -40, AT_ONCE: -100, FIRST: 300, LAST: 30}
    assert {name: row.mean_ahead for name, row in scores.items()} == {OURS: 100, AT_ONCE: 100, FIRST: 95, LAST: 50}
    assert {row.jobs for row in scores.values()} == {1}


def test_without_a_word_of_the_site_the_errors_are_of_all_jobs() -> None:
    scores = errors(month_of(submitted(1), submitted(2), started(1, 200), started(2, 110)))
    assert {name: row.jobs for name, row in scores.items()} == {OURS: 2, AT_ONCE: 2}
    assert errors(month_of(submitted(1))) == {}
