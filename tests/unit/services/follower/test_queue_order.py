"""Tests of published priorities: they have the cluster's order, and few of them change."""

from random import Random

import pytest

from shadowtime.services.follower.cluster.queue_order import Job, priorities

Queue = list[tuple[Job, int]]


def queued(actual: dict[Job, int]) -> Queue:
    return [(job, priority) for priority, job in sorted((-priority, job) for job, priority in actual.items())]


def published(actual: dict[Job, int], known: dict[Job, int]) -> tuple[dict[Job, int], int]:
    """Return the new priorities, and the number of jobs whose published priority changed."""
    order = [(job, actual[job]) for job, _ in queued(actual)]
    new = priorities(order, known)
    by_published = sorted((-priority, job) for job, priority in new.items())
    assert [job for _, job in by_published] == [job for job, _ in order]
    assert all(0 <= priority <= 2**53 for priority in new.values())
    return new, sum(new[job] != priority for job, priority in known.items())


@pytest.mark.parametrize("equal", [False, True])
def test_ageing_of_a_long_queue_changes_nothing(equal: bool) -> None:
    """A job comes at the end in each of 50 minutes, in which the priorities of all others have grown."""
    actual: dict[Job, int] = {(0, number): 1_000 if equal else 20_000 - number for number in range(20_000)}
    known, changes = published(actual, {})
    for minute in range(1, 51):
        actual = {job: priority + 1 for job, priority in actual.items()} | {(minute, 20_000 + minute): 1}
        known, changed = published(actual, known)
        changes += changed
    assert changes <= 20_050  # once, where the numbers end at 0; it was 20,000 in each minute
    later = 0
    for minute in range(51, 71):
        actual = {job: priority + 1 for job, priority in actual.items()} | {(minute, 20_000 + minute): 1}
        known, changed = published(actual, known)
        later += changed
    assert later <= 200  # 20,000 in each minute before; some jobs make room for the new ones


def test_jobs_that_come_in_between_renumber_few_others() -> None:
    random = Random(1)
    actual: dict[Job, int] = {(0, number): 100 for number in range(2_000)}
    known, changes = published(actual, {})
    for number in range(2_000, 2_300):
        actual = {job: priority + 7 for job, priority in actual.items()}
        actual[0, number] = random.choice([0, 107 + number, *actual.values()])
        known, changed = published(actual, known)
        changes += changed
    assert changes < 8_000


def test_any_history_of_a_queue_keeps_its_order() -> None:
    for seed in range(30):
        random = Random(seed)
        actual: dict[Job, int] = {}
        known: dict[Job, int] = {}
        for number in range(60):
            for job in list(actual):
                actual[job] = max(0, actual[job] + random.choice([0, 0, 0, 1, 5, -3, 40]))
                if random.random() < 0.05:
                    del actual[job]
                    known.pop(job, None)
            actual[random.randrange(3), number] = random.randrange(4)
            known, _ = published(actual, known)
