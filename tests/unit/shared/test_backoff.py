"""Pauses double up to a limit, and begin anew after a success."""

from shadowtime.shared.backoff import Backoff


def test_pauses_double_up_to_the_largest() -> None:
    backoff = Backoff(0.05, 2.0)
    assert [backoff.pause() for _ in range(8)] == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_a_reset_begins_with_the_first_pause() -> None:
    backoff = Backoff(1.0, 60.0)
    assert [backoff.pause(), backoff.pause()] == [1.0, 2.0]
    backoff.reset()
    assert [backoff.pause(), backoff.pause()] == [1.0, 2.0]


def test_two_count_by_themselves() -> None:
    one, other = Backoff(0.1, 5.0), Backoff(0.1, 5.0)
    one.pause()
    assert other.pause() == 0.1
