"""Side by side: every figure is what a batch over all jobs gives, at any prefix and after any restart."""

import json
from itertools import chain
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.api.api import read_log
from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.services.catalogue import configure
from shadowtime.services.shadows.comparison.open_days import PATIENCE
from shadowtime.services.shadows.comparison.paired_logs import PairedLogs
from shadowtime.services.shadows.comparison.schema import Comparison
from shadowtime.services.shadows.comparison.side_by_side import REAL, SHADOW, SideBySide
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.statistics.slowdown import bounded_slowdown

JOBS = 1_500


def told_of(policy: str) -> list[Event]:
    workload = read_log(jobs=JOBS)
    events: list[Event] = []

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobSubmitted | JobStarted | JobEnded):
            events.append(envelope.event)

    carry_out(RunPlan(policy, "log", workload, configure(policy)), [note])
    return events


@pytest.fixture(scope="module")
def logs() -> tuple[list[Event], list[Event]]:
    return told_of("easy"), told_of("lwf")


def merged(logs: tuple[list[Event], list[Event]]) -> list[tuple[int, Event]]:
    """Return what happens in both by time; a submission only once."""
    shadow = [each for each in logs[SHADOW] if not isinstance(each, JobSubmitted)]
    return sorted(
        chain(((0, each) for each in logs[REAL]), ((1, each) for each in shadow)), key=lambda each: each[1].time
    )


def tell(both: SideBySide, which: int, event: Event) -> None:
    side = REAL if which == REAL else SHADOW
    if isinstance(event, JobSubmitted):
        both.submitted(event)
    elif isinstance(event, JobStarted):
        both.started(side, event.job_number, event.time)
    elif isinstance(event, JobEnded):
        both.ended(side, event.job_number, event.time, event.run_time, 1)
    both.at(event.time)


