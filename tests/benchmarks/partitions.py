"""Adjusted requests on a machine of partitions: what Tang 2013 gains on Intrepid by where its scheduler puts jobs.

`python -m tests.benchmarks.partitions ANL-Intrepid-2009-1.swf.gz` replays the log by the rules of Cobalt's simulator,
with which the paper was made. A job takes a whole partition of 1 to 64 midplanes at a fixed place. A job that does not
fit drains the partition that is expected to be free first. A candidate must end before any busy partition around it.
Jobs on the whole machine are left out, as there. Adjusted requests are those of the recorded log.
"""

import json
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
import typer
from numpy.typing import NDArray

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.walltime_adjustment.handler import ADJUSTERS
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.kernels import Flags, Floats, Integers, kernel
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.spec import parse

MIDPLANES, CORES = 80, 2048
SIZES = (1, 2, 4, 8, 16, 32, 48, 64)
LEVELS = (95, 85, 70)
USES = ("regular", "selective")
CHANGES = ("wait_change", "slowdown_change")
OVERDUE = 300.0
"""Seconds for which a partition is expected to stay busy at least."""


FlagTable = Annotated[NDArray[np.bool_], "boolean[:, ::1]"]


class Jobs(NamedTuple):
    """Jobs in order of submission: times in seconds, sizes in midplanes. `planned` takes the place of the requests."""

    submits: Floats
    run_times: Floats
    requests: Floats
    sizes: Integers
    planned: Floats


class Partitions(NamedTuple):
    """Size and midplanes of each partition, and whether it is within another, or overlaps with it."""

    sizes: Integers
    planes: FlagTable
    within: FlagTable
    overlaps: FlagTable


def adjusted_times(workload: Workload, percentile: int) -> Floats:
    """Return the adjusted request of each job, by the jobs that had ended before its submission in the recorded log."""
    scheme = ADJUSTERS.build(parse(f"percentile:key=user+project+request,percentile={percentile}"))
    source, adjusted, jobs = Recorded(workload), dict[int, int](), dict[int, JobSubmitted]()
    for event in (event for instant in iter(source.next_instant, ()) for event in instant):
        if isinstance(event, JobSubmitted) and (answer := scheme.predict_one(event)) is not None:
            adjusted[event.job_number], jobs[event.job_number] = answer.adjusted_time, event
        elif isinstance(event, JobEnded):
            scheme.learn_one(jobs.pop(event.job_number), event)
        scheme.observe(event)
    return np.array([adjusted[number] for number in workload.columns["job_number"].tolist()], dtype=np.float64)


def partitions() -> Partitions:
    """Return the partitions of the machine: a partition begins at a multiple of its size, or of 16."""
    places = [(at, size) for size in SIZES for at in range(0, MIDPLANES - size + 1, min(size, 16))]
    at, size = np.array(places).T
    last = at + size
    planes = (np.arange(MIDPLANES) >= at[:, None]) & (np.arange(MIDPLANES) < last[:, None])
    within = (at[:, None] >= at) & (last[:, None] <= last)
    return Partitions(size.copy(), planes, within, (at[:, None] < last) & (at < last[:, None]))


@kernel
def limits(now: float, idle: Flags, ends: Floats, within: FlagTable) -> Floats:
    """Return until when each partition can be filled: an idle one until the first busy one around it is free."""
    free_at = np.where(idle, now, np.maximum(ends, now + OVERDUE))
    until = free_at.copy()
    for part in np.flatnonzero(~idle):
        for child in np.flatnonzero(within[:, part]):
            if child != part and (until[child] == now or until[child] > free_at[part]):
                until[child] = free_at[part]
    return until


@kernel
def place(usable: Flags, idle: Flags, within: FlagTable) -> int:
    """Return the usable partition that blocks the fewest idle ones; -1 if there is none."""
    best, least = -1, 1 << 30
    for part in np.flatnonzero(usable):
        blocked = int(np.count_nonzero(within[part] & idle))
        if blocked < least:
            best, least = int(part), blocked
    return best


