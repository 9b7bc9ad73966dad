"""Functions of the Python interface, `import shadowtime` (docs/api.md)."""

from collections.abc import Mapping, Sequence
from logging import getLogger
from os import PathLike, fspath
from pathlib import Path
from typing import Any, TypedDict, Unpack

import numpy as np
from pydantic import ValidationError

from shadowtime.replayer.api.own import OwnClasses
from shadowtime.replayer.api.result import Result
from shadowtime.replayer.arguments import (
    configurations,
    parse_speedup,
    parse_wait_bound,
    report_left_out,
    require_one_pool,
    require_used,
    size_twice,
    split_size,
)
from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import BUNDLED, Workload, prepare, read_trace, size_note, trace_of_frame
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.replayer.simulation import SOURCES, JobTraits
from shadowtime.services.catalogue import REGISTRIES, canonical, configure
from shadowtime.services.wait_bound import upper_rank
from shadowtime.shared.accounting import Reading, preset_columns
from shadowtime.shared.chance import require_seed
from shadowtime.shared.errors import SettingsError, first_of
from shadowtime.shared.messages import CapacityChanged, run_name
from shadowtime.shared.quoting import among
from shadowtime.shared.spec import parse

Log = str | PathLike[str] | Workload

log = getLogger("shadowtime.log")


class ReadingArguments(TypedDict, total=False):
    """Arguments of `read_log` for accounting files and tables; each is an option of the command line, too.

    See docs/accounting.md.
    """

    columns: Mapping[str, str]
    """Column of a table for each of our field names. An empty column leaves the field out. Overrides `preset`."""
    preset: str
    """Name of a published data set, whose columns are known (docs/datasets.md)."""
    time_zone: str
    """Time zone of dates that state none, such as `Europe/Berlin`; UTC by default."""
    date_format: str
    """Format of dates, in the codes of `strptime`."""
    fields: Sequence[str]
    """Names of the fields of a file without a header, in order."""
    delimiter: str
    """Text between two fields; detected by default."""
    cluster: str
    """The cluster to read, if a file has several."""
    lenient: bool
    """Accept a file even if more than a tenth of its rows cannot be read."""
    pools: str | PathLike[str]
    """File of the machine's pools."""
    names: str | PathLike[str]
    """File in which names and their numbers are kept."""
    names_key: str | PathLike[str]
    """File with a key. With it, `names` has keyed hashes instead of names."""


def read_log(
    path: Any = BUNDLED,
    processors: int | None = None,
    *,
    jobs: int | None = None,
    requests: Requests = "as-logged",
    sizes: Sizes = "requested",
    oversized: Oversized = "drop",
    load: float = 1.0,
    recorded: bool = False,
    **reading: Unpack[ReadingArguments],
) -> Workload:
    """Return the jobs of a log that a replay uses.

    Remarks on the log, and the number of jobs that are left out, go to the logger `shadowtime.log` as warnings.

    Parameters
    ----------
    path
        A file, or FILE@PROCESSORS: in the Standard Workload Format, plain or compressed, output of sacct, an accounting
        file of PBS, or a table of jobs; the bundled trace by default. Or a data frame of pandas, polars or pyarrow with
        the columns of a table of jobs (docs/accounting.md).
    processors
        Size of the machine; by default from the log.
    jobs
        Keep only this number of jobs, the earliest submitted; None keeps all.
    requests
        Requested time of each job. `as-logged`: unchanged. `actual`: its run time. `at-least-run`: its run time if it
        ran past its request. `doubled`: twice its request. `queue-maximum`: the longest run time of its queue over the
        whole log, which looks ahead.
    sizes
        Processors of each job: those that it `requested`, or those that it was `allocated` (SWF field 5).
    oversized
        Whether jobs larger than the machine are left out (`drop`) or cut to its size (`align`).
    load
        Divide the gaps between submissions by this factor, for a closed replay.
    recorded
        Whether jobs start as in the log in the replay. Then jobs of accounting files that never started are kept.
    reading
        Information that an accounting file or a table lacks: the fields of `ReadingArguments` by their names.

    Raises
    ------
    TraceError
        If the file is not a log, the size of the machine is unknown, or no job is left.
    SettingsError
        If an argument is out of its range.
    TypeError
        If an argument is not a field of `ReadingArguments`.

    Examples
    --------
    >>> log = read_log(jobs=100)
    >>> log.name, len(log), log.processors
    ('bundled', 100, 128)
    """
    for name, number in (("processors", processors), ("jobs", jobs)):
        if number is not None and not isinstance(number, int | np.integer):
            raise SettingsError(f"{name}: expected a whole number, found {number!r}")
    if not isinstance(load, int | float | np.number):
        raise SettingsError(f"load: expected a number, found {load!r}")
    stated = stated_reading(reading)
    if isinstance(path, str | PathLike):
        name, size = split_size(fspath(path))
        if size is not None and processors is not None:
            raise SettingsError(size_twice(f"{name}@{size}", "processors="))
        processors = processors if size is None else size
        trace = read_trace(Path(name), stated)
    else:
        trace = trace_of_frame(path, stated)
    options: dict[str, Any] = {"oversized": oversized, "requests": requests, "sizes": sizes, "load": load}
    workload = prepare(trace, processors, **options, limit=jobs, recorded=recorded)
    report_left_out(workload, (*trace.notes, size_note(trace, processors, "processors=")), log.warning)
    return workload


