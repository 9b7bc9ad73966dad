"""Turns: order within a run, and nobody waits for a run that costs more."""

import pickle
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.streaming.worker.fair_queue import (
    AT_WORK_SECONDS,
    BEHIND_SECONDS,
    COSTLY_SECONDS,
    LEAST_SHARE,
    MAX_IDLE,
    MAX_TURN,
    SHORT_ITEMS,
    SHORT_TURN_SECONDS,
    TURN_SECONDS,
    FairQueue,
    TurnPace,
)


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
    for _ in range(10):
        key, items = turns.take(100, 1_000)
        order.append((key, len(items)))
        turns.charge(key, 0.1)
    assert order == [(None, 1), (b"old", 1), *((None, most) for most in (2, 4, 8, 16, 32, 64, 100, 100))]


def test_a_stranger_who_is_known_by_now_waits_behind_what_he_brought_before() -> None:
    turns = FairQueue[int](10, 100)
    turns.put(b"a", 0, 1, known=False)
    turns.put(b"b", 0, 1, known=False)
    turns.put(b"a", 1, 1, known=True)
    assert turns.take(10, 100) == (None, [0])
    turns.put(b"a", 2, 1, known=False)
    turns.charge(None, 0.1)
    order = []
    while len(turns):
        key, items = turns.take(10, 100)
        order += [(key, item) for item in items]
        turns.charge(key, 0.1)
    assert order == [(b"a", 1), (None, 0), (b"a", 2)]


def test_the_turns_of_a_key_grow_to_a_stated_time() -> None:
    clock = Clock()
    turns = FairQueue[int](10_000, 10_000, clock)
    for number in range(1_000):
        turns.put(b"many", number, 1)

    def sizes(count: int) -> Iterator[int]:
        for _ in range(count):
            key, items = turns.take(200, 10_000)
            yield len(items)
            clock.now += 0.002 * len(items)
            turns.charge(key, 0.002 * len(items), 0.002, 0.002)

    assert list(sizes(8)) == [1, 2, 4, 8, 16, 32, 50, 50]
    assert TURN_SECONDS == 0.002 * 50
    turns.put(b"other", 0, 1)
    assert list(sizes(4)) == [1, 10, 10, 10]
    assert SHORT_TURN_SECONDS == 0.002 * 10
    clock.now += AT_WORK_SECONDS
    assert list(sizes(1)) == [50]


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


def test_turns_without_work_do_not_grow_for_ever() -> None:
    pace = TurnPace()
    for _ in range(100):
        pace = pace.after(1, 0.0, 0.0)  # duplicates alone, which no stage works on
    assert pace.items == MAX_TURN


@given(st.integers(1, 6), st.integers(1, 6), st.floats(0.011, 0.2))
def test_others_wait_a_bounded_mean_time_behind_any_number_of_costly_runs(
    costly: int, others: int, seconds: float
) -> None:
    clock = Clock()
    turns = FairQueue[int](100_000, 100_000, clock)
    keys = [b"costly %d" % number for number in range(costly)] + [b"other %d" % number for number in range(others)]
    for key in keys:
        turns.put(key, 0, 1)
    cycle = min(seconds**2 / (2 * BEHIND_SECONDS), seconds / LEAST_SHARE)  # a costly turn and its pause
    began, spent = clock.now, 0.0
    while clock.now < began + (2 * costly + 20) * cycle:
        assert turns.pause() == 0.0
        whose, items = turns.take(100, 1_000)
        assert whose is not None
        assert len(items) == 1
        dear = whose.startswith(b"costly")
        cost = seconds if dear else 0.009
        clock.now += cost
        spent += cost * dear
        turns.put(whose, 0, 1)
        turns.charge(whose, cost, cost, cost)
    cycles = (clock.now - began) / cycle  # the first turns of all come at once, since nobody knows their costs
    fewest = (clock.now - began) / (cycle + 0.02) - costly  # a turn of others may be under way at the end of a pause
    assert 0.9 * fewest <= spent / seconds <= cycles + costly + 1


