"""Tests of the mirror: whatever is seen of a cluster, and when, its log is the same."""

from collections.abc import Iterable
from random import Random

import orjson
import pytest

from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.cluster.event_order import EVENT_ORDER
from shadowtime.shared.messages import (
    ClusterOpened,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    moment,
)
from tests.support.rejections import as_log, rejected
from tests.unit.services.follower.imagined import PARTS, Lived, lived

END = 9_000


def mirror() -> Mirror:
    return Mirror(PARTS, NameTable(Names()), 0)


def polled(lives: list[Lived], polls: Iterable[int], random: Random | None = None) -> list[Event]:
    """Return what a mirror tells that sees a picture at each poll, and dies now and then if there is a random."""
    seen, told = mirror(), list[Event]()
    names: dict[str, bytes] = {}
    for at in polls:
        if random is not None and random.random() < 0.2:
            again = mirror()
            if random.random() < 0.5:
                again.names.restore(names)
                again.restore(orjson.loads(orjson.dumps(seen.snapshot())))
            else:
                for event in told:
                    again.published(event)
            seen = again
        seen.take([observation for life in lives if (observation := life.seen(at)) is not None], at, whole=True)
        if seen.doubts:
            jobs = {key.job for key in seen.doubts}
            rows = (life.seen(at, accounted=True) for life in lives if life.key.job in jobs)
            seen.take([observation for observation in rows if observation is not None], at)
        seen.release(at - 1, beat=False)
        while seen.next_time() is not None and (random is None or random.random() > 0.05):
            told += seen.next_instant()
        names |= seen.names.take_fresh()
    while seen.next_time() is not None:
        told += seen.next_instant()
    return told


def spans(events: Iterable[Event]) -> dict[int, tuple[int, int | None, int]]:
    """Return of each life when its wait began, it started and was over, as told."""
    found: dict[int, list[int | None]] = {}
    for event in events:
        if isinstance(event, JobSubmitted):
            assert event.job_number not in found, "told twice"
            found[event.job_number] = [event.since, None, None]
        elif isinstance(event, JobStarted):
            found[event.job_number][1] = moment(event)
        elif isinstance(event, JobEnded | JobWithdrawn):
            assert found[event.job_number][2] is None, "over twice"
            found[event.job_number][2] = moment(event)
    return {number: (times[0], times[1], times[2]) for number, times in found.items()}  # type: ignore[misc]


def true_spans(lives: Iterable[Lived]) -> dict[int, tuple[int, int | None, int]]:
    return {
        life.number: (life.eligible, life.start, life.end) for life in lives if life.start or life.eligible <= life.end
    }


def opened() -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=16, pools=PARTS.pools, mode="recorded", wait_bound="bmbp")


@pytest.mark.parametrize("seed", range(30))
def test_every_life_is_told_once_however_seldom_it_is_seen_and_however_often_the_mirror_dies(seed: int) -> None:
    lives, random = lived(seed), Random(seed)
    polls, at = list[int](), 0
    while at < END:
        at += random.choice((1, 5, 15, 60))
        polls.append(at)
    events = polled(lives, polls, random)
    assert spans(events) == true_spans(lives)
    times = [event.time for event in events]
    assert times == sorted(times)
    assert rejected(as_log([opened(), *events])) == []


@pytest.mark.parametrize("seed", range(10))
def test_the_log_does_not_depend_on_when_it_was_looked(seed: int) -> None:
    lives = lived(seed)
    often, seldom = (polled(lives, range(1, END, every)) for every in (1, 15))
    assert often == seldom


@pytest.mark.parametrize("seed", range(5))
def test_what_comes_later_changes_nothing_before(seed: int) -> None:
    lives, cut = lived(seed), 1_500
    other = [life for life in lives if life.key.submit < cut]
    before = [event for event in polled(lives, range(15, cut, 15)) if event.time < cut - 15]
    assert before == [event for event in polled(other, range(15, cut, 15)) if event.time < cut - 15]


def test_an_instant_is_in_order() -> None:
    places = {kind: at for at, kind in enumerate(EVENT_ORDER)}
    events = polled(lived(1), range(15, END, 15))
    keys = [(event.time, places[type(event)], getattr(event, "job_number", 0)) for event in events]
    assert keys == sorted(keys)
