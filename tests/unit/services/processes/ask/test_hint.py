"""The lines that a submission prints: when the job starts, and a limit that the advice stands by."""

import pytest

from shadowtime.services.processes.ask.alternatives import Alternative, hint

HOUR = 3_600
FUTURES = ((0.05, 1_800), (0.1, 2_400), (0.5, 2 * HOUR), (0.9, 6 * HOUR), (0.95, 8 * HOUR))


def choice(requested_time: int, wait: float | None, *, processors: int = 4, **more: object) -> Alternative:
    fields = {"cut": 0.01, "mean_end": None, "starts_within": (), "mean_wait": wait} | more
    return Alternative(processors=processors, requested_time=requested_time, **fields)  # type: ignore[arg-type]


def said(*choices: Alternative, log_age: int | None = 5) -> list[str]:
    return hint(choices, log_age).splitlines()


OWN = choice(24 * HOUR, 3 * HOUR, starts_within=FUTURES)


def test_the_start_and_a_shorter_limit_are_two_lines() -> None:
    assert said(OWN, choice(4 * HOUR, 2_100, advised=True)) == [
        "likely to start in 2.0 h (80 %: 40.0 min to 6.0 h)",
        "with a limit of 4.0 h instead of 24.0 h: 35.0 min",
    ]


@pytest.mark.parametrize(
    "other",
    [
        choice(4 * HOUR, 2_100),  # not advised
        choice(4 * HOUR, 2_100, processors=8, advised=True),  # another size
        choice(4 * HOUR, 1.9 * HOUR, advised=True),  # saves less than a tenth
        choice(4 * HOUR, None, advised=True),
        choice(48 * HOUR, 3 * HOUR, advised=True),  # starts later
    ],
)
def test_other_limits_are_not_suggested(other: Alternative) -> None:
    assert len(said(OWN, other)) == 1


def test_a_job_that_starts_now_needs_no_other_limit() -> None:
    assert said(choice(HOUR, 0.0), choice(600, 0.0, advised=True)) == ["likely to start now"]
    assert said(choice(HOUR, 59.0), choice(600, 0.0, advised=True)) == ["likely to start in 59 s"]


def test_futures_in_which_the_job_starts_at_once_count() -> None:
    """The job is not submitted yet, so no wait is excluded. In six of ten futures it does not wait at all."""
    mostly_now = ((0.1, 0), (0.6, 0), (0.75, 600), (0.9, HOUR), (0.95, 2 * HOUR))
    own = choice(24 * HOUR, 900.0, starts_within=mostly_now)
    assert said(own) == ["likely to start now (80 %: 0 s to 1.0 h)"]
    rarely_now = ((0.1, 0), (0.4, 0), (0.5, HOUR), (0.9, 2 * HOUR))
    limited = choice(HOUR, 900.0, starts_within=mostly_now, advised=True)
    assert said(choice(24 * HOUR, HOUR, starts_within=rarely_now), limited) == [
        "likely to start in 1.0 h (80 %: 0 s to 2.0 h)",
        "with a limit of 1.0 h instead of 24.0 h: now",
    ]


def test_nothing_is_said_without_a_forecast_or_with_an_old_log() -> None:
    assert said(choice(HOUR, None)) == []
    assert said(OWN, log_age=601) == []
    assert len(said(OWN, log_age=None)) == 1