def test_a_costly_run_gets_a_share_whatever_its_items_take() -> None:
    clock = Clock()
    turns = FairQueue[int](10, 100, clock)
    for key, seconds in ((b"costly", 30.0), (b"other", 0.01)):
        turns.put(key, 0, 1)
        turns.take(1, 100)
        clock.now += seconds
        turns.charge(key, seconds, seconds, seconds)
    turns.put(b"costly", 0, 1)
    assert turns.pause() == pytest.approx(AT_WORK_SECONDS)  # nobody was at work before its turn
    clock.now += AT_WORK_SECONDS
    turns.take(1, 100)
    clock.now += 30.0
    began = clock.now
    turns.charge(b"costly", 30.0, 30.0, 30.0)
    turns.put(b"costly", 0, 1)
    for _ in range(10_000):
        turns.put(b"other", 0, 1)
        if turns.take(1, 100)[0] == b"costly":
            break
        clock.now += 0.5
        turns.charge(b"other", 1.0)
    assert clock.now - began == pytest.approx(30.0 / LEAST_SHARE - 30.0, abs=1.0)


def test_a_key_stays_costly_for_some_turns() -> None:
    turns = FairQueue[int](10, 100)

    def serve(longest: float) -> bool:
        turns.put(b"a", 0, 1)
        turns.take(1, 100)
        turns.charge(b"a", 0.0, longest, longest)
        return turns.is_costly(b"a")

    assert not serve(0.9 * COSTLY_SECONDS)
    assert serve(8.1 * COSTLY_SECONDS)
    assert [serve(0.001) for _ in range(4)] == [True, True, True, False]


def test_a_costly_run_has_one_item_a_turn_and_pauses_only_while_others_are_at_work() -> None:
    clock = Clock()
    turns = FairQueue[int](100, 1_000, clock)

    def serve(seconds: float, *, costly: bool) -> tuple[bytes | None, int]:
        key, items = turns.take(10, 100)
        clock.now += seconds
        assert turns.is_costly(key) == costly
        turns.charge(key, seconds, seconds / len(items), seconds)
        return key, len(items)

    for number in range(6):
        turns.put(b"costly", number, 1)
    assert serve(0.001, costly=False) == (b"costly", 1)
    assert serve(0.1, costly=False) == (b"costly", 2)  # nobody knew
    for number in range(6):
        turns.put(b"costly", number, 1)
    clock.now += AT_WORK_SECONDS
    assert turns.pause() == 0.0  # it is alone
    assert serve(0.2, costly=True) == (b"costly", 1)
    turns.put(b"other", 0, 1)
    assert turns.waiting_costly == [b"costly"]
    assert turns.heads() == [0]
    assert serve(0.009, costly=False) == (b"other", 1)
    assert turns.pause() == pytest.approx(AT_WORK_SECONDS)  # the other may come again
    clock.now += AT_WORK_SECONDS
    assert turns.pause() == 0.0
    for _ in range(5):
        assert serve(0.0, costly=True) == (b"costly", 1)
    assert serve(0.0, costly=False) == (b"costly", 2)
    assert serve(0.0, costly=False) == (b"costly", 1)
    assert turns.pause() is None


def test_items_that_are_put_back_are_the_first_of_their_key_again() -> None:
    turns = FairQueue[int](100, 1_000)
    for number in range(3):
        turns.put(b"a", number, 1)
        turns.put(b"new %d" % number, number, 1, known=False)
    for _ in range(2):
        whose, items = turns.take(10, 100)
        turns.charge(whose, 0.001, 0.001, 0.001)
    whose, items = turns.take(10, 100)
    assert (whose, items) == (b"a", [1, 2])
    turns.put(b"a", 3, 1)
    for item in reversed(items):
        turns.put_back(b"a", b"a", item, 1)
    assert len(turns) == 5
    turns.charge(b"a", 0.0)  # nothing was handled
    whose, items = turns.take(10, 100)
    assert (whose, items) == (None, [1, 2])
    turns.put_back(None, b"new 2", 2, 1)
    turns.charge(None, 0.001, 0.001)
    left: dict[bytes | None, list[int]] = {}
    while len(turns):
        whose, items = turns.take(10, 100)
        left.setdefault(whose, []).extend(items)
        turns.charge(whose, 0.001, 0.001)
    assert left == {b"a": [1, 2, 3], b"new 2": [2]}


