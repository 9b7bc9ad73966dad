"""A chart of one day for each policy, on the same axes: running jobs above, the queue below."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.replayer.report.axes import Axis, linear, round_marks
from shadowtime.replayer.report.charts import Chart, legend
from shadowtime.replayer.report.day import Day, JobBar, means, processor_bars
from shadowtime.replayer.report.markup import cell, escape, figure, table
from shadowtime.shared.formatting import DAY, counted, duration, percent
from shadowtime.shared.kernels import Floats, Integers

MAX_BARS = 1_000
"""Maximum number of rectangles in a chart. If a day has more, all policies are drawn as areas of busy processors."""

STEP = 300
"""Seconds over which the queue and the areas of busy processors are averaged."""

WAITED = (
    (0, "started at once"),
    (3_600, "waited up to 1 h"),
    (DAY, "up to 1 d"),
    (7 * DAY, "up to 7 d"),
    (2**62, "longer"),
)
"""Maximum wait of each shade of the chart, in seconds, with its legend."""

EDGES = np.arange(0, DAY + STEP, STEP)


class OneDay(NamedTuple):
    """A day under one policy. `running` has columns of the jobs that ran. Times are in seconds since the day began."""

    policy: str
    running: Mapping[str, Integers]
    busy: Floats
    """By shade and step, (5, 288): processors in use."""
    asked: Floats
    """By step: processors that waiting jobs request."""
    waiting: Floats
    """By step: number of waiting jobs."""


def one_day(run: RunRecord, day: Day) -> OneDay:
    """Return the running and the waiting jobs on a day of a run."""
    jobs = run.jobs
    submit, start, end = (times - day.start for times in (jobs.submit_time, jobs.start_time, jobs.end_time))
    here = (end > 0) & (start < DAY)
    shades = np.searchsorted([longest for longest, _ in WAITED], jobs.wait)
    running = {
        "job": jobs.job_number[here], "processors": jobs.processors[here],
        "wait": jobs.wait[here], "shade": shades[here],
        "from": np.maximum(start, 0)[here], "to": np.minimum(end, DAY)[here],
    }  # fmt: skip
    busy = []
    for shade in range(len(WAITED)):
        of_shade = running["shade"] == shade
        begun, done, size = (running[key][of_shade] for key in ("from", "to", "processors"))
        busy.append(means(begun, done, size, EDGES))

    queued = (start > 0) & (submit < DAY) & (start > submit)
    begun, done, size = np.maximum(submit, 0)[queued], np.minimum(start, DAY)[queued], jobs.requested_processors[queued]
    asked, waiting = (means(begun, done, weights, EDGES) for weights in (size, np.ones_like(size)))
    return OneDay(run.plan.label, running, np.array(busy), asked, waiting)


def machine_and_queue(runs: Sequence[RunRecord], day: Day) -> str:
    """Return the figure of a day: a chart of running and waiting jobs for each run, one above the other."""
    machine = runs[0].plan.workload.processors
    days = [one_day(run, day) for run in runs]
    bars = [processor_bars(*(timeline.running[key] for key in ("from", "to", "processors"))) for timeline in days]
    one_by_one = max(map(len, bars)) <= MAX_BARS
    top = max([machine, *(bar.high for row in bars for bar in row)])
    longest_queue = max(1.0, *(float(timeline.asked.max()) for timeline in days))
    label = f"Machine and queue on {day.name}; the numbers follow as a table"
    drawn = "".join(
        f"<h5>{escape(timeline.policy)}</h5>"
        + _drawn(timeline, job_bars if one_by_one else None, day, (machine, top, longest_queue))
        for timeline, job_bars in zip(days, bars, strict=True)
    )
    rule = (
        f"The day on which jobs waited most{f' under {days[0].policy}' if len(days) > 1 else ''}, all waits together."
    )
    caption = " ".join([rule, *(_day_caption(timeline, machine) for timeline in days), _how(one_by_one)])
    if top > machine:
        caption += f" As logged, jobs held more processors than the {machine:,} of the machine."
    shades = legend([*((f"fill w{shade}", name) for shade, (_, name) in enumerate(WAITED)), ("fill queued", "waiting")])
    picture = (
        f'{shades}<div class="wide" tabindex="0" role="group" aria-label="{escape(label)}"><div>{drawn}</div></div>'
    )
    names = [timeline.policy for timeline in days]
    title = f"{day.name}: {' above, '.join(names)} below" if len(days) > 1 else f"{day.name} under {names[0]}"
    return figure(title, caption, picture, _by_hour(days, day), wide=True)


def _drawn(one_day: OneDay, bars: Sequence[JobBar] | None, day: Day, tops: tuple[int, int, float]) -> str:
    machine, top, longest_queue = tops
    chart = Chart(f"Machine and queue on {day.name} under {one_day.policy}", width=960, height=390)
    foot = chart.bottom
    x = linear(0, DAY, chart.left, chart.right)
    hours = [(hour * 3600, f"{hour}:00") for hour in range(0, 25, 3)]
    chart.bottom = 230
    y = linear(0, top, chart.bottom, chart.top)
    chart.axes(Axis(x, [(at, "") for at, _ in hours], ""), Axis(y, _marks(machine, top), "processors in use"))
    edges = list(map(x, EDGES.tolist()))
    if bars is None:
        heights = np.cumsum(np.vstack([np.zeros(len(EDGES) - 1), one_day.busy]), axis=0).tolist()
        for shade in range(len(WAITED)):
            low, high = (list(map(y, heights[shade + above])) for above in (0, 1))
            chart.area(edges, low, high, f"fill w{shade}")

    running = {name: values.tolist() for name, values in one_day.running.items()}
    for bar in bars or ():
        job, size, wait, shade, *when = (values[bar.job] for values in running.values())
        left, right = map(x, when)
        label = f"job {job}: {size} processors, waited {duration(wait)}"
        chart.bar(left, y(bar.high), right - left, y(bar.low) - y(bar.high), f"job w{shade}", label)

    chart.line([(chart.left, y(machine)), (chart.right, y(machine))], "front")
    chart.top, chart.bottom = 268, foot
    y = linear(0, longest_queue, chart.bottom, chart.top)
    marks = round_marks(0, longest_queue, 3)
    chart.axes(Axis(x, hours, f"{day.name}, {day.hours}"), Axis(y, marks, "processors that waiting jobs ask for"))
    chart.area(edges, [y(0)] * len(one_day.asked), list(map(y, one_day.asked.tolist())), "fill queued")
    return chart.svg()


def _marks(machine: int, top: int) -> list[tuple[float, str]]:
    """Return tick marks at round numbers and at the size of the machine. Labels do not overlap.

    >>> [name for _, name in _marks(128, 128)]
    ['0', '50', '100', '128']
    """
    far = [(mark, name) for mark, name in round_marks(0, top, 4) if abs(mark - machine) > top / 12]
    return [*far, (machine, f"{machine:,}")]


def _day_caption(day: OneDay, machine: int) -> str:
    jobs, busy, waiting = len(day.running["job"]), day.busy.sum() / len(day.asked) / machine, day.waiting.mean()
    ran = f"Under {day.policy} {counted(jobs, 'job')} ran, {percent(busy, '.0f')} of the machine was busy"
    return f"{ran}, and {waiting:,.1f} jobs waited on average."


def _how(one_by_one: bool) -> str:
    if one_by_one:
        return (
            "Each rectangle is a job, or a part of it: its width is the run time, its height the number of processors, "
            "its shade the wait. The log does not state which processors a job had. The queue is drawn as means of "
            "five minutes."
        )
    return (
        f"More than {MAX_BARS:,} rectangles would be needed, so single jobs are not drawn. The processors in use and "
        "the queue are means of five minutes. The shade of processors is the wait of their jobs."
    )


def _by_hour(days: Sequence[OneDay], day: Day) -> str:
    per_hour = 3600 // STEP
    figures = [(timeline.busy.sum(axis=0), timeline.waiting, timeline.asked) for timeline in days]
    hours = [[values.reshape(-1, per_hour).mean(axis=1).tolist() for values in figure] for figure in figures]
    body = [
        [f"{hour:02}:00", *(cell(values[hour], f"{values[hour]:,.1f}") for group in hours for values in group)]
        for hour in range(24)
    ]
    heads = ["processors in use", "jobs waiting", "processors that they ask for"]
    several = len(days) > 1
    head = [day.hours, *(f"{timeline.policy}: {name}" if several else name for timeline in days for name in heads)]
    return table(head, body, f"Hours of {day.name}", "Means of each hour.")
