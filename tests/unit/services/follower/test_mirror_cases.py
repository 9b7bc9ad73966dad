"""Tests of what the mirror makes of single sights: changes, holds, clocks that go back, what cannot be told."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from shadowtime.services.follower.cluster.known_lives import MAX_LIVES
from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.observation import LifeKey, Node
from shadowtime.shared.accounting.machine_parts import MachineParts
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from tests.unit.services.follower.looks import WAITS, look, mirror


def kinds(events: Sequence[Event]) -> list[tuple[type, int]]:
    return [(type(event), event.time) for event in events]


def test_a_picture_in_which_nothing_has_happened_is_a_scheduling_point() -> None:
    seen = mirror()
    look(seen, 20, WAITS)
    seen.take([WAITS], 35, whole=True)
    seen.release(34)
    assert list(seen.next_instant()) == [SchedulingPoint(time=34)]


def test_what_has_changed_is_told_at_the_picture_that_shows_it() -> None:
    seen = mirror()
    assert kinds(look(seen, 20, WAITS)) == [(JobSubmitted, 10)]
    (changed,) = look(seen, 35, replace(WAITS, limit=1200, account="other", blocked=True))
    assert changed == JobChanged(time=34, job_number=7, requested_time=1200, group_id=1, blocked=True)
    (free,) = look(seen, 50, replace(WAITS, limit=None, unlimited=True, account="other"))
    assert free == JobChanged(time=49, job_number=7, unlimited=True, blocked=False)


def test_what_a_job_gets_at_its_start_is_told_before_it() -> None:
    seen = mirror()
    look(seen, 20, WAITS)
    told = look(seen, 35, replace(WAITS, state="running", start=25, processors=6))
    assert told == [
        JobChanged(time=25, job_number=7, requested_processors=6),
        JobStarted(time=25, job_number=7, processors=6, limit=600),
    ]


def test_held_and_released_between_two_pictures_or_over_several() -> None:
    seen = mirror()
    look(seen, 20, WAITS)
    assert kinds(look(seen, 35, replace(WAITS, eligible=30))) == [(JobWithdrawn, 30), (JobSubmitted, 30)]
    assert kinds(look(seen, 50, replace(WAITS, eligible=None))) == [(JobWithdrawn, 49)]
    assert look(seen, 65, replace(WAITS, eligible=None)) == []
    (again,) = look(seen, 80, replace(WAITS, eligible=70))
    assert again == JobSubmitted(
        time=70,
        job_number=7,
        submit_time=10,
        requested_processors=4,
        requested_time=600,
        user_id=1,
        queue_number=1,
        partition_number=1,
        pool=0,
        moldable=False,
    )


def test_suspended_and_resumed() -> None:
    seen, runs = mirror(), replace(WAITS, state="running", start=12)
    look(seen, 20, runs)
    assert look(seen, 35, replace(runs, state="suspended")) == [JobSuspended(time=20, job_number=7)]
    assert look(seen, 50, runs) == [JobResumed(time=49, job_number=7)]
    (ended,) = look(seen, 65, replace(runs, state="over", end=60, run_time=33))
    assert ended == JobEnded(time=60, job_number=7, run_time=33)


@pytest.mark.parametrize(
    ("after", "freed"),
    [({"processors": 8}, JobChanged), ({"state": "suspended"}, JobSuspended)],
    ids=["smaller", "suspended"],
)
def test_a_job_that_starts_on_freed_processors_does_not_wait_for_accounting(
    after: dict[str, Any], freed: type[Event]
) -> None:
    seen, runs = mirror(), replace(WAITS, state="running", start=12, processors=16)
    look(seen, 20, runs)
    other = replace(WAITS, key=LifeKey(8, -1, 22), eligible=22, state="running", start=25, processors=8)
    events = look(seen, 35, replace(runs, **after), other)
    assert kinds(events) == [(freed, 20), (JobSubmitted, 22), (JobStarted, 25)]
    assert seen.held_back == 0


def test_sizes_that_accounting_tells_with_their_times() -> None:
    seen, runs = mirror(), replace(WAITS, state="running", start=12, processors=8)
    look(seen, 20, runs)
    over = replace(runs, state="over", end=60, run_time=48, resized=((30, 6), (40, 2)))
    told = look(seen, 65, over, whole=False)
    assert told == [
        JobChanged(time=30, job_number=7, requested_processors=6),
        JobChanged(time=40, job_number=7, requested_processors=2),
        JobEnded(time=60, job_number=7, run_time=48),
    ]


def test_what_comes_late_is_told_at_the_next_instant_with_its_time() -> None:
    seen = mirror()
    look(seen, 100)
    submitted, started = look(seen, 115, replace(WAITS, state="running", start=90))
    assert isinstance(submitted, JobSubmitted)
    assert (submitted.time, submitted.eligible_time) == (100, 10)
    assert started == JobStarted(time=100, job_number=7, processors=4, limit=600, happened=90)
    assert seen.late == 2


def test_a_clock_that_is_set_back_stops_nothing() -> None:
    seen, runs = mirror(), replace(WAITS, state="running", start=12)
    look(seen, 4_000, runs)
    after = replace(runs, key=LifeKey(8, -1, 380), eligible=380, start=390)
    told = look(seen, 400, runs, after)
    assert [event.time for event in told] == [4_000, 4_000]
    assert told[-1] == JobStarted(time=4_000, job_number=8, processors=4, limit=600, happened=390)
    (ended,) = look(seen, 415, runs, replace(after, state="over", end=400, run_time=10))
    assert ended == JobEnded(time=4_001, job_number=8, run_time=10, happened=400)


def test_what_cannot_be_told_is_left_out_and_counted() -> None:
    seen = mirror()
    bad = [
        replace(WAITS, key=LifeKey(1, -1, 10), partition="nowhere"),
        replace(WAITS, key=LifeKey(2, -1, 10), partition="nowhere", node_list="x9", state="running", start=11),
        replace(WAITS, key=LifeKey(3, -1, 10), processors=17),
        replace(WAITS, key=LifeKey(4, -1, 10), memory=4001),
        replace(WAITS, key=LifeKey(5, -1, 10), processors=0),
        replace(WAITS, key=LifeKey(6, -1, 10), state="over", start=15, end=12),
    ]
    assert kinds(look(seen, 20, *bad, WAITS)) == [(JobSubmitted, 10)]
    assert look(seen, 35, *bad, WAITS) == []
    assert dict(seen.left_out) == {
        "on a node and in a partition of no pool": 2,
        "larger than its pool": 2,
        "without processors": 1,
        "ended before it started": 1,
    }


def test_nodes_come_and_go() -> None:
    seen = mirror()
    node = Node("n1", ("batch",), 8, 2000, 0, 8)
    seen.capacity.see([node, replace_node(node, "n2", 0), Node("x9", ("other",), 8, 2000, 0, 8)])
    assert look(seen, 20) == [CapacityChanged(time=19, processors=8, pool=0, memory=4000)]
    seen.capacity.see([node, replace_node(node, "n2", 8), replace_node(node, "new", 8)])
    assert look(seen, 35) == [CapacityChanged(time=34, processors=24, pool=0, memory=6000)]


def replace_node(node: Node, name: str, usable: int) -> Node:
    return node._replace(name=name, usable=usable)


def test_while_there_is_doubt_nothing_is_told_and_after_a_while_it_is_guessed() -> None:
    seen, runs, other = (
        mirror(patience=60),
        replace(WAITS, state="running", start=12),
        replace(WAITS, key=LifeKey(9, -1, 15)),
    )
    look(seen, 20, runs)
    assert look(seen, 35, replace(other, eligible=25)) == []
    assert {key.job for key in seen.doubts} == {7}
    told = look(seen, 110, replace(other, eligible=25))
    assert kinds(told) == [(JobSubmitted, 25), (JobEnded, 109)]
    assert (seen.guessed, told[-1].outcome) == (1, "killed")  # type: ignore[union-attr]


def test_what_waited_and_left_no_trace_was_cancelled() -> None:
    seen, runs = mirror(), replace(WAITS, key=LifeKey(8, -1, 11), eligible=11, state="running", start=12)
    look(seen, 20, WAITS, runs)
    assert look(seen, 35) == []
    seen.answered([runs], 34)
    assert {key.job for key in seen.doubts} == {8}
    told = look(seen, 50, replace(runs, state="over", end=40))
    assert kinds(told) == [(JobWithdrawn, 34), (JobEnded, 40)]
    assert seen.guessed == 0


def test_priorities_are_told_where_a_place_has_changed() -> None:
    seen = mirror()
    first, second, third = (replace(WAITS, key=LifeKey(job, -1, 10), priority=1000 - job) for job in (1, 2, 3))
    told = look(seen, 20, first, second, third)
    assert [event.priority for event in told] == [999, 998, 997]  # type: ignore[union-attr]
    older = [replace(each, priority=(each.priority or 0) + 50) for each in (first, second, third)]
    assert look(seen, 35, *older) == []  # all have grown
    older[2].priority = 5_000
    assert look(seen, 50, *older) == [JobChanged(time=49, job_number=3, priority=5_000)]


def test_what_the_cluster_expects_is_told_at_first_and_when_it_is_news() -> None:
    seen = mirror()
    told = look(seen, 20, replace(WAITS, expected=1_000))
    assert kinds(told) == [(JobSubmitted, 10), (JobExpected, 19)]
    assert look(seen, 35, replace(WAITS, expected=1_090)) == []
    assert look(seen, 50, replace(WAITS, expected=1_200)) == [JobExpected(time=49, job_number=7, start=1_200)]


def test_numbers_that_only_the_log_has_are_bound_to_their_names_again() -> None:
    first, again = mirror(), mirror()
    eve, bob = WAITS, replace(WAITS, key=LifeKey(8, -1, 11), eligible=11, user="bob")
    for event in look(first, 20, eve, bob):
        again.published(event)
    look(again, 35, eve, bob)
    (new,) = look(again, 50, eve, bob, replace(bob, key=LifeKey(9, -1, 40), eligible=40))
    assert new.user_id == 2  # type: ignore[union-attr]


def test_what_has_changed_at_the_end_of_a_run_is_told_before_it() -> None:
    seen = mirror()
    runs = replace(WAITS, state="running", start=12)
    look(seen, 20, runs)
    over = replace(runs, state="over", end=60, run_time=48, processors=2, limit=900)
    assert kinds(look(seen, 80, over)) == [(JobChanged, 20), (JobChanged, 59), (JobEnded, 60)]
    seen = mirror()
    look(seen, 20, runs)
    assert kinds(look(seen, 80, replace(over, end=20, run_time=8))) == [(JobEnded, 20)]
    seen = mirror()
    look(seen, 20, runs)
    assert kinds(look(seen, 80, replace(over, resized=((60, 2),)))) == [(JobChanged, 59), (JobEnded, 60)]


def test_a_run_of_which_accounting_has_a_part_as_another_is_one() -> None:
    """As slurmdbd does with a job that was resized while it was away."""
    seen = mirror()
    runs = replace(WAITS, state="running", start=12)
    look(seen, 20, runs)
    look(seen, 80, replace(runs, state="over", end=60, run_time=48))
    part = replace(runs, key=LifeKey(7, -1, 30), state="over", eligible=30, start=30, end=60, run_time=30)
    assert look(seen, 90, part, whole=False) == []
    seen = mirror()
    look(seen, 40, runs)
    assert look(seen, 50, replace(part, end=None, state="running"), whole=False) == []  # while it runs
    assert kinds(look(seen, 80, replace(runs, state="over", end=60, run_time=48))) == [(JobEnded, 60)]
    assert seen.left_out.total() == 1


def test_what_runs_for_ever_in_accounting_alone_holds_nobody_up() -> None:
    """A runaway job, as sacctmgr calls it."""
    seen = mirror()
    runaway = replace(WAITS, state="running", start=12)
    look(seen, 20, runaway, whole=False)
    assert look(seen, 30, whole=True) == []
    for at in (40, 80, 100):
        seen.take([runaway], at)
        seen.answered([runaway], at - 1)
        seen.take([], at, whole=True)
        seen.release(at - 1)
    told: list[Event] = []
    while seen.next_time() is not None:
        told += seen.next_instant()
    assert JobEnded in {type(event) for event in told}
    assert seen.guessed == 1


def test_a_task_that_squeue_loses_and_accounting_has_waits() -> None:
    seen = mirror()
    look(seen, 20, WAITS)
    for at in (35, 95, 155):
        seen.take([], at, whole=True)
        assert seen.doubts
        seen.take([WAITS], at)
        seen.answered([WAITS], at - 1)
        seen.release(at - 1)
        assert [event for event in told_by(seen) if not isinstance(event, SchedulingPoint)] == []
    (started,) = look(seen, 170, replace(WAITS, state="running", start=160))
    assert isinstance(started, JobStarted)


def told_by(seen: Mirror) -> list[Event]:
    told: list[Event] = []
    while seen.next_time() is not None:
        told += seen.next_instant()
    return told


def test_a_job_runs_no_longer_than_from_its_start_to_its_end() -> None:
    seen, runs = mirror(), replace(WAITS, state="running", start=12)
    look(seen, 20, runs)
    (ended,) = look(seen, 65, replace(runs, state="over", end=60, run_time=500))
    assert ended == JobEnded(time=60, job_number=7, run_time=48)


def test_an_expected_start_is_news_if_it_moved_by_a_tenth_of_what_is_left() -> None:
    seen = mirror()
    look(seen, 20, replace(WAITS, expected=10_000))
    # 9966 s and 9965 s are left of it, of which a tenth is 996.6 s and 996.5 s
    assert look(seen, 35, replace(WAITS, expected=10_996)) == []
    assert look(seen, 35, replace(WAITS, expected=10_997)) == [JobExpected(time=35, job_number=7, start=10_997)]


def test_a_missing_job_is_in_doubt_for_all_the_seconds_of_patience() -> None:
    seen = mirror(patience=60)
    look(seen, 20, replace(WAITS, state="running", start=12))
    assert look(seen, 35) == []
    seen.release(95)
    assert {key.job for key in seen.doubts} == {7}
    seen.release(96)
    assert not seen.doubts
    assert JobEnded in {type(event) for event in told_by(seen)}


def test_a_job_that_waits_in_several_partitions_has_a_pool_that_can_hold_it() -> None:
    """It was left out as larger than its pool until it ran, if the first of its partitions was too small for it."""
    pools = (Pool(name="cpu", processors=16, gpus=0), Pool(name="gpu", processors=64, gpus=8))
    parts = MachineParts(pools, {"cpu": 0, "gpu": 1}, {"n1": 0, "g1": 1})
    seen = Mirror(parts, NameTable(Names()), 0)
    jobs = [
        replace(WAITS, key=LifeKey(number, -1, 10), partition="cpu,gpu", processors=processors, gpus=gpus)
        for number, (processors, gpus) in enumerate([(4, 0), (4, 2), (32, 0), (128, 0)], 1)
    ]
    told = look(seen, 20, *jobs)
    assert [(event.job_number, event.pool) for event in told if isinstance(event, JobSubmitted)] == [
        (1, 0),
        (2, 1),
        (3, 1),
    ]
    assert seen.left_out == {"larger than its pool": 1}
    assert seen.names.take_fresh()["pool:cpu,gpu"] == b"0"
    assert look(seen, 30, *jobs) == []
    assert "pool:cpu,gpu" not in seen.names.take_fresh()
    runs = replace(jobs[0], state="running", start=35, partition="gpu", node_list="g1")
    changed, started = look(seen, 40, runs, *jobs[1:])
    assert (changed, started) == (
        JobChanged(time=35, job_number=1, pool=1, partition_number=2, queue_number=2),
        JobStarted(time=35, job_number=1, processors=4, limit=600),
    )


def test_a_job_of_scrontab_is_followed_over_many_lives() -> None:
    """Of a job that runs every 15 minutes, most lives of every other week of the past were lost without a word."""
    seen, every = mirror(), 900

    def week(first: int, count: int) -> list[Event]:
        begins = [every * number for number in range(first, first + count)]
        lives = [
            replace(WAITS, key=LifeKey(7, -1, time), eligible=time, state="over", start=time + 1, end=time + 9)
            for time in begins
        ]
        return look(seen, every * (first + count), *lives, whole=False)

    for first in (1, 673):
        assert sum(isinstance(event, JobEnded) for event in week(first, 672)) == 672
    assert not seen.left_out
    assert sum(isinstance(event, JobEnded) for event in week(1345, 1005)) == MAX_LIVES - 8
    assert seen.left_out == {"beyond 1,000 lives of a job": 13}
