"""Search for the template sets that predict the run times of a log best, for each policy and purpose."""

import os
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, get_args

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from shadowtime.replayer.arguments import Preparation, read_cluster, split_size
from shadowtime.replayer.comparison import RunPlan, carry_out
from shadowtime.replayer.logs import Workload
from shadowtime.replayer.options import Purpose, Requests
from shadowtime.replayer.simulation import Recorded, submission
from shadowtime.services.catalogue import configure
from shadowtime.services.runtime_distribution import (
    ELITE,
    ENDED,
    PREDICTED,
    Genes,
    TemplateErrors,
    TemplatesSettings,
    remembered,
    search,
)
from shadowtime.shared.cli import messages, say
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.formatting import percent
from shadowtime.shared.messages import Decided, Envelope, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.output import require_places, result_file

MIN_JOBS = 100
"""Minimum number of jobs. In a shorter log, too few jobs end before others are submitted."""


Happening = tuple[int, int, int]
"""`PREDICTED` or `ENDED`, the row of a job in the workload, and the seconds that the job has run so far."""


def events_of(workload: Workload) -> Iterator[Happening]:
    """Yield `PREDICTED` for each recorded submission and `ENDED` for each recorded end, in order of time."""
    numbers = {int(job_number): row for row, job_number in enumerate(workload.columns["job_number"])}
    for events in iter(Recorded(workload).next_instant, ()):
        for event in events:
            if isinstance(event, JobSubmitted):
                yield PREDICTED, numbers[event.job_number], 0
            elif isinstance(event, JobEnded):
                yield ENDED, numbers[event.job_number], event.run_time


# The predictions that a policy makes of the jobs in the system.

MAX_PREDICTIONS = 50_000
"""Number of predictions that thinning always leaves. It drops every second prediction if there are twice as many."""

PURPOSES: tuple[Purpose, ...] = get_args(Purpose)


