"""Bounds of a young run: they count jobs that still wait, widen until they hold, and say that they are young."""

import heapq
import random

import pytest

from shadowtime.services.pipeline import STAGES
from shadowtime.services.wait_bound.groups.queue_bounds import QueueBounds
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.services.wait_bound.young import MAX_OPEN, YOUNG, YoungRun
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.text.events import YOUNG as WORDS
from shadowtime.shared.text.events import bounded

(STAGE,) = (stage for stage in STAGES if stage.name == "wait_bound")
PROCESSORS = 64


def queued(seed: int, load: float, jobs: int, mean: int) -> list[tuple[int, int]]:
    """Return submission and wait of jobs on a machine that begins empty, first come, first served."""
    chance = random.Random(seed)
    time, free, waits = 0.0, PROCESSORS, [0] * jobs
    arrivals = []
    for _ in range(jobs):
        time += chance.expovariate(load * PROCESSORS / 5.33 / mean)
        arrivals.append((int(time), chance.choice((1, 1, 2, 4, 8, 16)), max(1, int(chance.expovariate(1 / mean)))))
    running: list[tuple[int, int]] = []
    queue: list[int] = []
    at = 0
    while at < jobs or queue:
        if running and (at == jobs or running[0][0] <= arrivals[at][0]):
            now, size = heapq.heappop(running)
            free += size
        else:
            now = arrivals[at][0]
            queue.append(at)
            at += 1
        while queue and arrivals[queue[0]][1] <= free:
            number = queue.pop(0)
            free -= arrivals[number][1]
            waits[number] = now - arrivals[number][0]
            heapq.heappush(running, (now + arrivals[number][2], arrivals[number][1]))
    return [(arrivals[number][0], waits[number]) for number in range(jobs)]


def stated(jobs: list[tuple[int, int]], name: str, *, restarted: bool = False) -> list[WaitBound]:
    """Return the bound of the ensemble that each job is told in a run with this name."""
    events: list[tuple[int, int, Event]] = []
    for number, (time, wait) in enumerate(jobs):
        start = time + wait
        events.append((start + 1, 0, JobEnded(time=start + 1, job_number=number, run_time=1)))
        events.append((time, 1, JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=60)))
        events.append((start, 2, JobStarted(time=start, job_number=number, processors=1)))
    opened = ClusterOpened(
        time=0, cluster="mine", processors=10**6, mode="recorded", name=name, wait_bound="bmbp:publish=ensemble"
    )
    run, bounds = StageRun(STAGE), []
    for sequence, event in enumerate((opened, *(event for *_, event in sorted(events, key=lambda each: each[:2])))):
        answer = run.push(Envelope(run="mine/live", cluster="mine", sequence=sequence, event=event))
        assert answer is not None
        if isinstance(event, JobSubmitted):
            bounds.append(answer.wait_bounds[0])
        if restarted and sequence % 50 == 49:
            saved = run.snapshot()
            run = StageRun(STAGE)
            run.restore(saved)
            assert run.snapshot() == saved
    return bounds


def held(jobs: list[tuple[int, int]], bounds: list[WaitBound]) -> float:
    """Return the share of stated bounds that held."""
    pairs = [(bound.bound, wait) for bound, (_, wait) in zip(bounds, jobs, strict=True) if bound.bound is not None]
    return sum(wait <= seconds for seconds, wait in pairs) / len(pairs)


def test_bounds_of_a_followed_cluster_hold_more_often_from_the_first_hour() -> None:
    """A queue that grows all the time is the worst case: each job waits longer than all before it."""
    growing = queued(5, load=1.2, jobs=800, mean=60)
    assert held(growing, stated(growing, "easy")) < 0.4
    assert held(growing, stated(growing, "live")) > 0.75
    steady = queued(5, load=0.9, jobs=800, mean=600)
    assert held(steady, stated(steady, "easy")) < 0.9
    assert held(steady, stated(steady, "live")) > 0.92


def test_they_say_that_they_are_young_and_end_to_be() -> None:
    jobs = [(60 * number, number % 7) for number in range(YOUNG + 100)]
    bounds = stated(jobs, "live")
    assert bounds[0].reason == "not enough history: 0 of 59 waits"
    assert bounds[100].young
    assert "young" in bounded(bounds[100])
    assert WORDS in bounded(bounds[100])
    assert bounds[-1].young is None
    assert bounds[-1].bound == stated(jobs, "easy")[-1].bound
    assert all(bound.young is None for bound in stated(jobs[:100], "easy"))


def test_there_is_none_while_too_many_still_wait() -> None:
    jobs = [(0, 1)] * 70 + [(100, 10_000)] * 50 + [(200, 5)]
    last = stated(jobs, "live")[-1]
    assert (last.bound, last.starts_within[-1][0]) == (None, 0.25)
    assert last.reason == "the run is young: 50 of 120 jobs still wait"
    many = YoungRun(0.95)
    many.reveal(0, 1)
    for number in range(MAX_OPEN + 1):
        many.submit(number, 0, 1)
    many.advance(10)
    assert many.least(0.5, 0.95, 10) is None


@pytest.mark.parametrize("load", [0.9, 1.2])
def test_a_restart_changes_nothing(load: float) -> None:
    jobs = queued(3, load, 300, 60)
    assert stated(jobs, "live", restarted=True) == stated(jobs, "live")


def test_state_of_before_is_not_young() -> None:
    bounds = QueueBounds(None, BoundSettings(), widens=True)
    job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=60)
    assert all(message.young for message in bounds.messages(job, 0, bounds.find(job, 0, 0.95, 0.95), 0.95, 0.95))
    saved = bounds.snapshot()
    del saved["young"]
    bounds.restore(saved)
    assert not any(message.young for message in bounds.messages(job, 0, bounds.find(job, 0, 0.95, 0.95), 0.95, 0.95))
