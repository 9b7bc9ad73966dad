"""What real clusters do to jobs, through all stages: cancelled, held, changed, suspended, told late."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.tuned.policy import Tuned
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.messages.scores import Happenings, Scores
from shadowtime.testing.chain import Chain
from shadowtime.testing.workloads import TraceRow, workload, workloads

PASS = SchedulingPoint


def opened(**settings: Any) -> ClusterOpened:
    return ClusterOpened(time=0, cluster="c", processors=8, mode="recorded", **settings)


def submitted(time: int, number: int, processors: int, requested_time: int = 100, **more: Any) -> JobSubmitted:
    return JobSubmitted(
        time=time, job_number=number, requested_processors=processors, requested_time=requested_time, **more
    )


def started(time: int, number: int, processors: int, **more: Any) -> JobStarted:
    return JobStarted(time=time, job_number=number, processors=processors, limit=100, **more)


def told(*events: Event, **settings: Any) -> tuple[list[Envelope], Chain]:
    chain = Chain(opened(**settings))
    return [chain.push(event) for event in (chain.opened, *events)], chain


def decided(answers: Sequence[Envelope]) -> list[list[int]]:
    return [[start.job_number for start in each.event.starts] for each in answers if isinstance(each.event, Decided)]


def scores(*events: Event, **settings: Any) -> Scores:
    answers, _ = told(*events, ClusterClosed(time=events[-1].time), **settings)
    found = answers[-1].scores
    assert found is not None
    return found


FULL: tuple[Event, ...] = (submitted(0, 1, 6), PASS(time=0), started(0, 1, 6))
"""Two of eight processors are idle."""


def test_a_cancelled_job_is_in_nobodys_way() -> None:
    queue = submitted(1, 2, 8), submitted(2, 3, 2, 500), PASS(time=2)
    left, _ = told(*FULL, *queue, JobWithdrawn(time=3, job_number=2), PASS(time=3))
    assert decided(left) == [[1], [], [3]]  # job 3 would have delayed job 2


def test_a_held_job_comes_back_and_waits_anew() -> None:
    held = submitted(1, 2, 8), JobWithdrawn(time=5, job_number=2, reason="held"), PASS(time=5)
    back = submitted(50, 2, 8, submit_time=1), PASS(time=50)
    end = JobEnded(time=60, job_number=1, run_time=60), PASS(time=60), started(60, 2, 8)
    done = JobEnded(time=80, job_number=2, run_time=20), PASS(time=80)
    found = scores(*FULL, *held, *back, *end, *done, wait_bound="bmbp:publish=plain")
    assert found.policy.max_wait == 10
    assert found.happenings == Happenings(held=1)


def test_a_changed_job_is_planned_as_it_is_now() -> None:
    queue = submitted(1, 2, 8), submitted(2, 3, 2, 500), PASS(time=2)
    shorter, _ = told(*FULL, *queue, JobChanged(time=3, job_number=3, requested_time=90), PASS(time=3))
    assert decided(shorter)[-1] == [3]  # ends before job 1 does
    smaller, _ = told(*FULL, *queue, JobChanged(time=3, job_number=2, requested_processors=2), PASS(time=3))
    assert decided(smaller)[-1] == [2]


def test_a_changed_job_keeps_its_place_and_its_wait() -> None:
    queue = submitted(1, 2, 8), submitted(2, 3, 8), JobChanged(time=9, job_number=2, requested_time=50), PASS(time=9)
    end = JobEnded(time=20, job_number=1, run_time=20), PASS(time=20)
    answers, _ = told(*FULL, *queue, *end)
    assert decided(answers)[-1] == [2]
    done = started(20, 2, 8), JobEnded(time=30, job_number=2, run_time=10)
    assert scores(*FULL, *queue, *end, *done).policy.max_wait == 19


def test_a_running_job_that_grows_takes_more() -> None:
    grown = JobChanged(time=3, job_number=1, requested_processors=8), submitted(4, 2, 2), PASS(time=4)
    answers, chain = told(*FULL, *grown)
    assert decided(answers)[-1] == []
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    assert scheduler.pools[0].used == 8


def test_a_running_job_whose_limit_changes_is_expected_to_end_by_it() -> None:
    queue = submitted(1, 2, 8), submitted(2, 3, 2, 90), PASS(time=2)
    answers, _ = told(*FULL, *queue, JobChanged(time=3, job_number=1, requested_time=50), PASS(time=3))
    assert decided(answers) == [[1], [3], []]  # by then job 2 could start at second 50


@pytest.mark.parametrize("runtime", ["experts", "empirical", "hmm", "mixture"])
def test_a_running_job_is_learned_as_it_was_when_its_run_was_predicted(runtime: str) -> None:
    before = submitted(0, 1, 1, user_id=1), started(0, 1, 1), JobEnded(time=9, job_number=1, run_time=9)
    longer = JobChanged(time=11, job_number=2, requested_time=5000), JobEnded(time=4000, job_number=2, run_time=3990)
    told(*before, submitted(10, 2, 1, 10, user_id=1), started(10, 2, 1), *longer, runtime=runtime, adjustment="auto")


def test_a_suspended_job_gives_its_processors_and_goes_on_where_it_was() -> None:
    stopped = JobSuspended(time=10, job_number=1), submitted(10, 2, 8), PASS(time=10)
    answers, chain = told(*FULL, *stopped)
    assert decided(answers)[-1] == [2]
    on = JobResumed(time=40, job_number=1)
    chain.push(on)
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    assert (scheduler.pools[0].used, scheduler.pools[0].running.start_time.tolist()) == (
        6,
        [30],
    )  # as one that started so much later
    found = scores(*FULL, JobSuspended(time=10, job_number=1), on, JobEnded(time=60, job_number=1, run_time=30))
    assert found.policy.utilization == 6 * 30 / (8 * 60)
    assert found.happenings == Happenings(suspended=1)


def test_what_is_told_late_counts_when_it_was() -> None:
    late = submitted(20, 1, 8, eligible_time=5), started(20, 1, 8, happened=12)
    end = JobEnded(time=70, job_number=1, run_time=50, happened=62)
    found = scores(*late, end)
    assert (found.policy.max_wait, found.policy.makespan) == (7, 57)
    assert found.happenings == Happenings(told_late=3)


def test_bounds_are_scored_only_where_that_is_known() -> None:
    def waits(count: int) -> list[Event]:
        events: list[Event] = []
        for number in range(1, count):
            time = 100 * number
            events += [submitted(time, number, 1), started(time + 10, number, 1)]
            events.append(JobEnded(time=time + 20, job_number=number, run_time=10))
        return events

    def predictions(left_at: int) -> int:
        leaves = submitted(50_000, 900, 1), JobWithdrawn(time=left_at, job_number=900)
        (plain,) = scores(*waits(200), *leaves, wait_bound="bmbp:publish=plain").wait_bounds
        return plain.predictions

    assert predictions(50_011) == predictions(50_005) + 1  # the bound is 10 seconds: it failed, or nobody knows


@pytest.mark.parametrize(
    ("event", "reason"),
    [
        (JobWithdrawn(time=9, job_number=1), "job 1, withdrawn at 9, runs already"),
        (
            JobWithdrawn(time=9, job_number=7),
            "job 7, withdrawn at 9, neither waits nor runs",
        ),
        (
            JobChanged(time=9, job_number=7),
            "job 7, changed at 9, neither waits nor runs",
        ),
        (JobChanged(time=9, job_number=2, requested_processors=9), "job 2 changed to 9 processors; the machine has 8"),
        (JobExpected(time=9, job_number=1, start=20), "job 1, expected at 9, runs already"),
        (
            JobExpected(time=9, job_number=7, start=20),
            "job 7, expected at 9, neither waits nor runs",
        ),
        (
            JobExpected(time=9, job_number=2, start=20, happened=3),
            "job 2 expected at 3: expected a time from 4, when its wait began, to 9, when this was reported",
        ),
        (JobSuspended(time=9, job_number=2), "job 2, suspended at 9, still waits"),
        (JobResumed(time=9, job_number=1), "job 1, resumed at 9, was not suspended"),
        (JobSuspended(time=9, job_number=3), "job 3, suspended at 9, has been suspended since 5"),
        (
            started(9, 2, 8, happened=3),
            "job 2 started at 3: expected a time from 4, when its wait began, to 9, when this was reported",
        ),
        (
            started(9, 2, 8, happened=10),
            "job 2 started at 10: expected a time from 4, when its wait began, to 9, when this was reported",
        ),
        (
            JobResumed(time=9, job_number=3, happened=4),
            "job 3 resumed at 4: expected a time from 5, when it was suspended, to 9, when this was reported",
        ),
        (
            submitted(9, 8, 1, eligible_time=10),
            "job 8 has the eligible time 10; expected no later time than its submission at 9",
        ),
    ],
)
def test_what_contradicts_the_log_is_rejected_by_the_first_stage(event: Event, reason: str) -> None:
    before = submitted(0, 1, 2), submitted(0, 3, 2), PASS(time=0), started(0, 1, 2), started(0, 3, 2)
    _, chain = told(*before, submitted(4, 2, 8), JobSuspended(time=5, job_number=3))
    first = next(iter(chain.stages.values()))
    answer = first.push(Envelope(run="r", sequence=chain.sequence, event=event))
    assert answer is not None
    assert isinstance(answer.event, Rejected)
    assert answer.event.reason == reason


class Cancelling(Machine):
    """A machine on which users cancel jobs that have waited long enough for their taste."""

    def __init__(self, jobs: Workload, patience: dict[int, int]) -> None:
        super().__init__(jobs)
        self._patience = patience

    def _leaves(self) -> dict[int, int]:
        return {
            number: job.submit_time + self._patience[number]
            for number, (_, job) in self._waiting.items()
            if number in self._patience
        }

    def next_time(self) -> int | None:
        leaves = self._leaves().values()
        return min(leaves) if not self._ends and not self._more() and leaves else self._sooner(leaves)

    def _more(self) -> bool:
        return self._next is not None

    def _sooner(self, leaves: Any) -> int | None:
        time = super().next_time()
        return time if time is None else min(time, *leaves, time)

    def next_instant(self) -> Sequence[Event]:
        time = self.next_time()
        if time is None:
            return ()
        gone = [number for number, at in self._leaves().items() if at == time]
        mine = [JobWithdrawn(time=time, job_number=number) for number in gone]
        others = super().next_time() if self._ends or self._more() else None
        for number in gone:
            del self._waiting[number]
        if others == time:
            told = list(super().next_instant())
            ends = [each for each in told if isinstance(each, JobEnded)]
            return [*ends, *mine, *(each for each in told if not isinstance(each, JobEnded))]
        self._time = time
        return [*mine, SchedulingPoint(time=time)]


def played(source: ReplaySource, policy: str) -> tuple[list[Event], Tuned]:
    chain = Chain(ClusterOpened(time=0, cluster="c", processors=8, policy=policy, runtime="last-two"))
    events = [answer.event for _, answer in chain.play(source)]
    scheduler = chain.stages["scheduler"].handler
    assert isinstance(scheduler, Scheduler)
    assert isinstance(scheduler.pools[0].policy, Tuned)
    return events, scheduler.pools[0].policy


@given(jobs=workloads(), cancelled=st.dictionaries(st.integers(1, 12), st.integers(1, 40), max_size=4))
def test_the_shadow_of_the_member_that_decides_is_the_run_whoever_leaves(
    jobs: Workload, cancelled: dict[int, int]
) -> None:
    last = TraceRow(1000, int(jobs.columns["submit_time"][-1]) + 2000, 1, 5, 5)
    rows = [
        TraceRow(
            job.job_number, job.submit_time, job.processors, job.requested_time, job.run_time, user_id=job.user_id or -1
        )
        for job in jobs
    ]
    jobs = workload(8, [*rows, last])
    patience = {number: seconds for number, seconds in cancelled.items() if number != 1000}
    keys = "orders=spf,thresholds=40,overtaken=0.5,patience=1,least=1000000"
    events, policy = played(Cancelling(jobs, patience), f"tuned:{keys}")
    policy.shadows.add_results(0)
    begun = {event.job_number: event.time for event in events if isinstance(event, JobStarted)}
    submissions = {job.job_number: job.submit_time for job in jobs}
    assert policy.shadows.counts.sum() == len(begun)
    assert policy.shadows.totals[1, 1] == sum(time - submissions[number] for number, time in begun.items())