def workload_of(log: Log, mode: str) -> Workload:
    """Return the jobs of a log for a replay in a mode: those of a workload unchanged, or those of the log at a path.

    Raise `SettingsError` if the mode is unknown, `TraceError` if the log cannot be read.
    """
    if mode not in SOURCES:
        raise SettingsError(f"mode {mode!r} is not one of {', '.join(SOURCES)}")
    return log if isinstance(log, Workload) else read_log(log, recorded=not SOURCES[mode].closed_loop)


def stated_reading(arguments: ReadingArguments) -> Reading:
    """Return the options for reading accounting files and tables.

    Raises
    ------
    TypeError
        If an argument is not a field of `ReadingArguments`.
    SettingsError
        If the value of an option is invalid.

    Examples
    --------
    >>> stated_reading({"columns": {"submit": "t"}, "fields": ["a", "b"]}).fields
    ('a', 'b')
    """
    if unknown := arguments.keys() - ReadingArguments.__annotations__.keys():
        raise TypeError(f"read_log() got an unexpected keyword argument {min(unknown)!r}")
    stated: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
    if stated.get("delimiter") == "":
        raise SettingsError("delimiter: expected at least one character, found ''; leave it out to detect it")
    if preset := stated.pop("preset", None):
        stated["columns"] = preset_columns(preset) | dict(stated.get("columns", {}))
    if not isinstance(stated.get("columns", {}), Mapping):
        raise SettingsError(f"columns: expected a mapping of our names to columns, found {stated['columns']!r}")
    if isinstance(stated.get("fields"), str):
        raise SettingsError(f"fields: expected a list of names, found the text {stated['fields']!r}")
    stated["fields"] = tuple(stated.get("fields", ()))
    return Reading(**stated | {name: Path(stated[name]) for name in ("pools", "names", "names_key") if name in stated})


