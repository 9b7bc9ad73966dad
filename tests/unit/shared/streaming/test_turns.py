"""Turns: order within a run, and nobody waits for a run that costs more."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.streaming.worker.fair_queue import MAX_IDLE, FairQueue


@given(st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.floats(0.0, 5.0)), max_size=60))
def test_the_items_of_a_key_keep_their_order(puts: list[tuple[bytes, float]]) -> None:
    turns = FairQueue[int](100, 10_000)
    for number, (key, _) in enumerate(puts):
        turns.put(key, number, 1)
    taken: dict[bytes | None, list[int]] = {}
    while len(turns):
        whose, items = turns.take(3, 10)
        taken.setdefault(whose, []).extend(items)
        turns.charge(whose, puts[items[0]][1])
    assert taken == {
        key: [number for number, (each, _) in enumerate(puts) if each == key] for key in {key for key, _ in puts}
    }


def test_who_costs_a_second_an_event_waits_for_those_who_cost_a_millisecond() -> None:
    turns = FairQueue[int](10_000, 10_000)
    for number in range(1_000):
        turns.put(b"dear", number, 1)
        turns.put(b"cheap", number, 1)
    order = []
    while len(turns):
        key, _ = turns.take(1, 10)
        order.append(key)
        turns.charge(key, 1.0 if key == b"dear" else 0.001)
    assert order[:1_002].count(b"dear") <= 2


def test_who_was_away_has_saved_up_nothing() -> None:
    turns = FairQueue[int](10_000, 10_000)
    for number in range(100):
        turns.put(b"busy", number, 1)
    for _ in range(50):
        key, _ = turns.take(1, 10)
        turns.charge(key, 1.0)
    for number in range(100):
        turns.put(b"late", number, 1)
    seen = []
    for _ in range(20):
        key, _ = turns.take(1, 10)
        seen.append(key)
        turns.charge(key, 1.0)
    assert seen.count(b"busy") == 10


def test_what_comes_while_its_key_is_served_waits_behind_it() -> None:
    turns = FairQueue[str](10, 100)
    turns.put(b"a", "first", 1)
    key, _ = turns.take(1, 10)
    turns.put(b"a", "second", 1)
    turns.put(b"b", "other", 1)
    turns.charge(key, 9.0)
    assert turns.take(1, 10) == (b"b", ["other"])
    turns.charge(b"b", 0.1)
    assert turns.take(1, 10) == (b"a", ["second"])


def test_bounds() -> None:
    turns = FairQueue[int](3, 100)
    turns.put(b"a", 1, 99)
    assert [turns.full, turns.put(b"a", 2, 1), turns.full] == [False, None, True]  # type: ignore[func-returns-value]
    key, items = turns.take(10, 50)
    assert items == [1]  # one at least, however large
    turns.charge(key, 0.0)
    assert not turns.full
    with pytest.raises(IndexError):
        FairQueue[int](1, 1).take(1, 1)


def test_strangers_have_one_turn_together_and_nobody_waits_for_them_all() -> None:
    turns = FairQueue[int](10_000, 1_000_000)
    for number in range(5_000):
        turns.put(b"new %d" % number, number, 1, known=False)
    turns.put(b"old", -1, 1)
    order = []
    for _ in range(4):
        key, items = turns.take(100, 1_000)
        order.append((key, len(items)))
        turns.charge(key, 0.1)
    assert order == [(None, 100), (b"old", 1), (None, 100), (None, 100)]


def test_a_stranger_who_is_known_by_now_waits_behind_what_he_brought_before() -> None:
    turns = FairQueue[int](10, 100)
    turns.put(b"a", 0, 1, known=False)
    turns.put(b"a", 1, 1, known=True)
    assert turns.take(10, 100) == (None, [0, 1])
    turns.charge(None, 0.1)
    turns.put(b"a", 2, 1, known=True)
    turns.put(b"a", 3, 1, known=False)  # no longer held, while something of it waits
    assert turns.take(10, 100) == (b"a", [2, 3])


def test_only_who_has_cost_about_the_same_has_a_turn_together() -> None:
    turns = FairQueue[int](100, 10_000)
    for key in (b"dear", b"cheap", b"other"):
        turns.put(key, 0, 1)
        turns.put(key, 1, 1)
    for cost in (1.0, 0.01, 0.02):
        whose, _ = turns.take(1, 10)
        turns.charge(whose, cost)
    together = []
    while turns.next_within(0.05):
        together.append(turns.take(1, 10)[0])
    assert together == [b"cheap", b"other"]
    assert not FairQueue[int](1, 1).next_within(9.0)


def test_costs_are_remembered_while_they_count_and_forgotten_afterwards() -> None:
    turns = FairQueue[int](10, 1_000)

    def serve(key: bytes, cost: float) -> None:
        turns.put(key, 0, 1)
        assert turns.take(1, 10) == (key, [0])
        turns.charge(key, cost)

    serve(b"dear", 1e9)
    for number in range(2 * MAX_IDLE):
        serve(b"busy", 1.0)  # it takes the cost of all others past theirs
        serve(b"once %d" % number, 0.5)
    assert len(pickle.dumps(turns)) < 30 * MAX_IDLE  # of 20,000 keys at most half are remembered
    turns.put(b"dear", 1, 1)
    turns.put(b"new", 2, 1)
    assert turns.take(1, 10) == (b"new", [2])


class Clock:
    """A time that passes only when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@given(st.integers(1, 60), st.integers(1, 12), st.floats(0.05, 0.5))
