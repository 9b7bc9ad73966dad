"""All bounds of one queue, from submissions and starts in order of time."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.bounder import Updates
from shadowtime.services.wait_bound.coverage_monitor import LiveCoverage
from shadowtime.services.wait_bound.groups.clustering import cut
from shadowtime.services.wait_bound.groups.group_bound import WaitGroup, bound
from shadowtime.services.wait_bound.groups.groupings import NO_REQUEST
from shadowtime.services.wait_bound.groups.queue_bounds import ALL, FIVE, TABLE, CurrentBound, QueueBounds
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.shared.distributions import unpacked_numbers
from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.shared.messages.predictions import ChangePoint, WaitBound
from shadowtime.testing.examples import examples
from tests.support.memory_size import memory_size
from tests.unit.services.wait_bound.happenings import Happening, happenings, made

KEYS = BoundSettings()


def alike(waits: Sequence[int], processors: int = 1, requested_time: int | None = 60) -> list[tuple[JobSubmitted, int]]:
    """Return jobs one of which has started before the next is submitted."""
    gap = max(waits) + 1
    return [
        (
            JobSubmitted(
                time=number * gap,
                job_number=number,
                requested_processors=processors,
                requested_time=requested_time,
            ),
            wait,
        )
        for number, wait in enumerate(waits)
    ]


def mirror_cluster_event(
    to: QueueBounds, each: Happening, settings: BoundSettings = KEYS
) -> list[CurrentBound] | Updates:
    """Return what was found at a submission, or the news of a start."""
    to.advance(each.time)
    if each.wait is not None:
        return to.reveal(each.job, each.wait)
    found = to.find(each.job, each.time, settings.quantile, settings.confidence, settings.side)
    to.submit(each.job, found)
    return found


def run(
    jobs: Sequence[tuple[JobSubmitted, int]], settings: BoundSettings = KEYS
) -> tuple[QueueBounds, list[list[CurrentBound] | Updates]]:
    bounds = QueueBounds(None, settings)
    return bounds, [mirror_cluster_event(bounds, each, settings) for each in happenings(jobs)]


def finds(results: Sequence[list[CurrentBound] | Updates]) -> Iterator[list[CurrentBound]]:
    return (each for each in results if isinstance(each, list))


def change_points(results: Sequence[list[CurrentBound] | Updates]) -> list[ChangePoint]:
    return [point for each in results if isinstance(each, Updates) for point in each.change_points]


def saved(bounds: QueueBounds) -> Any:
    return orjson.loads(orjson.dumps(bounds.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY))


def published(bounds: QueueBounds, job: JobSubmitted, quantile: float = 0.95) -> dict[str, WaitBound]:
    found = bounds.find(job, job.time, quantile, 0.95)
    return {each.grouping: each for each in bounds.messages(job, job.time, found, quantile, 0.95)}


def test_the_plain_bound_is_that_of_one_group() -> None:
    """Each wait is held against the bound that was issued at its submission, when it is revealed."""
    jobs = made(1500)
    _, results = run(jobs)
    group, issued = WaitGroup(KEYS.history, 59), dict[int, int | None]()
    points = list[int]()
    for each, result in zip(happenings(jobs), results, strict=True):
        number = each.job.job_number
        if each.wait is None:
            issued[number], count = bound([group], 0, 0.95, 0.95)
            assert isinstance(result, list)
            assert result[0] == CurrentBound(issued[number], count, stated=issued[number])
        else:
            points.append(group.add(each.wait, issued[number]))
    assert [misses for misses in points if misses] == [
        point.misses for point in change_points(results) if point.grouping == "plain"
    ]
    assert any(points)


def test_live_coverage_is_told_of_every_wait_that_had_a_bound() -> None:
    jobs = made(1500)
    _, results = run(jobs)
    for at, name in enumerate(ALL):
        live, issued, expected, told = LiveCoverage(0.95), dict[int, int | None](), [], []
        for each, result in zip(happenings(jobs), results, strict=True):
            if isinstance(result, list):
                issued[each.job.job_number] = result[at].bound
                continue
            wait, its = each.wait or 0, issued[each.job.job_number]
            if its is not None and live.add(covered=its >= wait):
                expected.append((live.message(name, None).revealed, live.share, *live.band))
            told += [(c.revealed, c.covered, c.low, c.high) for c in result.coverage if c.grouping == name]
        assert told == expected
        assert len(told) >= 10


def test_the_ensemble_is_one_of_the_five() -> None:
    _, results = run(made(1500))
    assert all(found[len(FIVE)] in found[: len(FIVE)] for found in finds(results))


def test_ranges_are_cut_after_so_many_submissions_from_what_was_revealed() -> None:
    assert KEYS.recut == 1000
    bounds, jobs, submissions = QueueBounds(None, BoundSettings(recut=250)), made(800, gap=600), 0
    revealed = list[tuple[int, int, int]]()
    several = 0
    for each in happenings(jobs):
        before = [grouping.ends for grouping in bounds.groupings]
        mirror_cluster_event(bounds, each)
        ends = [grouping.ends for grouping in bounds.groupings]
        if each.wait is not None:
            size, request = each.job.requested_processors, each.job.requested_time or NO_REQUEST
            revealed.append((size, request, each.wait))
        submissions += each.wait is None
        if each.wait is not None or submissions % 250:
            assert ends == before
            continue
        sizes, requests, waits = np.array(revealed).T
        assert ends == [
            [],
            [4, 16, 64],
            *(cut(values, waits, most=5) for values in (sizes, requests, sizes * requests)),
        ]
        several += max(map(len, ends[2:]))
        # Jobs that were submitted before and start later are put into the new ranges.
        assert sum(len(group.history) for group in bounds.groupings[1].groups) <= len(revealed)
    assert several > 0


def test_nothing_is_cut_where_nothing_was_revealed() -> None:
    bounds = QueueBounds(None, BoundSettings(recut=5))
    for job, _ in made(20):
        assert not bounds.submit(job, bounds.find(job, job.time, 0.95, 0.95))
    assert [grouping.ends for grouping in bounds.groupings] == [[], [4, 16, 64], [], [], []]


@pytest.mark.parametrize(
    "settings",
    [
        BoundSettings(recut=100),
        BoundSettings(recut=100, quantile=0.5, confidence=0.8, history=150),
        BoundSettings(recut=100, side="both"),
        BoundSettings(recut=100, side="lower", quantile=0.05, clusters="2-4"),
    ],
)
@pytest.mark.parametrize("at_submission", [1, 99, 100, 101, 250, 300])
def test_a_restored_one_goes_on(settings: BoundSettings, at_submission: int) -> None:
    """Also right before and after the ranges are cut anew, at each hundred."""
    jobs = made(420)
    bounds, again = QueueBounds(3, settings), QueueBounds(3, settings)
    for job, wait in made(150, seed=9):  # to be forgotten
        again.submit(job, again.find(job, job.time, settings.quantile, settings.confidence, settings.side))
        again.reveal(job, wait)
    submissions, restored = 0, False
    for each in happenings(jobs):
        submissions += each.wait is None
        results = [mirror_cluster_event(bounds, each, settings)]
        if restored:
            results.append(mirror_cluster_event(again, each, settings))
            assert results[0] == results[1]
        elif submissions == at_submission:
            again.restore(saved(bounds))
            assert saved(again) == saved(bounds)
            restored = True
    assert saved(again) == saved(bounds)


@given(st.integers(0, 600))
@examples(15)
def test_restored_anywhere(cut_at: int) -> None:
    happen, keys = happenings(made(300, seed=5)), BoundSettings(recut=60)
    bounds, again = QueueBounds(None, keys), QueueBounds(None, keys)
    for each in happen[:cut_at]:
        mirror_cluster_event(bounds, each)
    again.restore(saved(bounds))
    for each in happen[cut_at:]:
        assert mirror_cluster_event(again, each) == mirror_cluster_event(bounds, each)
    assert saved(again) == saved(bounds)


def test_a_snapshot_stays() -> None:
    bounds, _ = run(made(200))
    snapshot = bounds.snapshot()
    before = orjson.dumps(snapshot)
    for job, wait in made(200, seed=2):
        bounds.submit(job, bounds.find(job, job.time, 0.95, 0.95))
        bounds.reveal(job, wait)
    assert orjson.dumps(snapshot) == before


def test_bounds_at_another_quantile_detect_the_same_changes() -> None:
    jobs = made(1500)
    _, usual = run(jobs)
    _, median = run(jobs, BoundSettings(quantile=0.5, confidence=0.8))
    assert change_points(median) == change_points(usual) != []
    for low, high in zip(finds(median), finds(usual), strict=True):
        assert all((a.bound or 0) <= b.bound for a, b in zip(low[:2], high[:2], strict=True) if b.bound is not None)


def test_a_change_point_says_where_and_how() -> None:
    _, results = run(alike([10, 20] * 60 + [1000, 2000, 3000, 4000], processors=8))
    points = change_points(results)
    assert [(p.grouping, p.lowest, p.highest) for p in points if p.grouping in ("plain", "static")] == [
        ("plain", None, None),
        ("static", 5, 16),
    ]
    assert {(p.queue, p.misses, p.kept) for p in points} == {(None, 3, 59)}


def test_ten_jobs_are_too_few() -> None:
    jobs = alike(range(10))
    bounds, results = run(jobs)
    assert all(found.bound is None for each in finds(results) for found in each)
    for name in (*FIVE, "ensemble"):
        message = published(bounds, jobs[0][0])[name]
        assert (message.bound, message.observations) == (None, 10)
        assert message.reason == "not enough history: 10 of 59 waits"
    assert published(bounds, jobs[0][0])["conformal"].bound is None
    assert [each for each, _ in published(bounds, jobs[0][0])["ensemble"].starts_within] == [0.05, 0.25, 0.5]


def test_the_conformal_bound_says_how_many_waits_it_needs() -> None:
    jobs = alike(range(10))
    bounds, _ = run(jobs)
    assert published(bounds, jobs[0][0])["conformal"].reason == "not enough history: 10 of 20 waits"


def test_with_enough_history_there_is_no_reason() -> None:
    jobs = alike([each % 7 for each in range(59)])
    bounds, _ = run(jobs)
    messages = published(bounds, jobs[0][0])
    assert list(messages) == list(ALL)
    assert {(each.bound, each.observations, each.reason) for each in messages.values()} == {(6, 59, None)}


def test_it_says_within_what_time_a_job_starts() -> None:
    jobs = alike([7919 * each % 1009 for each in range(400)])
    bounds, _ = run(jobs)
    messages = published(bounds, jobs[0][0])
    table = messages["ensemble"].starts_within
    assert [quantile for quantile, _ in table] == list(TABLE)
    assert [seconds for _, seconds in table] == sorted(seconds for _, seconds in table)
    assert dict(table)[0.95] == messages["ensemble"].bound
    assert all(messages[name].starts_within == () for name in ALL if name != "ensemble")


def test_at_another_quantile_there_is_no_conformal_bound() -> None:
    jobs = made(300)
    bounds, _ = run(jobs)
    before = orjson.dumps(bounds.snapshot())
    messages = published(bounds, jobs[0][0], quantile=0.5)
    assert list(messages) == [*FIVE, "ensemble"]
    assert {each.quantile for each in messages.values()} == {0.5}
    usual = published(bounds, jobs[0][0])
    assert all((messages[name].bound or 0) <= (usual[name].bound or 0) for name in messages)
    assert published(bounds, jobs[0][0], quantile=0.999)["plain"].bound is None
    assert orjson.dumps(bounds.snapshot()) == before, "bounds change nothing"


def test_waits_that_are_all_zero_are_bounded_by_zero() -> None:
    chance = Generator(PCG64([1]))
    jobs = [
        (
            JobSubmitted(
                time=60 * number,
                job_number=number,
                requested_processors=int(chance.integers(1, 100)),
                requested_time=int(chance.integers(1, 100)) * 60,
            ),
            0,
        )
        for number in range(300)
    ]
    _, results = run(jobs, BoundSettings(recut=50))
    assert {found.bound for each in list(finds(results))[60:] for found in each} == {0}
    assert change_points(results) == []


def test_one_request_only_is_one_range() -> None:
    jobs = [(job.model_copy(update={"requested_time": 3600}), wait) for job, wait in made(500, gap=3600)]
    bounds, results = run(jobs, BoundSettings(recut=100))
    assert bounds.groupings[FIVE.index("rtime")].ends == []
    assert bounds.groupings[FIVE.index("rnprod")].ends == [
        3600 * end for end in bounds.groupings[FIVE.index("nodes")].ends
    ]
    assert all(found[FIVE.index("nodes")] == found[FIVE.index("rnprod")] for found in finds(results))


def test_a_job_of_which_nothing_was_known_teaches_its_wait_and_is_not_scored() -> None:
    bounds, _ = run(made(200))
    before = saved(bounds)
    job = JobSubmitted(time=0, job_number=9999, requested_processors=2, requested_time=600)
    assert bounds.reveal(job, 10**6) == Updates()
    after = saved(bounds)
    revealed = unpacked_numbers(after["revealed"]).T.tolist()
    assert revealed == [*unpacked_numbers(before["revealed"]).T.tolist(), [2, 600, 10**6]]
    assert unpacked_numbers(after["groupings"][0]["groups"][0][-1])[-1] == 10**6
    assert unpacked_numbers(after["conformal"]["history"])[-1] == 10**6
    for unchanged in ("ensemble", "coverage", "submissions"):
        assert after[unchanged] == before[unchanged]


def test_no_more_is_remembered_than_said() -> None:
    keys = BoundSettings(history=100)
    bounds, _ = run(made(700), keys)
    many, _ = run(made(2100), keys)
    state = saved(bounds)
    assert unpacked_numbers(state["revealed"]).shape == (3, 100)
    assert len(unpacked_numbers(state["conformal"]["history"])) == 100
    assert all(len(group[-1]) <= 100 for grouping in state["groupings"] for group in grouping["groups"])
    assert memory_size(many) < 1.3 * memory_size(bounds)
    assert len(state["open"]) == len(state["conformal"]["open"]) == 0


def test_huge_jobs_without_request_are_above_all_others() -> None:
    jobs = alike([10, 10, 90_000] * 100, requested_time=None)
    jobs = [
        (job.model_copy(update={"requested_processors": (1, 2, 2**23)[job.job_number % 3]}), wait) for job, wait in jobs
    ]
    bounds, _ = run(jobs, BoundSettings(recut=300))
    rnprod = bounds.groupings[FIVE.index("rnprod")]
    assert all(end > 0 for end in rnprod.ends)


def test_a_change_among_large_jobs_without_request_is_told() -> None:
    jobs = alike([10, 20, 90_000] * 100 + [10**6 + each for each in range(90)], requested_time=None)
    jobs = [
        (job.model_copy(update={"requested_processors": (8192, 8193, 10_000)[job.job_number % 3]}), wait)
        for job, wait in jobs
    ]
    _, results = run(jobs, BoundSettings(recut=300))
    assert "rnprod" in {point.grouping for point in change_points(results)}