def replay(
    log: Log = BUNDLED,
    policy: Any = "easy",
    *,
    runtime: Any = None,
    adjustment: Any = None,
    wait_bound: Any = None,
    mode: str = "closed",
    seed: int = 0,
    capacity: Mapping[int, int] | None = None,
    restartable: bool = True,
    moldable: bool = True,
    speedup: str = "constant",
) -> Result:
    """Replay a log under a policy through the whole pipeline, in this process. Return the result.

    Parameters
    ----------
    log
        A workload from `read_log`, or the path of a log.
    policy, runtime, adjustment, wait_bound
        SPECs, as on the command line (docs/reference/specs.md), or classes or objects of your own; None for the
        default. A policy may be a function, too: it gets `(now, queue, running, free)` and returns the rows of the
        queue to start (docs/plugins.md).
    mode
        `closed`: jobs start as decided. `recorded`: jobs start as in the log, and decisions are only advice.
    seed
        Seed of all random numbers.
    capacity
        Changes of the machine's size: a mapping from times in seconds of the log to the number of processors from then.
        None for a machine of several pools.
    restartable, moldable
        Whether jobs may be killed and restarted, and whether they may run on other numbers of processors.
    speedup
        How run times then depend on the number of processors: the SPEC of `--speedup`. `constant` means that processors
        times run time does not change.

    Raises
    ------
    SettingsError
        If an argument is out of its range, a SPEC is invalid, or the policy's SPEC has its own predictor or adjustment
        and so would not use `runtime` or `adjustment`.
    TraceError
        If the log cannot be read.
    ReplayError
        If waiting jobs can never start.

    Examples
    --------
    >>> result = replay(read_log(jobs=300), "easy")
    >>> result.scores.policy.jobs
    300
    >>> def in_order(now, queue, running, free):
    ...     return [row for row, taken in enumerate(queue.processors.cumsum()) if taken <= free]
    >>> replay(read_log(jobs=300), in_order).scores.policy == replay(read_log(jobs=300), "fcfs").scores.policy
    True
    """
    require_seed(seed)
    if not isinstance(capacity or {}, Mapping):
        raise SettingsError(f"capacity: expected a mapping of times to numbers of processors, found {capacity!r}")
    for name, trait in (("restartable", restartable), ("moldable", moldable)):
        if not isinstance(trait, bool):
            raise SettingsError(f"{name}: expected True or False, found {trait!r}")
    own = OwnClasses()
    others = {"runtime": runtime, "adjustment": adjustment, "wait-bound": wait_bound}
    specs = {kind: [own.spec_of(kind, of_kind)] for kind, of_kind in others.items() if of_kind is not None}
    policies = [own.spec_of("policy", policy)]
    workload = workload_of(log, mode)
    traits = JobTraits(restartable, moldable, parse_speedup(speedup))
    with own:
        for option in ("runtime", "adjustment"):
            if option in specs:
                require_used(option, option, specs[option][0], policies)
        ((label, configuration),) = configurations(mode, policies, specs.get("runtime"), specs.get("adjustment"))
        bound = parse_wait_bound(specs.get("wait-bound"), mode)
        try:
            changes = tuple(CapacityChanged(time=time, processors=size) for time, size in (capacity or {}).items())
        except ValidationError as error:
            raise SettingsError(f"capacity: {first_of(error, 'a change')}") from None
        changes = tuple(sorted(changes, key=lambda change: change.time))
        require_one_pool([workload], changes)
        try:
            plan = RunPlan(label, run_name(workload.name), workload, configuration, mode, bound, seed, changes, traits)
            plan.opened()
        except ValidationError as error:
            raise SettingsError(first_of(error)) from None

        return Result(plan, own)


def wait_bound(waits: Sequence[int], quantile: float = 0.95, confidence: float = 0.95) -> int | None:
    """Return the observed wait that is an upper bound on a quantile of waits; None if there are too few waits.

    Parameters
    ----------
    waits
        Waits of similar jobs, in seconds.
    quantile
        Share of similar jobs that wait no longer than the bound.
    confidence
        Probability that at least this share waits no longer.

    Raises
    ------
    ValueError
        If quantile or confidence is not between 0 and 1, or a wait is negative or NaN.

    Examples
    --------
    >>> wait_bound(range(100))
    98

    References
    ----------
    docs/algorithms.md#binomial-bound (Brevik 2006, section 3.1).
    """
    if (wrong := next((wait for wait in waits if not wait >= 0), None)) is not None:  # also a NaN
        raise ValueError(f"waits: expected numbers of at least 0, found {wrong}")
    rank = upper_rank(len(waits), quantile, confidence)
    return None if rank is None else sorted(waits)[rank - 1]


def make(kind: str, spec: str) -> Any:
    """Return a policy, predictor, adjuster or bounder for direct use.

    Predictors have `predict_one(job)` and `learn_one(job, outcome)` (`shared/stages/predictor.py`).

    Parameters
    ----------
    kind
        `policy`, `runtime`, `adjustment` or `wait-bound`, as the options of the command line.
    spec
        Name and keys of the component, such as `easy:forecast=yes`. A policy's keys `runtime` and `adjustment` name
        other components, and do not change the policy.

    Raises
    ------
    SettingsError
        If the kind, the name or a key is unknown.

    Examples
    --------
    >>> from shadowtime.shared.messages import JobSubmitted
    >>> predictor = make("runtime", "last-two")
    >>> predictor.predict_one(JobSubmitted(time=0, job_number=1, requested_processors=4, requested_time=60)) is None
    True
    """
    if kind not in REGISTRIES:
        raise SettingsError(f"unknown kind {kind!r}{among(kind, REGISTRIES)}")
    return REGISTRIES[kind].build(parse(configure(spec).policy if kind == "policy" else canonical(kind, spec)))