def batch(logs: tuple[list[Event], list[Event]], horizon: int) -> dict[str, float]:
    """Return the figures of the days before the first one that is not known, from all jobs at once."""
    submitted = {each.job_number: each.time for each in logs[REAL] if isinstance(each, JobSubmitted)}
    start = [{each.job_number: each.time for each in log if isinstance(each, JobStarted)} for log in logs]
    end = [{each.job_number: each for each in log if isinstance(each, JobEnded)} for log in logs]
    last_end = {job: max(end[0][job].time, end[1][job].time) for job in submitted}
    open_days = [when // DAY for job, when in submitted.items() if last_end[job] > horizon >= when]
    before = min([*open_days, horizon // DAY])
    jobs = [job for job, when in submitted.items() if when // DAY < before]
    waits = np.array([[start[which][job] - submitted[job] for which in (0, 1)] for job in jobs])
    slow = [
        [bounded_slowdown(wait, end[0][job].run_time) for wait in both] for job, both in zip(jobs, waits, strict=True)
    ]
    sooner = waits[:, 0] - waits[:, 1]
    return {
        "jobs": len(jobs),
        "real": waits[:, 0].mean(),
        "shadow": waits[:, 1].mean(),
        "longest": waits[:, 1].max(),
        "slowdown": np.mean([each[1] for each in slow]),
        "sooner": (sooner >= 60).mean(),
        "later_by": -sooner[sooner <= -60].mean(),
        "median": np.quantile(waits[:, 1], 0.5, method="inverted_cdf"),
        "half_sooner": np.quantile(sooner[sooner >= 60], 0.5, method="inverted_cdf"),
    }


def agree(found: Comparison, expected: dict[str, float]) -> None:
    fares = found.all
    assert fares is not None
    assert (
        fares.jobs
        == expected["jobs"]
        == sum(each.jobs for each in found.classes)
        == sum(each.jobs for each in found.users)
    )
    exact = [fares.wait.real, fares.wait.shadow, fares.longest_wait.shadow, fares.slowdown.shadow, fares.sooner.share]
    names = ("real", "shadow", "longest", "slowdown", "sooner")
    assert [*exact, fares.later.mean] == pytest.approx([*(expected[each] for each in names), expected["later_by"]])
    assert fares.median_wait.shadow == pytest.approx(expected["median"], rel=0.03, abs=1)
    assert fares.sooner.quantiles is not None
    assert fares.sooner.quantiles[1] == pytest.approx(expected["half_sooner"], rel=0.03)


def test_it_is_what_a_batch_gives_at_any_prefix(logs: tuple[list[Event], list[Event]]) -> None:
    both, events = SideBySide(), merged(logs)
    both.capacity(events[0][1].time, 128)
    compared = 0
    for number, (which, event) in enumerate(events):
        tell(both, which, event)
        if number % 700 == 0 and (found := both.report(event.time)).all is not None:
            agree(found, batch(logs, event.time))
            compared += 1
    assert compared > 3


def test_it_goes_on_from_a_snapshot(logs: tuple[list[Event], list[Event]]) -> None:
    events = merged(logs)
    whole, parts = SideBySide(), SideBySide()
    for number, (which, event) in enumerate(events):
        tell(whole, which, event)
        tell(parts, which, event)
        if number % 500 == 0:
            saved = json.loads(json.dumps(parts.snapshot()))
            parts = SideBySide()
            parts.restore(saved)
            assert json.loads(json.dumps(parts.snapshot())) == saved
    assert parts.report(events[-1][1].time, key=5) == whole.report(events[-1][1].time, key=5)


def test_the_busy_machine_is_that_of_the_schedule(logs: tuple[list[Event], list[Event]]) -> None:
    both, events = SideBySide(), merged(logs)
    began, last = events[0][1].time, events[-1][1].time
    both.capacity(began, 128)
    for which, event in events:
        tell(both, which, event)
    until = last // DAY * DAY
    asked = {each.job_number: each.requested_processors for each in logs[0] if isinstance(each, JobSubmitted)}
    found = both.report(last).utilization
    for log, share in zip(logs, (found.real, found.shadow), strict=True):
        starts = {each.job_number: each.time for each in log if isinstance(each, JobStarted)}
        ends = {each.job_number: each.time for each in log if isinstance(each, JobEnded)}
        work = sum(asked[job] * max(0, min(ends[job], until) - min(start, until)) for job, start in starts.items())
        assert share == pytest.approx(work / (128 * (until - began)))


def submit(both: SideBySide, number: int, time: int, **more: Any) -> None:
    both.submitted(JobSubmitted(time=time, job_number=number, requested_processors=2, requested_time=60, **more))


def test_a_day_waits_for_its_jobs_and_those_behind_it_for_the_day() -> None:
    both = SideBySide()
    submit(both, 1, 0)
    submit(both, 2, DAY)
    for which in (REAL, SHADOW):
        both.started(which, 2, DAY)
        both.ended(which, 2, DAY + 60, 60, 2)
    both.started(REAL, 1, 10)
    both.ended(REAL, 1, 70, 60, 2)
    both.at(3 * DAY)
    found = both.report(3 * DAY)
    assert found.all is None
    assert (found.real_waiting.jobs, found.shadow_waiting.jobs, found.shadow_waiting.longest) == (0, 1, 3 * DAY)
    both.started(SHADOW, 1, 3 * DAY)
    both.ended(SHADOW, 1, 3 * DAY + 60, 60, 2)
    both.at(4 * DAY)
    found = both.report(4 * DAY)
    assert found.all is not None
    assert (found.all.jobs, found.all.longest_wait.shadow, found.until) == (2, 3 * DAY, 2 * DAY)


def test_after_thirty_days_a_job_that_starves_counts_with_those() -> None:
    both = SideBySide()
    submit(both, 1, 0)
    both.started(REAL, 1, 0)
    both.ended(REAL, 1, 60, 60, 2)
    both.at(DAY + PATIENCE - 1)
    assert both.report(DAY + PATIENCE).all is None
    both.at(DAY + PATIENCE)
    found = both.report(DAY + PATIENCE).all
    assert found is not None
    assert (found.wait.real, found.wait.shadow, found.slowdown.shadow) == (0, PATIENCE, None)


def test_a_job_that_is_withdrawn_counts_for_neither() -> None:
    both = SideBySide()
    both.capacity(0, 4)
    submit(both, 1, 0)
    both.started(SHADOW, 1, 0)
    both.withdrawn(1, 3_600)
    both.at(DAY)
    found = both.report(DAY)
    assert (found.all, found.withdrawn, found.open_jobs) == (None, 1, 0)
    assert found.utilization.shadow == pytest.approx(2 * 3_600 / (4 * DAY))


def test_the_state_of_a_year_is_small() -> None:
    both, random = SideBySide(), np.random.default_rng(3)
    for number in range(40_000):
        time = number * 365 * DAY // 40_000
        submit(both, number, time, user_id=int(random.zipf(1.5)) % 5_000)
        for which in (REAL, SHADOW):
            start = time + int(random.exponential(7_200))
            both.started(which, number, start)
            both.ended(which, number, start + 600, 600, 2)
        if number % 500 == 0:
            both.at(max(0, time - DAY))
    size = len(json.dumps(both.snapshot()))
    assert size < 500_000


def test_a_start_that_is_found_late_counts_from_its_true_time() -> None:
    """The real waits were too long by the time after which the follower found the starts."""
    paired = PairedLogs(ClusterOpened(time=0, cluster="mine", processors=4, mode="recorded"), 0)
    job = JobSubmitted(time=10, job_number=7, requested_processors=2, requested_time=600)
    real: list[Event] = [
        job,
        JobStarted(time=150, job_number=7, processors=2, limit=600, happened=90),
        JobEnded(time=400, job_number=7, run_time=60, happened=150),
    ]
    for event in real:
        paired.real(event)
    for event in (
        JobStarted(time=90, job_number=7, processors=2, limit=600),
        JobEnded(time=150, job_number=7, run_time=60),
    ):
        paired.shadow(event)
    paired.at(DAY)
    result = paired.compared().all
    assert result is not None
    assert (result.wait.real, result.wait.shadow, result.sooner.share) == (80.0, 80.0, 0.0)