@kernel
def chosen(times: Floats, sizes: Integers, idle: Flags, until: Floats, parts: Partitions) -> tuple[int, int]:
    """Return the next job to start, of those in order of priority, and its partition; -1 if there is none.

    `times` are planned run times, and `until` is the time for which a partition can be filled, in seconds.
    """
    drained, drains = np.zeros(len(idle), np.bool_), np.zeros(len(idle), np.bool_)
    for job in range(len(times)):
        fits = parts.sizes == sizes[job]
        part = place(fits & idle & ~drained, idle, parts.within)
        if part >= 0:
            return job, part
        target = -1
        for other in np.flatnonzero(fits & ~drains):
            if target < 0 or until[other] < until[target]:
                target = int(other)
        if target >= 0:
            drained |= parts.overlaps[target]
            drains |= parts.within[:, target]

    for job in range(len(times)):
        part = place((parts.sizes == sizes[job]) & idle & (times[job] <= until), idle, parts.within)
        if part >= 0:
            return job, part
    return -1, -1


@kernel
def simulated(jobs: Jobs, wfp: bool, running_too: bool, parts: Partitions) -> Floats:
    """Return the start of each job in seconds. WFP orders the queue, or the submission.

    `running_too` says whether running jobs are planned by `planned`, too: the regular scheme.
    """
    starts, where = np.full(len(jobs.submits), -1.0), np.full(len(jobs.submits), -1)
    queue, running = np.zeros(0, np.int64), np.zeros(0, np.int64)
    busy, arrived = np.zeros(parts.planes.shape[1], np.bool_), 0
    while arrived < len(jobs.submits) or len(running):
        # 1. The next event.
        now = jobs.submits[arrived] if arrived < len(jobs.submits) else np.inf
        if len(running):
            now = min(now, (starts[running] + jobs.run_times[running]).min())
        ended = starts[running] + jobs.run_times[running] <= now
        for job in running[ended]:
            busy &= ~parts.planes[where[job]]
        running = running[~ended]
        while arrived < len(jobs.submits) and jobs.submits[arrived] <= now:
            queue = np.append(queue, arrived)
            arrived += 1

        # 2. Starts, one after another.
        while len(queue):
            keys = jobs.submits[queue]
            if wfp:
                keys = -(((now - jobs.submits[queue]) / jobs.planned[queue]) ** 3.0 * jobs.sizes[queue])
            queue_order = queue[np.argsort(keys, kind="mergesort")]
            idle = np.array([not (parts.planes[part] & busy).any() for part in range(len(parts.planes))])
            ends = np.zeros(len(parts.planes))
            for job in running:
                end = starts[job] + (jobs.planned[job] if running_too else jobs.requests[job])
                ends = np.where(parts.within[where[job]], np.maximum(ends, end), ends)
            until = limits(now, idle, ends, parts.within)
            job, part = chosen(jobs.planned[queue_order], jobs.sizes[queue_order], idle, until - now, parts)
            if job < 0:
                break
            first = queue_order[job]
            starts[first], where[first] = now, part
            busy |= parts.planes[part]
            running, queue = np.append(running, first), queue[queue != first]
    return starts


def main(
    log: Annotated[Path, typer.Argument(help="The public log of Intrepid.")],
    jobs: Annotated[int | None, typer.Option(help="Only the first jobs.")] = None,
) -> None:
    """Print one JSON line for each policy, percentile and use, with the changes by the adjustment in %."""
    workload = prepare(read_trace(log), sizes="allocated", limit=jobs)
    kept = workload.columns["processors"] < MIDPLANES * CORES
    submits, run_times, requests = (
        workload.columns[name][kept].astype(np.float64) for name in ("submit_time", "run_time", "requested_time")
    )
    sizes = np.array(SIZES)[np.searchsorted(np.array(SIZES) * CORES, workload.columns["processors"][kept])]
    whole = Jobs(submits, np.minimum(run_times, 1.1 * requests), requests, sizes, requests)
    planned = {level: adjusted_times(workload, level)[kept] for level in LEVELS}
    plans = [("none", requests, False)]
    plans += [(f"p{level}, {use}", planned[level], use == USES[0]) for level in LEVELS for use in USES]
    parts = partitions()
    for policy in ("wfp", "easy"):
        base = None
        for label, times, running_too in plans:
            waits = simulated(whole._replace(planned=times), policy == "wfp", running_too, parts) - submits
            means = waits.mean() / 60, ((waits + whole.run_times) / whole.run_times).mean()
            base = base or means
            figures = {"mean_wait_min": means[0], "mean_slowdown": means[1]}
            changes = {name: 100 * now / then - 100 for name, now, then in zip(CHANGES, means, base, strict=True)}
            rounded = {name: round(value, 2) for name, value in (figures | changes).items()}
            print(json.dumps({"policy": policy, "adjustment": label} | rounded), flush=True)


if __name__ == "__main__":
    run_app(application(main))