def test_any_number_of_costly_runs_gets_half_of_the_time(costly: int, others: int, seconds: float) -> None:
    clock = Clock()
    turns = FairQueue[int](100_000, 100_000, clock)
    keys = [b"costly %d" % number for number in range(costly)] + [b"other %d" % number for number in range(others)]
    for key in keys:
        turns.put(key, 0, 1)
    spent = {True: 0.0, False: 0.0}
    for turn in range(40 * costly + 2_000):
        assert turns.pause() == 0.0
        whose, items = turns.take(100, 1_000)
        assert whose is not None
        dear = whose.startswith(b"costly")
        assert len(items) == 1
        cost = seconds if dear else 0.01
        clock.now += cost
        turns.put(whose, turn, 1)
        turns.charge(whose, cost, costly=dear)
        if turn >= len(keys):  # each has had its first turn
            spent[dear] += cost
    assert spent[True] <= spent[False] + 2 * seconds


def test_a_costly_run_has_one_item_a_turn_and_pauses_only_while_others_are_at_work() -> None:
    clock = Clock()
    turns = FairQueue[int](100, 1_000, clock)

    def serve(seconds: float, *, costly: bool) -> tuple[bytes | None, int]:
        key, items = turns.take(10, 100)
        clock.now += seconds
        turns.charge(key, seconds, costly=costly)
        return key, len(items)

    for number in range(6):
        turns.put(b"costly", number, 1)
    assert serve(3.0, costly=True) == (b"costly", 6)  # nobody knew
    for number in range(6):
        turns.put(b"costly", number, 1)
    assert turns.pause() == 0.0  # it is alone
    assert serve(0.5, costly=True) == (b"costly", 1)
    turns.put(b"other", 0, 1)
    assert turns.waiting_costly == [b"costly"]
    assert serve(0.01, costly=False) == (b"other", 1)
    assert turns.pause() == pytest.approx(0.49)
    clock.now += 0.49
    assert turns.pause() == 0.0
    assert serve(0.8, costly=True) == (b"costly", 1)
    assert turns.pause() == 0.0  # the other has not been at work for a second
    clock.now += 1.0
    assert serve(0.0, costly=False) == (b"costly", 1)
    assert not turns.is_costly(b"costly")
    assert serve(0.0, costly=False) == (b"costly", 3)
    assert turns.pause() is None