@pytest.mark.parametrize(
    ("backlogs", "load", "least", "most"),
    [(1, 0.2, 0.3, 0.55), (5, 0.2, 0.3, 0.55), (100, 0.2, 0.3, 0.55), (5, 3.0, 0.15, 0.3), (5, 50.0, 0.1, 0.25)],
)
def test_runs_with_a_backlog_get_a_limited_share_while_others_are_at_work(
    backlogs: int, load: float, least: float, most: float
) -> None:
    """An item of another run waits a quarter of a turn on average. On a machine with too few processors, it is less."""
    clock = Clock()
    turns = FairQueue[float](10**9, 10**9, clock, lambda: load)
    for number in range(backlogs):
        for _ in range(200_000 // backlogs):
            turns.put(b"backlog %d" % number, 0.0, 1)

    def serve() -> float:
        """Handle the turns that are handled together; return the work on items of runs with a backlog."""
        together = [turns.take(100, 10_000)]
        while turns.next_within(1.0):
            together.append(turns.take(100, 10_000))
        cost = 0.01 + sum(0.0001 * len(items) for _, items in together)  # storing, and the work on items
        clock.now += cost
        waits.extend(clock.now - item for key, items in together if key == b"other" for item in items)
        for key, _ in together:
            turns.charge(key, cost / len(together), 0.0001, 0.0001)
        return cost if any(key != b"other" for key, _ in together) else 0.0

    waits: list[float] = []
    spent = began = 0.0
    for step in range(400):
        if step == 80:
            began, spent, waits = clock.now, 0.0, []
        due = clock.now + 0.05
        turns.put(b"other", clock.now, 1)
        while clock.now < due:
            pause = turns.pause()
            if pause == 0:
                spent += serve()
            else:
                clock.now += min(0.001 if pause is None else pause, due - clock.now + 1e-9)
    share = spent / (clock.now - began)
    assert least < share < most
    assert sum(waits) / len(waits) < 0.05
    clock.now += AT_WORK_SECONDS
    assert turns.pause() == 0.0  # nobody else is at work
    serve()
    assert turns.pause() == 0.0


def test_a_few_waiting_items_are_no_backlog() -> None:
    clock = Clock()
    turns = FairQueue[int](1_000, 1_000, clock)
    for key, count in ((b"few", SHORT_ITEMS + 1), (b"many", SHORT_ITEMS + 2)):
        for number in range(count):
            turns.put(key, number, 1)
    for _ in range(2):
        whose, _ = turns.take(1, 100)
        clock.now += 0.001
        turns.charge(whose, 0.001, 0.0001, 0.0001)
    whose, _ = turns.take(1, 100)  # "many" pauses for "few"
    assert whose == b"few"
    turns.charge(whose, 0.001, 0.0001, 0.0001)
    assert not turns.next_within(0.0)


def test_items_that_are_not_in_the_queue_yet_belong_to_the_backlog() -> None:
    clock = Clock()
    turns = FairQueue[int](1_000, 1_000, clock, lambda: 3.0)
    for key in (b"few", b"many"):
        turns.put(key, 0, 1)
        turns.put(key, 1, 1)
    for elsewhere in (SHORT_ITEMS - 1, SHORT_ITEMS):
        whose, _ = turns.take(1, 100)
        clock.now += 0.001
        turns.charge(whose, 0.001, 0.0001, 0.0001, elsewhere)
    assert turns.take(1, 100)[0] == b"few"
    clock.now += 0.001
    turns.charge(b"few", 0.001, 0.0001, 0.0001)
    assert (turns.pause() or 0.0) > 0.0  # "many" waits
    assert [turns.is_quick(key) for key in (b"few", b"many", b"new")] == [True, False, False]


def test_keys_with_and_without_a_backlog_are_not_handled_together() -> None:
    clock = Clock()
    turns = FairQueue[int](1_000, 1_000, clock)
    for number in range(100):
        turns.put(b"many", number, 1)
    turns.take(1, 100)
    turns.charge(b"many", 0.0, 0.0001, 0.0001)
    for key in (b"few", b"other"):
        turns.put(key, 0, 1)
    clock.now += 10.0
    order = []
    while len(turns):
        together = [turns.take(1, 100)[0]]
        while turns.next_within(1.0):
            together.append(turns.take(1, 100)[0])
        for whose in together:
            turns.charge(whose, 0.0, 0.0, 0.0)
        order.append(set(together))
        clock.now += 10.0
    assert {b"few", b"other"} in order
    assert all(b"many" not in together or together == {b"many"} for together in order)