class PredictionsMade:
    """An observer that lists the predictions made under a policy, and the ends that are learned from.

    To forecast waits, all running and waiting jobs are predicted at each submission. To decide, they are predicted at
    each pass, but under `lwf` only the waiting jobs.

    Parameters
    ----------
    workload
        The jobs of the replay.
    policy
        Name of the policy.
    purpose
        Use of the predictions: `waits` (forecast waits) or `schedule` (decide).

    References
    ----------
    docs/algorithms.md#template-search (Smith 1999, section 2.1.4).
    """

    def __init__(self, workload: Workload, policy: str, purpose: Purpose) -> None:
        self._rows = {int(job_number): row for row, job_number in enumerate(workload.columns["job_number"])}
        self._purpose, self._of_running = purpose, purpose == "waits" or policy != "lwf"
        self._waiting: dict[int, None] = {}
        self._started: dict[int, int] = {}
        self._seen, self._stride = 0, 1
        self.happenings: list[Happening] = []

    def __call__(self, envelope: Envelope) -> None:
        """Record an ended job, and the predictions that the policy needs at this event."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self._waiting[self._rows[event.job_number]] = None
            if self._purpose == "waits":
                self._predict(event.time)
        elif isinstance(event, Decided):
            if self._purpose == "schedule":
                self._predict(event.time)
        elif isinstance(event, JobStarted):
            row = self._rows[event.job_number]
            del self._waiting[row]
            self._started[row] = event.time
        elif isinstance(event, JobEnded):
            row = self._rows[event.job_number]
            del self._started[row]
            if event.requeued:
                self._waiting[row] = None
            else:
                self.happenings.append((ENDED, row, event.run_time))

    def _predict(self, now: int) -> None:
        """Add every `_stride`-th prediction of the jobs at time `now`. Once there are too many, drop half of them."""
        running = list(self._started.items()) if self._of_running else []
        jobs = [*((row, now - started) for row, started in running), *((row, 0) for row in self._waiting)]
        self.happenings += [(PREDICTED, *jobs[at]) for at in range(-self._seen % self._stride, len(jobs), self._stride)]
        self._seen += len(jobs)
        if len(self.happenings) > len(self._rows) + 2 * MAX_PREDICTIONS:
            predictions = iter(range(len(self.happenings)))
            self.happenings = [
                happening for happening in self.happenings if happening[0] == ENDED or next(predictions) % 2 == 0
            ]
            self._stride *= 2


def predictions_made(workload: Workload, policy: str, purpose: Purpose) -> list[Happening]:
    """Return the predictions that a policy needs in a replay, and the ends of jobs, in order of time.

    In this replay, the policy uses requested times as predictions.
    """
    made = PredictionsMade(workload, policy, purpose)
    carry_out(RunPlan(policy, workload.name, workload, configure(policy, "requested")), [made])
    return made.happenings


def errors_on(
    workload: Workload,
    pool: ThreadPoolExecutor,
    settings: TemplatesSettings,
    happenings: Sequence[Happening] | None = None,
) -> TemplateErrors:
    """Return the error function of template sets on a workload. It runs on the threads of a pool.

    `happenings` are predictions and ends in order of time. By default, each job is predicted once, at its recorded
    submission.

    Raise `TraceError` if the workload has fewer than `MIN_JOBS` jobs, or no prediction follows the first end.
    """
    if len(workload) < MIN_JOBS:
        raise TraceError(
            f"{workload.name}: {len(workload)} jobs are too few; a search needs at least {MIN_JOBS}: raise --jobs, or "
            "use a longer log"
        )
    events = list(events_of(workload)) if happenings is None else happenings
    run_times = {row: run_time for kind, row, run_time in events if kind == ENDED}
    jobs = [remembered(submission(job), run_times.get(row, job.run_time)) for row, job in enumerate(workload)]
    kinds = [kind for kind, *_ in events]
    if ENDED not in kinds or PREDICTED not in kinds[kinds.index(ENDED) :]:
        raise TraceError(
            f"{workload.name}: nothing to learn from, because no job ends before the last prediction; use a longer log"
        )
    return TemplateErrors(jobs, events, settings, pool.map)


@dataclass(frozen=True)
class SearchOptions:
    """Options of a search: jobs of each log, sets in a generation, generations, seed, threads, and requests.

    With 0 `workers`, a search has one thread for each processor.
    """

    jobs: int = 10_000
    population: int = 40
    generations: int = 30
    seed: int = 0
    workers: int = 0
    requests: Requests = "as-logged"

    def require_in_range(self) -> None:
        """Raise `SettingsError` if a number is out of its range."""
        for option, low in (("population", 2 * ELITE), ("generations", 1), ("seed", 0), ("workers", 0)):
            if (value := getattr(self, option)) < low:
                raise SettingsError(f"--{option} {value}: expected at least {low}")
        if self.population % 2:
            raise SettingsError(f"--population {self.population}: expected an even number")


class Search(NamedTuple):
    """One search on a log: for the predictions of a policy for a purpose; without a policy, for one of each job."""

    trace: str
    policy: str | None = None
    purpose: Purpose = "waits"

    @property
    def file(self) -> str:
        """Name of the result file if there are several searches."""
        name = Path(split_size(self.trace)[0]).name.removesuffix(".gz").removesuffix(".swf")
        return "-".join([name, *([self.policy, self.purpose] if self.policy else [])]) + ".templates"


def searches_of(traces: Sequence[str], policies: Sequence[str], purposes: Sequence[str]) -> list[Search]:
    """Return a search for each log, policy and purpose; without policies, one for each log. No purpose means all.

    `fcfs` decides without predictions, so it is searched only to forecast waits.

    Raise `SettingsError` if a policy is unknown or has keys, a purpose is unknown or has no policy, or no search is
    left.
    """
    for policy in policies:
        configure(policy)
        if not policy.replace("-", "").isalnum():
            raise SettingsError(f"--policy {policy}: expected a name without keys")
    if strange := set(purposes) - set(PURPOSES):
        raise SettingsError(f"--for {min(strange)}: expected {' or '.join(PURPOSES)}")
    if purposes and not policies:
        raise SettingsError("--for needs --policy: the policy whose predictions count")
    searches = [
        Search(trace, policy, purpose)
        for trace in traces
        for policy in policies
        for purpose in PURPOSES
        if purpose in (purposes or PURPOSES)
        if (policy, purpose) != ("fcfs", "schedule")
    ]
    if policies and not searches:
        raise SettingsError("--policy fcfs --for schedule: fcfs decides without predictions; leave one of them out")
    return searches or [Search(trace) for trace in traces]


def write_templates(searches: Sequence[Search], output: Path, options: SearchOptions) -> None:
    """Carry out searches, and write the best template set of each: to a file, or to files in a folder if several.

    Raises
    ------
    SettingsError
        If a number is out of its range, two searches would write the same file, a result would overwrite a log, or
        `output` is a file and there are several searches.
    TraceError
        If a log cannot be read, has too few jobs, or has no prediction after the first end.
    """
    options.require_in_range()
    read = [split_size(one.trace)[0] for one in searches]
    if len(searches) == 1:
        require_places([output], read)
        write_found(searches[0], output, options)
        return
    require_places([output / one.file for one in searches], read)
    if output.exists() and not output.is_dir():
        raise SettingsError(f"-o {output}: {len(searches)} searches need a folder, but this is a file")
    output.mkdir(parents=True, exist_ok=True)
    for one in searches:
        write_found(one, output / one.file, options)


def write_found(one: Search, output: Path, options: SearchOptions) -> None:
    """Carry out one search, and write the best template set to a file. Raise as `write_templates` does."""
    preparation = Preparation(jobs=options.jobs, requests=options.requests, size_options="LOG@PROCESSORS")
    cluster = read_cluster(one.trace, preparation, say, "closed" if one.policy else "recorded")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with (
        result_file(output) as file,
        ThreadPoolExecutor(options.workers or os.cpu_count()) as pool,
        Progress(*columns, console=messages, transient=True, disable=not sys.stderr.isatty()) as progress,
    ):
        made = None if one.policy is None else predictions_made(cluster.workload, one.policy, one.purpose)
        errors = errors_on(cluster.workload, pool, TemplatesSettings(), made)
        task = progress.add_task("error", total=options.generations)
        genes = Genes(errors.characteristics, running=errors.of_running)
        for best in search(genes, errors, options.population, options.generations, options.seed):
            progress.update(task, completed=best.number, description=f"error {percent(best.error)}")
        chosen = "" if one.policy is None else f"--policy {one.policy} --for {one.purpose} "
        requests = "" if options.requests == "as-logged" else f"--requests {options.requests} "
        lines = [
            f"# {cluster.name}, first {len(cluster.workload):,} jobs: "
            f"error {percent(best.error)} of the mean run time;",
            f"# shadowtime search-templates {chosen}{requests}--jobs {options.jobs} --population {options.population} "
            f"--generations {options.generations} --seed {options.seed}",
            *map(str, best.templates),
        ]
        file.write("".join(f"{line}\n" for line in lines).encode())

    name = cluster.name if one.policy is None else f"{cluster.name}, {one.policy}, {one.purpose}"
    say(f"{name}: error {percent(best.error)} of the mean run time, {len(best.templates)} templates")
