"""One day of a machine, processor by processor: the day on which jobs waited most under the first policy."""

from bisect import insort
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.dashboards.report.axes import Axis, linear, round_marks
from shadowtime.dashboards.report.charts import Chart, cell, figure, legend, table
from shadowtime.dashboards.report.markup import escape
from shadowtime.dashboards.report.statistics import DAY, clock_of
from shadowtime.replayer.run_record import Jobs, RunRecord
from shadowtime.shared.arrays import Integers
from shadowtime.shared.formatting import duration

MAX_BARS = 2_000
"""Bars of a chart; of a day with more, the jobs with most work on that day are drawn, the others counted only."""

WAITED = ((0, "at once"), (3_600, "waited up to 1 h"), (86_400, "up to 1 d"), (2**62, "longer"))
"""The longest wait of each shade of the chart."""


class Day(NamedTuple):
    """A day of the log: when it begins, what it is called, and what its hours are."""

    start: int
    name: str
    hours: str


def day_that_most_waited(jobs: Jobs, midnight: int) -> int:
    """Return when the day begins on which jobs waited most, summed over all that waited.

    Parameters
    ----------
    midnight
        Any second at which a day begins.
    """
    from_, to = jobs.submit_time - midnight, jobs.start_time - midnight
    days = np.unique(np.concatenate((from_, to)) // DAY)
    days = np.union1d(days, days + 1)  # until the next of them, each day is like the one before
    waited = [_sum_up_to(to, edges) - _sum_up_to(from_, edges) for edges in (days * DAY, (days + 1) * DAY)]
    return int(days[(waited[1] - waited[0]).argmax()]) * DAY + midnight


def _sum_up_to(times: Integers, edges: Integers) -> Integers:
    """Return for each edge the sum of all times, those beyond it counted as the edge itself."""
    times = np.sort(times)
    before = np.searchsorted(times, edges)
    sums: Integers = np.concatenate(([0], np.cumsum(times)))[before] + (len(times) - before) * edges
    return sums


class Bar(NamedTuple):
    """Processors from `low` up to `high` that a job has on the chart."""

    job: int
    low: int
    high: int


def processor_bars(starts: Integers, ends: Integers, processors: Integers) -> list[Bar]:
    """Return where jobs are drawn, each on the lowest processors that are free at its start, in one bar or several.

    The log does not tell which processors a job had; that there are enough of them is all that is meant.

    >>> processor_bars(np.array([0, 0, 5]), np.array([5, 9, 9]), np.array([1, 1, 2]))
    [Bar(job=0, low=0, high=1), Bar(job=1, low=1, high=2), Bar(job=2, low=0, high=1), Bar(job=2, low=2, high=3)]
    """
    bars: list[Bar] = []
    held: list[tuple[int, list[Bar]]] = []  # by end
    free: list[tuple[int, int]] = [(0, 2**62)]
    for job in np.lexsort((np.arange(len(starts)), starts)).tolist():
        while held and held[0][0] <= starts[job]:
            for bar in held.pop(0)[1]:
                insort(free, (bar.low, bar.high))
            free = _joined(free)
        wanted, got = int(processors[job]), []
        while wanted:
            low, high = free.pop(0)
            taken = min(wanted, high - low)
            got.append(Bar(job, low, low + taken))
            wanted -= taken
            if low + taken < high:
                free.insert(0, (low + taken, high))
        bars += got
        insort(held, (int(ends[job]), got))
    return bars


def _joined(free: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    joined: list[tuple[int, int]] = []
    for low, high in free:
        if joined and joined[-1][1] == low:
            joined[-1] = joined[-1][0], high
        else:
            joined.append((low, high))
    return joined


def choose(run: RunRecord) -> Day:
    """Return the day on which jobs waited most."""
    unix = run.plan.workload.unix_start_time
    start = day_that_most_waited(run.jobs, 0 if unix is None else -(unix % DAY))
    return Day(start, clock_of(unix)(start), "hour of the log's day" if unix is None else "hour (UTC)")


def gantt(run: RunRecord, day: Day) -> str:
    """Return when each job of that day ran, and on how many processors."""
    jobs, machine = run.jobs, run.plan.workload.processors
    begin, end = np.maximum(jobs.start_time, day.start), np.minimum(jobs.end_time, day.start + DAY)
    rows = np.flatnonzero(begin < end)
    bars = processor_bars(begin[rows], end[rows], jobs.processors[rows])
    most_work_first = np.argsort(-((end - begin) * jobs.processors)[rows], kind="stable")
    bars_of = np.bincount(np.array([bar.job for bar in bars], dtype=np.int64), minlength=len(rows))
    drawn = np.sort(most_work_first[np.cumsum(bars_of[most_work_first]) <= MAX_BARS])
    shown = set(drawn.tolist())
    top = max([machine, *(bar.high for bar in bars)])
    label = f"When the jobs of {day.name} ran under {run.plan.label}, and how wide; they follow as a table"
    chart = Chart(label, width=960, height=380)
    x, y = linear(0, DAY, chart.left, chart.right), linear(0, top, chart.bottom, chart.top)
    hours = [(hour * 3600, f"{hour}:00") for hour in range(0, 25, 3)]
    chart.axes(
        Axis(x, hours, f"{day.name}, {day.hours}"),
        Axis(y, round_marks(0, top), "processors"),
    )
    waits = jobs.wait[rows]
    for bar in bars:
        if bar.job in shown:
            row = rows[bar.job]
            from_, to = (x(float(edge[row] - day.start)) for edge in (begin, end))
            waited = duration(float(waits[bar.job]))
            said = f"job {jobs.job_number[row]}: {jobs.processors[row]} processors, waited {waited}"
            chart.bar(
                from_, y(bar.high), to - from_, y(bar.low) - y(bar.high), f"job {_shade(int(waits[bar.job]))}", said
            )
    left = len(rows) - len(shown)
    caption = f"{len(rows):,} jobs ran." + (f" The {left:,} with least work are not drawn." if left else "")
    if top > machine:
        caption += f" As logged, jobs held more processors than the {machine:,} of the machine."
    shades = legend([(f"fill {_shade(longest)}", name) for longest, name in WAITED])
    picture = f'{shades}<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}">{chart.svg()}</div>'
    return figure(f"{day.name} under {run.plan.label}", caption, picture, _jobs(run, rows[drawn], day), wide=True)


def _shade(wait: int) -> str:
    return next(f"w{place}" for place, (longest, _) in enumerate(WAITED) if wait <= longest)


def _jobs(run: RunRecord, rows: Integers, day: Day) -> str:
    jobs = run.jobs
    columns = (jobs.job_number, jobs.processors, jobs.wait, jobs.start_time - day.start, jobs.end_time - day.start)
    body: list[Sequence[str]] = [
        [str(number), str(processors), cell(wait, duration(wait)), _hour(start), _hour(end)]
        for number, processors, wait, start, end in zip(*(each[rows].tolist() for each in columns), strict=True)
    ]
    return table(["job", "processors", "waited", "started", "ended"], body, f"Jobs of {day.name}")


def _hour(second: int) -> str:
    """Return a time of day; of a day before or after, by how many days.

    >>> _hour(3660), _hour(-60), _hour(90_000)
    ('01:01', '23:59 -1 d', '01:00 +1 d')
    """
    days, rest = divmod(second, DAY)
    return f"{rest // 3600:02}:{rest % 3600 // 60:02}" + (f" {'+' if days > 0 else '-'}{abs(days)} d" if days else "")
