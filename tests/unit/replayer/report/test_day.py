"""The day of the report: no processor twice, no job lost, and the right day."""

import re
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.run_record import EndedJobs, RunRecord
from shadowtime.replayer.report.day import choose, day_that_most_waited, processor_bars
from shadowtime.replayer.report.machine_and_queue import MAX_BARS, STEP, machine_and_queue, one_day
from shadowtime.shared.formatting import DAY
from tests.support.recorded_runs import replayed
from tests.support.small_logs import generated, job, plan_of, workload_of

JOBS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 30), st.integers(1, 9)), min_size=1, max_size=30)


@given(JOBS)
def test_jobs_get_their_processors_and_share_none(jobs: list[tuple[int, int, int]]) -> None:
    starts, lengths, processors = map(np.array, zip(*jobs, strict=True))
    ends = starts + lengths
    bars = processor_bars(starts, ends, processors)
    for number, wanted in enumerate(processors.tolist()):
        assert sum(bar.high - bar.low for bar in bars if bar.job == number) == wanted
    for at in range(81):
        held = sorted((bar.low, bar.high) for bar in bars if starts[bar.job] <= at < ends[bar.job])
        assert all(before[1] <= after[0] for before, after in pairwise(held))


@given(JOBS)
def test_no_more_rows_than_the_most_processors_at_once(jobs: list[tuple[int, int, int]]) -> None:
    starts, lengths, processors = map(np.array, zip(*jobs, strict=True))
    ends = starts + lengths
    most = max(int(processors[(starts <= at) & (at < ends)].sum()) for at in range(81))
    assert max(bar.high for bar in processor_bars(starts, ends, processors)) == most


def waits_of(*waits: tuple[int, int]) -> EndedJobs:
    """Return jobs that were submitted and started at these seconds."""
    table = np.array([[number, a, b, b + 1, 1, 1] for number, (a, b) in enumerate(waits)], dtype=np.int64)
    plan = plan_of(workload_of(*(job(number, a) for number, (a, _) in enumerate(waits))))
    return EndedJobs(plan, table)


def test_the_day_is_that_on_which_most_was_waited() -> None:
    jobs = waits_of((0, DAY + 5), (DAY, 2 * DAY + 7), (DAY + 1, 3 * DAY - 1), (4 * DAY, 4 * DAY + 50))
    seconds = [
        sum(
            max(0, min(b, (day + 1) * DAY) - max(a, day * DAY))
            for a, b in zip(jobs.submit_time, jobs.start_time, strict=True)
        )
        for day in range(5)
    ]
    assert day_that_most_waited(jobs, 0) == int(np.argmax(seconds)) * DAY
    assert day_that_most_waited(jobs, -500) % DAY == DAY - 500


WAITS = st.tuples(st.integers(0, 20 * DAY), st.integers(0, 9 * DAY)).map(lambda each: (each[0], sum(each)))


@given(st.lists(WAITS, min_size=1, max_size=8), st.integers(-DAY, DAY))
def test_days_between_events_are_told_apart_by_their_first(waits: list[tuple[int, int]], midnight: int) -> None:
    edges = [midnight + day * DAY for day in range(-6, 32)]
    waited = [sum(max(0, min(b, edge + DAY) - max(a, edge)) for a, b in waits) for edge in edges]
    if any(waited):
        assert day_that_most_waited(waits_of(*waits), midnight) == edges[int(np.argmax(waited))]


def test_a_log_with_a_leap_in_time_has_a_day_that_is_as_soon_found() -> None:
    leap = 9 * 10**15
    assert day_that_most_waited(waits_of((0, 5), (leap, leap + 9)), 0) == leap // DAY * DAY


def drawn(*records: RunRecord) -> str:
    return machine_and_queue(records, choose(records[0]))


def test_every_job_of_the_day_is_drawn_and_each_hour_told() -> None:
    jobs = [job(number, 0, processors=2, run_time=600, requested_time=700) for number in range(1, 21)]
    _, (record,) = replayed([plan_of(workload_of(*jobs))])
    html = drawn(record)
    assert "20 jobs ran" in html
    assert html.count('<th scope="row">') == 24
    assert html.count('<rect class="job') == 20


def test_what_runs_and_waits_is_what_the_schedule_says() -> None:
    jobs = [job(number, 60 * number, processors=3, run_time=900, requested_time=900) for number in range(1, 40)]
    _, (record,) = replayed([plan_of(workload_of(*jobs))])
    found, times = one_day(record, choose(record)), record.jobs
    seconds = np.arange(DAY)[:, None]
    busy = (times.processors * ((times.start_time <= seconds) & (seconds < times.end_time))).sum(axis=1)
    waits = (times.submit_time <= seconds) & (seconds < times.start_time)
    for told, wanted in (
        (found.busy.sum(axis=0), busy),
        (found.waiting, waits.sum(axis=1)),
        (found.asked, 3 * waits.sum(axis=1)),
    ):
        np.testing.assert_allclose(told, wanted.reshape(-1, STEP).mean(axis=1))


def test_two_policies_stand_above_each_other_on_the_same_axes() -> None:
    _, records = replayed([plan_of(generated(200), policy) for policy in ("easy", "fcfs")])
    html = drawn(*records)
    assert re.findall("<h5>(.*?)</h5>", html) == ["easy", "fcfs"]
    axes = [re.findall(r"<text[^>]*>[^<]*</text>", svg) for svg in html.split("<h5>")[1:]]
    assert axes[0] == axes[1]
    assert "The day on which jobs waited most under easy" in html


def test_a_day_of_many_jobs_on_a_large_machine_stays_small() -> None:
    chance = np.random.default_rng(1)
    drawn_at_random = np.column_stack([np.sort(chance.integers(0, DAY, 4_000)), chance.integers(60, 9_000, (4_000, 2))])
    jobs = [
        job(number, submit_time, processors=1 + wide % 400, run_time=long, requested_time=long)
        for number, (submit_time, wide, long) in enumerate(drawn_at_random.tolist())
    ]
    _, (record,) = replayed([plan_of(workload_of(*jobs, processors=20_000))])
    html = drawn(record)
    assert '<rect class="job' not in html
    assert f"More than {MAX_BARS:,} rectangles would be needed" in html
    assert len(html) < 100_000
