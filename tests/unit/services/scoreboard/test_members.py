"""What is kept of the members of a portfolio: every change, so many at most, and the last standings."""

import orjson
import pytest

from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.shared.bounds import MAX_MEMBER_CHANGES
from shadowtime.shared.messages.decisions import Chosen, Standing
from shadowtime.shared.messages.envelope import ClusterClosed, ClusterOpened, Decided, Envelope
from shadowtime.shared.messages.scores import Scores

OPENED = ClusterOpened(time=0, cluster="c", processors=4)


def standing(member: str, weight: float = 0.5) -> Standing:
    return Standing(member=member, slowdown=0.9, wait=0.8, longest_wait=1.1, worst_user=2, loss=-0.1, weight=weight)


def decide(board: Scoreboard, *chosen: Chosen | None) -> None:
    for place, each in enumerate(chosen, board.tally.scheduling_points + 1):
        board.handle(Envelope(run="r", sequence=place, event=Decided(time=10 * place, chosen=each)))


def closed(board: Scoreboard) -> Scores:
    scores = board.handle(Envelope(run="r", sequence=9_999, event=ClusterClosed(time=99_999))).scores
    assert scores is not None
    return scores


def test_every_change_is_told_the_first_included_and_the_last_standings() -> None:
    board = Scoreboard(OPENED)
    first = Chosen(member="b", jobs=300, standings=(standing("a"), standing("b")))
    last = Chosen(member="b", jobs=400, standings=(standing("a", 0.1), standing("b", 0.9)))
    decide(board, None, Chosen(member="a"), Chosen(member="a"), None, first, Chosen(member="b"), last)
    told = closed(board).portfolio
    assert told is not None
    assert [(each.time, each.member) for each in told.changes] == [(20, "a"), (50, "b")]
    assert (told.decides, told.jobs, told.members, told.left_out) == ("b", 400, last.standings, 0)


def test_later_changes_are_only_counted() -> None:
    board = Scoreboard(OPENED)
    decide(board, *(Chosen(member=str(number % 2)) for number in range(MAX_MEMBER_CHANGES + 3)))
    told = closed(board).portfolio
    assert told is not None
    assert (len(told.changes), told.left_out) == (MAX_MEMBER_CHANGES, 3)
    assert told.decides == str(MAX_MEMBER_CHANGES % 2)


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_a_scoreboard_that_goes_on_from_a_snapshot_tells_the_same(before: int) -> None:
    chosen = (
        Chosen(member="a"),
        Chosen(member="b", jobs=3, standings=(standing("a"), standing("b"))),
        Chosen(member="a"),
    )
    board, again = Scoreboard(OPENED), Scoreboard(OPENED)
    decide(board, *chosen[:before])
    decide(again, *reversed(chosen))
    again.restore(orjson.loads(orjson.dumps(board.snapshot())))
    for each in (board, again):
        decide(each, *chosen[before:])
    assert closed(again) == closed(board)


def test_samples_agree_with_the_scores() -> None:
    board = Scoreboard(OPENED.model_copy(update={"sample_every": 60}))
    decide(board, Chosen(member="a"), Chosen(member="b", jobs=3, standings=(standing("a", 0.25), standing("b", 0.75))))
    (sample,) = board.handle(Envelope(run="r", sequence=9, event=ClusterClosed(time=25))).samples or ()
    assert {each for each in sample.figures if each[0].startswith("shadowtime_member")} == {
        ("shadowtime_member_decides", ("b",), 1.0),
        *(("shadowtime_member_weight", (name,), weight) for name, weight in (("a", 0.25), ("b", 0.75))),
        *(("shadowtime_member_slowdown", (name,), 0.9) for name in "ab"),
    }


def test_of_other_policies_nothing_is_told_or_kept() -> None:
    board = Scoreboard(OPENED)
    decide(board, None, None)
    assert "portfolio" not in board.snapshot()
    answer = board.handle(Envelope(run="r", sequence=9, event=ClusterClosed(time=99)))
    assert b"portfolio" not in answer.to_bytes()
