"""Ranges of processors and requests, fixed or cut from the waits."""

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.groups.clustering import cut
from shadowtime.services.wait_bound.groups.group_bound import WaitGroup
from shadowtime.services.wait_bound.groups.groupings import NO_REQUEST, Grouping, groupings, nodes, rnprod, rtime
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.shared.messages.base import MAX_DURATION
from shadowtime.shared.messages.envelope import JobSubmitted
from tests.unit.services.wait_bound.happenings import waits_of

MAX_JOBS, KEEP = 5000, 59


def job(processors: int = 1, requested_time: int | None = 60) -> JobSubmitted:
    return JobSubmitted(time=0, job_number=1, requested_processors=processors, requested_time=requested_time)


def made(name: str) -> Grouping:
    return next(each for each in groupings(BoundSettings(), MAX_JOBS) if each.name == name)


def recut() -> tuple[Grouping, np.ndarray[tuple[int], np.dtype[np.int64]], np.ndarray[tuple[int], np.dtype[np.int64]]]:
    chance = Generator(PCG64([3]))
    values = chance.integers(1, 200, 4000)
    waits = chance.exponential(np.select([values <= 50, values <= 120], [10.0, 3000.0], 200.0)).astype(np.int64)
    grouping = made("nodes")
    grouping.recut(values, waits)
    return grouping, values, waits


def test_all_five() -> None:
    five = groupings(BoundSettings(), MAX_JOBS)
    assert [each.name for each in five] == ["plain", "static", "nodes", "rtime", "rnprod"]
    assert [each.cut is not None for each in five] == [False, False, True, True, True]
    assert [len(each.groups) for each in five] == [1, 4, 1, 1, 1]
    assert [each.value(job(6, 100)) for each in five] == [0, 6, 6, 100, 600]


@pytest.mark.parametrize(
    ("processors", "at"), [(1, 0), (4, 0), (5, 1), (16, 1), (17, 2), (64, 2), (65, 3), (2**31 - 1, 3)]
)
def test_fixed_ranges(processors: int, at: int) -> None:
    assert made("static").at(job(processors)) == at


def test_spans_of_fixed_ranges() -> None:
    static = made("static")
    assert [static.span(at) for at in range(4)] == [(None, 4), (5, 16), (17, 64), (65, None)]
    assert made("plain").span(0) == (None, None)


def test_no_request_is_longer_than_any() -> None:
    assert rtime(job(requested_time=None)) == NO_REQUEST > MAX_DURATION
    assert rnprod(job(3, None)) == 3 * NO_REQUEST
    assert nodes(job(3, None)) == 3


def test_ranges_follow_the_waits() -> None:
    grouping, values, waits = recut()
    assert grouping.ends == cut(values, waits) == [50, 120]
    assert [grouping.at(job(value)) for value in (1, 50, 51, 120, 121, 199)] == [0, 0, 1, 1, 2, 2]
    assert grouping.at(job(10**6)) == 2, "beyond all that was seen: the last"
    assert [grouping.span(at) for at in range(3)] == [(None, 50), (51, 120), (121, None)]


def test_each_range_has_seen_its_waits_in_order() -> None:
    grouping, values, waits = recut()
    for group, (low, high) in zip(grouping.groups, [(0, 50), (50, 120), (120, 200)], strict=True):
        its = waits[(values > low) & (values <= high)]
        assert group.snapshot() == WaitGroup.replayed(MAX_JOBS, KEEP, its).snapshot()
        assert waits_of(group.history) == its[-len(group.history) :].tolist()


def test_a_recut_forgets_the_ranges_before_it() -> None:
    grouping, values, _ = recut()
    grouping.recut(values, np.full(len(values), 5))
    assert grouping.ends == []
    assert [len(group.history) for group in grouping.groups] == [4000]


def test_one_value_is_one_range() -> None:
    grouping = made("rtime")
    grouping.recut(np.full(300, 3600), np.arange(300))
    assert (grouping.ends, grouping.span(0)) == ([], (None, None))
    assert grouping.at(job(requested_time=1)) == grouping.at(job(requested_time=None)) == 0


def test_jobs_without_request_are_a_range_of_their_own_if_their_waits_are() -> None:
    values = np.repeat([60, 3600, NO_REQUEST], 100)
    grouping = made("rtime")
    grouping.recut(values, np.where(values == NO_REQUEST, 90_000, 10))
    assert grouping.ends == [3600]
    assert [grouping.at(job(requested_time=each)) for each in (60, 3600, 3601, MAX_DURATION, None)] == [0, 0, 1, 1, 1]


def test_a_restored_grouping_is_the_same() -> None:
    grouping, _, _ = recut()
    again = made("nodes")
    again.restore(orjson.loads(orjson.dumps(grouping.snapshot())))
    assert again.snapshot() == grouping.snapshot()
    snapshot = grouping.snapshot()
    before = orjson.dumps(snapshot)
    for each in (grouping, again):
        each.groups[each.at(job(60))].add(7, None)
    assert again.snapshot() == grouping.snapshot()
    assert orjson.dumps(snapshot) == before
    grouping.recut(np.full(300, 1), np.arange(300))
    assert orjson.dumps(snapshot) == before


@given(st.lists(st.integers(1, 1000), unique=True, max_size=8).map(sorted), st.integers(1, 1100))
def test_every_value_is_in_the_one_range_that_spans_it(ends: list[int], processors: int) -> None:
    grouping = Grouping("nodes", nodes, ends, MAX_JOBS, KEEP)
    spans = [grouping.span(at) for at in range(len(grouping.groups))]
    within = [(low is None or low <= processors) and (high is None or processors <= high) for low, high in spans]
    assert within.count(True) == 1
    assert within.index(True) == grouping.at(job(processors))


def test_ranges_of_a_site_and_limits_of_those_that_are_found() -> None:
    settings = BoundSettings(ends="1+8", clusters="2-2", minimum_end=500)
    plain, static, by_nodes, *_ = groupings(settings, MAX_JOBS)
    assert (plain.ends, static.ends) == ([], [1, 8])
    _, values, waits = recut()
    by_nodes.recut(values, waits)
    assert by_nodes.ends == cut(values, waits, least=2, most=2, minimum_end=500)
    assert len(by_nodes.groups) == 2
    assert min(len(waits[values <= by_nodes.ends[0]]), len(waits[values > by_nodes.ends[0]])) >= 500
    with pytest.raises(TypeError, match="the ranges of grouping static are fixed"):
        static.recut(values, waits)
