"""Histories of waits against plain lists."""

from itertools import islice

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from shadowtime.services.wait_bound.wait_history import WaitHistory, at_rank
from shadowtime.shared.distributions import unpacked_numbers
from shadowtime.testing.examples import examples
from tests.support.memory_size import memory_size
from tests.unit.services.wait_bound.happenings import waits_of

WAITS = st.integers(0, 5) | st.integers(0, 2**39)


class AgainstAList(RuleBasedStateMachine):
    """Whatever is done to a history, it holds what a list would."""

    @initialize(most=st.integers(1, 12))
    def begin(self, most: int) -> None:
        self.most = most
        self.history = WaitHistory(most)
        self.twin: list[int] = []

    @rule(waits=st.lists(WAITS, min_size=1, max_size=10))
    def add(self, waits: list[int]) -> None:
        for wait in waits:
            self.history.add(wait)
        self.twin = [*self.twin, *waits][-self.most :]

    @rule(count=st.integers(0, 15))
    def keep(self, count: int) -> None:
        self.history.keep(count)
        self.twin = self.twin[max(len(self.twin) - count, 0) :]

    @rule(most=st.integers(1, 12))
    def limit(self, most: int) -> None:
        self.history.limit(most)
        self.most, self.twin = most, self.twin[-most:]

    @rule()
    def save_and_restore(self) -> None:
        saved = orjson.loads(orjson.dumps(self.history.snapshot()))
        self.history = WaitHistory(self.most, [1, 2, 3][: self.most])  # to be forgotten
        self.history.restore(saved)

    @invariant()
    def holds_the_same(self) -> None:
        assert len(self.history) == len(self.twin)
        assert waits_of(self.history) == self.twin
        assert list(self.history.ordered) == sorted(self.twin)
        for count in (0, 1, 3, 15):
            assert list(self.history.last(count)) == self.twin[max(len(self.twin) - count, 0) :]


TestAgainstAList = AgainstAList.TestCase
TestAgainstAList.settings = examples(60, stateful_step_count=20)


def test_what_was_let_go_of_takes_no_room() -> None:
    history, full = WaitHistory(most=100), memory_size(WaitHistory(100, range(9900, 10_000)))
    for wait in range(10_000):
        history.add(wait)
        assert memory_size(history) < 1.7 * full
    assert waits_of(history) == list(range(9900, 10_000))


def test_a_snapshot_is_not_changed_by_what_comes_after_it() -> None:
    history = WaitHistory(3, [1, 2])
    snapshot = history.snapshot()
    history.add(9)
    assert unpacked_numbers(snapshot).tolist() == [1, 2]
    again = WaitHistory(3)
    again.restore(snapshot)
    again.add(7)
    assert unpacked_numbers(snapshot).tolist() == [1, 2]


@given(st.lists(st.lists(WAITS, max_size=20), min_size=1, max_size=5))
def test_rank_among_several_is_that_among_all(each: list[list[int]]) -> None:
    every = sorted(wait for waits in each for wait in waits)
    histories = [WaitHistory(20, waits) for waits in each]
    assert [at_rank(histories, rank) for rank in range(1, len(every) + 1)] == every


@pytest.mark.parametrize("cut", [1, 500, 999])
def test_rank_among_long_histories(cut: int) -> None:
    waits = [7919 * position % 1009 for position in range(1000)]
    histories = [WaitHistory(2000, list(islice(waits, cut))), WaitHistory(2000, []), WaitHistory(2000, waits[cut:])]
    every = sorted(waits)
    assert all(at_rank(histories, rank) == every[rank - 1] for rank in range(1, 1001, 37))
