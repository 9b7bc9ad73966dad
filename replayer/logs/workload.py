"""The jobs of a log that a replay uses, on a machine of a given size."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, get_args

import numpy as np

from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER
from shadowtime.shared.cluster import OF_ANY_LOG, UNKNOWN, Job, job_of
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.formatting import counted
from shadowtime.shared.kernels import Flags, Integers, IntegerTable
from shadowtime.shared.messages import OR, Pool

MAX_MACHINE = 10_000_000

UNUSED = ("average_cpu_time", "used_memory", "requested_memory", "preceding_job_number", "think_time")
"""Fields of a log that no replay uses. A schedule written as a log contains them again."""

BLOCK = 512
"""Number of jobs that are converted to objects at a time during iteration."""

INSTANTS = {"handed_in": "submissions before jobs were eligible", "left_time": "times of cancellation"}
"""Fields with instants of a job other than its submission, in words."""

YEAR_2000 = 946_684_800
"""Unix time of 1 January 2000, the start of logs without a date: time series databases do not reach back to 1970."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Workload:
    """The jobs that a replay uses, in order of submit time and job number, as a sequence of `Job`.

    `columns` has one read-only int64 array of shape (n,) per field of `Job`, -1 if unknown: about 100 bytes per job.
    It has a field of `OF_ACCOUNTING` only if the log has that field. `unused` has arrays of the fields that no replay
    uses. `skipped` counts the jobs left out by reason. `aligned` counts the jobs cut to the machine's size.
    `unix_start_time` is the Unix time of the log's second 0, if the header has it. `pools` are the parts of the
    machine, if known. `resized` has the job number, time and processors of each size change of a running job, if known;
    shape (3, changes). `assumed_size` says whether the size of the machine is the maximum number of processors in use.
    `job_ids` has the site's id of each job whose number is not its id. `texts` and `stated_columns` are as in `Trace`.
    """

    name: str
    processors: int
    columns: Mapping[str, Integers]
    skipped: dict[str, int]
    aligned: int
    unix_start_time: int | None = None
    unused: Mapping[str, Integers] = field(default_factory=dict)
    pools: tuple[Pool, ...] | None = None
    resized: IntegerTable | None = None
    assumed_size: bool = False
    job_ids: Mapping[int, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()
    stated_columns: frozenset[str] = frozenset()

    whole: ClassVar[bool] = True
    """Whether all jobs are in memory, so that `columns` exist."""

    def __repr__(self) -> str:
        return f"<Workload {self.name}: {counted(len(self), 'job')} on {self.processors:,} processors>"

    def __post_init__(self) -> None:
        for name in ("columns", "unused"):
            columns = getattr(self, name)
            for column in columns.values():
                column.setflags(write=False)
            object.__setattr__(self, name, MappingProxyType(dict(columns)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickling: read-only mappings cannot be pickled themselves."""
        values = (getattr(self, field.name) for field in fields(self))
        return type(self), tuple(dict(value) if isinstance(value, MappingProxyType) else value for value in values)

    def __len__(self) -> int:
        return len(self.columns["job_number"])

    def __getitem__(self, index: int) -> Job:
        return job_of([int(column[index]) for column in self.columns.values()], self._more, self.texts)

    def __iter__(self) -> Iterator[Job]:
        return self.jobs_from(0)

    def jobs_from(self, row: int) -> Iterator[Job]:
        """Yield the jobs from a row on, O(1) each. At most `BLOCK` of them are objects at a time, to save memory."""
        for start in range(row, len(self), BLOCK):
            rows = [column[start : start + BLOCK].tolist() for column in self.columns.values()]
            yield from [job_of(values, self._more, self.texts) for values in zip(*rows, strict=True)]

    def jobs_at(self, rows: Collection[int]) -> dict[int, Job]:
        """Return the jobs of these rows, by row."""
        return {row: self[row] for row in rows}

    def blocks(self) -> Iterator["Workload"]:
        """Yield the jobs in blocks with columns: here one block with all jobs."""
        yield self

    @property
    def _more(self) -> tuple[str, ...]:
        return tuple(self.columns)[OF_ANY_LOG:] if len(self.columns) > OF_ANY_LOG else ()


def prepare(
    trace: Trace,
    processors: int | None = None,
    *,
    oversized: Oversized = "drop",
    requests: Requests = "as-logged",
    sizes: Sizes = "requested",
    limit: int | None = None,
    load: float = 1.0,
    recorded: bool = False,
) -> Workload:
    """Return the jobs of a trace that can be replayed on a machine.

    Parameters
    ----------
    trace : Trace
        The log.
    processors : int, optional
        Size of the machine; by default from the log.
    oversized : {"drop", "align"}
        Whether jobs larger than the machine are left out or cut to its size.
    requests : {"as-logged", "at-least-run", "actual", "doubled", "queue-maximum"}
        `actual`: each job requests its run time. `doubled`: each job requests twice its requested time, for the same
        work. Both first cut the run time at the original request, as the machine does in any case
        (docs/algorithms.md#end-at-the-limit). `at-least-run`: a job that ran past its request requests its run time,
        so no run time is cut. `queue-maximum`: each job requests the longest run time of its queue over the whole log,
        and jobs without a request are kept (Smith 1999, section 3). This looks ahead. Jobs of unknown queue form one
        queue. In a log without any request, `actual` keeps all jobs, too.
    sizes : {"requested", "allocated"}
        Whether a job gets the processors that it requested or those that it got. If one number is unknown, the other
        is used.
    limit : int, optional
        Keep this many jobs, the earliest submitted.
    load : float
        Divide the gaps between submissions by this factor: with 2, jobs arrive twice as fast (Smith 1999, section 4).
    recorded
        Whether jobs start as recorded. Then jobs of an accounting file that never started, or ran for less than a
        second, are kept. A closed replay drops them, because their run time under another schedule is unknown.

    Raises
    ------
    TraceError
        If the log does not give the size of its machine, its limits are in doubt, or no job is left.
    SettingsError
        If an option is out of its range.

    Examples
    --------
    >>> row = dict.fromkeys(FIELDS, -1) | {"submit_time": 5, "run_time": 60, "requested_time": 90}
    >>> rows = [row | {"job_number": size, "allocated_processors": size} for size in (2, 16)]
    >>> trace = Trace("two", {"MaxProcs": "8"}, np.array([list(row.values()) for row in rows]))
    >>> workload = prepare(trace)
    >>> [(job.processors, job.user_id) for job in workload], workload.skipped
    ([(2, None)], {'larger than the machine': 1})

    References
    ----------
    docs/algorithms.md#jobs-left-out (aligning: Nissimov 2007, section 5).
    """
    if trace.doubt and requests != "queue-maximum":
        raise TraceError(f"{trace.name}: {trace.doubt}")
    machine = machine_of(trace, processors)
    without = not (trace.table[:, FIELDS.index("requested_time")] > 0).any()
    keeps_all = requests == "queue-maximum" or (requests == "actual" and without)
    workload = selected(trace, machine, oversized, requests, sizes, limit, recorded=recorded, keeps_all=keeps_all)
    if not len(workload):
        raise none_left(workload)
    if processors is None and trace.most_held is not None:
        workload = replace(workload, assumed_size=True)
    return at_load(workload, load, recorded=recorded)


def of_rows(workload: Workload, rows: Integers | Flags | slice) -> Workload:
    """Return the workload with these rows alone, in this order."""
    columns, unused = (
        {name: column[rows] for name, column in part.items()} for part in (workload.columns, workload.unused)
    )
    return replace(workload, columns=columns, unused=unused)


MIN_LOAD, MAX_LOAD = 0.01, 100.0
"""Bounds of the factor by which the gaps between submissions are divided."""


def at_load(workload: Workload, load: float, *, recorded: bool = False) -> Workload:
    """Return the workload with the gaps between submissions divided by `load`. Times are rounded down to seconds.

    The recorded waits become unknown.

    Raise `SettingsError` if the factor is out of its range, jobs start as recorded, or jobs have instants other than
    submissions.
    """
    if not MIN_LOAD <= load <= MAX_LOAD:
        raise SettingsError(f"load {load:g}: expected a factor of {MIN_LOAD:g} to {MAX_LOAD:g}")
    if load == 1:
        return workload
    if recorded:
        raise SettingsError(
            f"load {load:g}: jobs start as recorded, so their submissions cannot move; leave the load out"
        )
    columns = workload.columns
    instants = [words for name, words in INSTANTS.items() if name in columns and (columns[name] != UNKNOWN).any()]
    if workload.resized is not None and workload.resized.size:
        instants.append("size changes")
    if instants:
        raise SettingsError(
            f"load {load:g}: expected a log whose only times are submissions; {workload.name} also has "
            f"{' and '.join(instants)}; leave the load out"
        )
    submitted = workload.columns["submit_time"]
    moved = {
        "submit_time": np.floor(submitted / load).astype(np.int64),
        "wait_time": np.full(len(submitted), UNKNOWN),
    }
    order = np.lexsort(
        (columns["job_number"], moved["submit_time"])
    )  # submissions of different seconds may now be equal
    return of_rows(replace(workload, columns={**columns, **moved}), order)


def processors_of_jobs(columns: Mapping[str, Integers], sizes: Sizes) -> Integers:
    """Return the processors of each job: those that `sizes` names if they are known, else the others.

    >>> columns = {"requested_processors": np.array([64, -1]), "allocated_processors": np.array([256, 4])}
    >>> processors_of_jobs(columns, "requested").tolist(), processors_of_jobs(columns, "allocated").tolist()
    ([64, 4], [256, 4])
    """
    requested, allocated = columns["requested_processors"], columns["allocated_processors"]
    first, other = (requested, allocated) if sizes == "requested" else (allocated, requested)
    return np.where(first > 0, first, other)


def none_left(workload: Workload) -> TraceError:
    """Return the error for a log without a job that can be replayed."""
    counts = ", ".join(f"{count} {reason}" for reason, count in workload.skipped.items())
    advice = ""
    if workload.skipped.get("no request"):
        advice = (
            "; without requested times, --requests actual takes the run time of each job as its request, and "
            "--requests queue-maximum the longest run time of its queue"
        )
    return TraceError(
        f"{workload.name}: no job left to replay on {workload.processors} processors; skipped: {counts}{advice}"
    )


def machine_of(trace: Trace, processors: int | None) -> int:
    """Return the size of the machine of a replay, in processors.

    Raises
    ------
    SettingsError
        If `processors` is out of its range, or the log has pools.
    TraceError
        If neither `processors` nor the log states the size.
    """
    if processors is not None and trace.pools is not None:
        raise SettingsError(
            f"processors {processors}: the pools of {trace.name} give its processors already; leave this out"
        )
    machine = trace.processors if processors is None else processors
    if machine is None:
        raise TraceError(
            f"{trace.name}: its header has neither MaxProcs nor MaxNodes as a whole number; give --processors"
        )
    if machine <= 0:
        raise SettingsError(f"processors {machine}: a machine has at least 1 processor")
    if machine > MAX_MACHINE:
        raise SettingsError(f"processors {machine}: a machine has at most {MAX_MACHINE}")
    return machine


def selected(
    trace: Trace,
    machine: int,
    oversized: Oversized,
    requests: Requests,
    sizes: Sizes,
    limit: int | None,
    *,
    recorded: bool,
    keeps_all: bool = False,
) -> Workload:
    """Return the jobs of a trace that can be replayed, as `prepare` does. There may be none.

    `keeps_all` keeps jobs without a request, for `requests` that do not need one.

    Raise `SettingsError` if an option is out of its range.
    """
    options = ("oversized", oversized, Oversized), ("requests", requests, Requests), ("sizes", sizes, Sizes)
    for option, value, known in options:
        if value not in get_args(known):
            raise SettingsError(f"{option} {value!r}: expected one of {', '.join(get_args(known))}")

    if limit is not None and limit <= 0:
        raise SettingsError(f"jobs {limit}: a replay needs at least 1")
    logged = dict(zip(FIELDS, trace.table.T, strict=True)) | dict(trace.more)
    size = processors_of_jobs(logged, sizes)
    run_time, requested_time = logged["run_time"], logged["requested_time"]
    pools = trace.pools
    if pools is None:
        logged.pop("pool", None)
        largest, too_large = np.full(len(size), machine), size > machine
    else:
        largest = np.array([pool.processors for pool in pools], dtype=np.int64)[logged["pool"]]
        too_large = size > largest

    left = logged["left_time"] >= 0 if "left_time" in logged else np.zeros(len(size), dtype=np.bool_)
    has_more = recorded and bool(trace.more)
    bounded = np.where(requested_time == MAX_DURATION, 1, requested_time)
    reasons = {
        "submit time negative": logged["submit_time"] < 0,
        "no processors": size <= 0,
        "never started": left & (not has_more),
        "run time not positive": (run_time < (0 if has_more else 1)) & ~left,
        "no request": (requested_time <= 0) & (not keeps_all),
        f"longer than {MAX_DURATION // 2} s": np.maximum(run_time, bounded) > MAX_DURATION // 2,
    }
    for name in ("memory", "gpus"):
        if pools is not None and name in logged:
            has = np.array([_any(getattr(pool, name)) for pool in pools], dtype=np.int64)
            reasons[f"more {name} than its pool has"] = logged[name] > has[logged["pool"]]
    if pools is not None and "gpu_type" in logged and "gpus" in logged:
        reasons["more GPUs of its type than its pool has"] = _beyond_type(logged, pools, trace.texts)

    if oversized == "drop":
        reasons["larger than the machine"] = too_large
    usable = np.flatnonzero(~np.logical_or.reduce(list(reasons.values())))
    kept = usable[:limit]
    seen = len(size) if limit is None or len(kept) < limit else int(kept[-1]) + 1
    uncounted = np.ones(seen, dtype=bool)
    skipped = {reason: count for reason, (count, _) in trace.left_out.items()}
    for reason, applies in reasons.items():  # count each job only under its first reason
        if count := int(np.count_nonzero(uncounted & applies[:seen])):
            skipped[reason] = count
        uncounted &= ~applies[:seen]

    logged |= rewritten(requests, logged, left, usable, keeps_all=keeps_all)
    logged["processors"] = np.minimum(size, largest)
    columns = {name: logged[name][kept] for name in Job._fields if name in logged}
    unused = {name: logged[name][kept] for name in UNUSED}
    aligned = int(np.count_nonzero(too_large[kept]))
    return Workload(
        trace.name,
        machine,
        columns,
        skipped,
        aligned,
        trace.unix_start_time,
        unused,
        pools,
        trace.resized,
        job_ids=trace.job_ids,
        texts=trace.texts,
        stated_columns=trace.stated_columns,
    )


def rewritten(
    requests: Requests, logged: Mapping[str, Integers], left: Flags, usable: Integers, *, keeps_all: bool
) -> dict[str, Integers]:
    """Return the run times and requested times in seconds, rewritten as `requests` says (see `prepare`).

    Parameters
    ----------
    left
        Whether each job left the queue without a start.
    usable
        The rows of the jobs that are not left out.
    keeps_all
        Whether jobs without a request are kept.
    """
    run_time, requested_time = logged["run_time"], logged["requested_time"]
    if requests == "actual":
        most = run_time if keeps_all else requested_time
        requested_time = np.where(left, requested_time, np.minimum(run_time, most))
    elif requests == "at-least-run":
        requested_time = np.maximum(run_time, requested_time)
    elif requests == "doubled":
        run_time, requested_time = np.minimum(run_time, requested_time), np.minimum(2 * requested_time, MAX_DURATION)
    elif requests == "queue-maximum":
        requested_time = longest_of_queue(logged["queue_number"], run_time, usable)
    return {"run_time": run_time, "requested_time": requested_time}


def longest_of_queue(queue_numbers: Integers, run_times: Integers, rows: Integers) -> Integers:
    """Return for each job the longest run time, in seconds, of the jobs of its queue among `rows`; 0 if there is none.

    >>> longest_of_queue(np.array([1, 2, 1, 1]), np.array([5, 7, 60, 90]), np.array([0, 1, 2])).tolist()
    [60, 7, 60, 60]
    """
    _, queues = np.unique(queue_numbers, return_inverse=True)
    longest = np.zeros(len(queues), dtype=np.int64)
    np.maximum.at(longest, queues[rows], run_times[rows])
    return longest[queues]


def _beyond_type(logged: Mapping[str, Integers], pools: Sequence[Pool], texts: Sequence[str]) -> Flags:
    """Return which jobs ask for more GPUs of the type that they name than their pools have."""
    pairs = np.stack((logged["gpu_type"], logged["pool"]))[:, logged["gpu_type"] != UNKNOWN]
    beyond = np.zeros(len(logged["pool"]), dtype=np.bool_)
    for code, pool in np.unique(pairs, axis=1).T.tolist():
        has = {kind.name: kind.gpus for kind in pools[pool].gpu_types or ()}
        names = texts[code].split(OR)
        most = has.get(names[0], 0) if len(names) == 1 else MAX_INTEGER if set(names) <= has.keys() else 0
        beyond |= (logged["gpu_type"] == code) & (logged["pool"] == pool) & (logged["gpus"] > most)
    return beyond


def _any(most: int | None) -> int:
    return MAX_INTEGER if most is None else most
