"""Search for the template set that predicts the run times of a log best."""

import os
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shadowtime.replayer.arguments import Preparation, read_cluster
from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation import Recorded, submission
from shadowtime.services.runtime_distribution import (
    ELITE,
    ENDED,
    SUBMITTED,
    Genes,
    TemplateErrors,
    TemplatesSettings,
    remembered,
    search,
)
from shadowtime.shared.cli import messages, say
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.formatting import percent
from shadowtime.shared.messages import JobEnded, JobSubmitted
from shadowtime.shared.output import result_file

MIN_JOBS = 100
"""Minimum number of jobs. In a shorter log, too few jobs end before others are submitted."""


def events_of(workload: Workload) -> Iterator[tuple[int, int]]:
    """Yield recorded submissions and ends, each with the row of its job in the workload."""
    numbers = {int(job_number): row for row, job_number in enumerate(workload.columns["job_number"])}
    for events in iter(Recorded(workload).next_instant, ()):
        for event in events:
            if isinstance(event, JobSubmitted):
                yield SUBMITTED, numbers[event.job_number]
            elif isinstance(event, JobEnded):
                yield ENDED, numbers[event.job_number]


def errors_on(workload: Workload, pool: ThreadPoolExecutor, settings: TemplatesSettings) -> TemplateErrors:
    """Return the error function of template sets on a workload. It runs on the threads of a pool.

    Raises
    ------
    TraceError
        If the workload is too short, has no submission after the end of another job, or has no recorded waits.
    """
    if len(workload) < MIN_JOBS:
        raise TraceError(f"{workload.name}: {len(workload)} jobs are too few; a search needs at least {MIN_JOBS}")
    jobs, events = [remembered(submission(job), job.run_time) for job in workload], list(events_of(workload))
    if all(kind == SUBMITTED for kind, _ in events[: len(jobs)]):
        raise TraceError(f"{workload.name}: nothing to learn from: no job ends before the last is submitted")
    return TemplateErrors(jobs, events, settings, pool.map)


def write_templates(
    trace: str, output: Path, jobs: int, population: int, generations: int, seed: int, workers: int
) -> None:
    """Search a log, and write the best template set to a file.

    Raises
    ------
    SettingsError
        If a number is out of its range.
    TraceError
        If the log has too few jobs, or none to learn from.
    """
    for option, value, low in (
        ("population", population, 2 * ELITE),
        ("generations", generations, 1),
        ("seed", seed, 0),
        ("workers", workers, 0),
    ):
        if value < low:
            raise SettingsError(f"--{option} {value}: expected at least {low}")

    if population % 2:
        raise SettingsError(f"--population {population}: expected an even number")
    cluster = read_cluster(trace, Preparation(jobs=jobs), say, "recorded")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        result_file(output) as file,
        ThreadPoolExecutor(workers or os.cpu_count()) as pool,
        Progress(*columns, console=messages, transient=True, disable=not sys.stderr.isatty()) as progress,
    ):
        errors = errors_on(cluster.workload, pool, TemplatesSettings())
        task = progress.add_task("error", total=generations)
        for best in search(Genes(errors.characteristics), errors, population, generations, seed):
            progress.update(task, completed=best.number, description=f"error {percent(best.error)}")
        lines = [
            f"# {cluster.name}, first {len(cluster.workload):,} jobs: "
            f"error {percent(best.error)} of the mean run time;",
            f"# shadowtime search-templates --jobs {jobs} --population {population} "
            f"--generations {generations} --seed {seed}",
            *map(str, best.templates),
        ]
        file.write("".join(f"{line}\n" for line in lines).encode())

    say(f"{cluster.name}: error {percent(best.error)} of the mean run time, {len(best.templates)} templates")
