"""A workload that is read in pieces during the replay, for logs that do not fit into memory."""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import ClassVar, NoReturn

import numpy as np

from shadowtime.replayer.logs.swf import FIELDS, SwfBlock, notes_on, read_pieces, require_few_odd
from shadowtime.replayer.logs.trace import Trace, trace_name
from shadowtime.replayer.logs.workload import Workload, at_load, machine_of, none_left, selected
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.shared.accounting import UNREADABLE, OddRows
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.cluster import Job
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.kernels import Integers

SUBMIT_TIME = FIELDS.index("submit_time")


@dataclass(frozen=True, slots=True, eq=False)
class LongWorkload(Workload):
    """A workload with only several thousand jobs in memory at a time. `read` yields its blocks from the beginning.

    It has no columns, as these would need all jobs in memory: access to a column raises `TraceError`. Access to a row
    costs O(earlier rows).
    """

    whole: ClassVar[bool] = False

    jobs: int = 0
    read: Callable[[], Iterator[Workload]] = tuple[Workload, ...]().__iter__

    def __post_init__(self) -> None:
        """Do nothing: `Workload` would copy the columns, and `NotWhole` raises on any access."""

    def __len__(self) -> int:
        return self.jobs

    def __getitem__(self, index: int) -> Job:
        row = range(self.jobs)[index]
        return self.jobs_at([row])[row]

    def blocks(self) -> Iterator[Workload]:
        """Yield the jobs in blocks with columns, several thousand jobs at a time."""
        return self.read()

    def jobs_from(self, row: int) -> Iterator[Job]:
        """Yield the jobs from a row on."""
        for block in self.read():
            yield from block.jobs_from(row)
            row = max(row - len(block), 0)

    def jobs_at(self, rows: Collection[int]) -> dict[int, Job]:
        """Return the jobs of these rows, by row. O(rows up to the last of these)."""
        left, jobs, before = sorted(rows, reverse=True), dict[int, Job](), 0
        for block in self.read() if left else ():
            while left and left[-1] < before + len(block):
                row = left.pop()
                jobs[row] = block[row - before]
            before += len(block)

        return jobs


class NotWhole(Mapping[str, Integers]):
    """The missing columns of a log that is read in pieces. Any access raises `TraceError`."""

    def __init__(self, log: str) -> None:
        self._log = log

    def _refuse(self) -> NoReturn:
        raise TraceError(f"{self._log} is read in pieces, but this needs the whole log; leave out --in-pieces")

    def __getitem__(self, name: str) -> Integers:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:
        self._refuse()


def read_in_pieces(
    path: Path,
    processors: int | None = None,
    *,
    oversized: Oversized = "drop",
    requests: Requests = "as-logged",
    sizes: Sizes = "requested",
    limit: int | None = None,
    load: float = 1.0,
    recorded: bool = False,
) -> tuple[LongWorkload, tuple[str, ...]]:
    """Return the jobs of a log that can be replayed, and remarks for the user.

    The log is read once for checks, and again in each replay.

    Parameters
    ----------
    path
        A log in the Standard Workload Format, with jobs sorted and numbered by submit time.
    processors, oversized, requests, sizes, limit, load, recorded
        As in `prepare`. In pieces, jobs without a request are always left out.

    Raises
    ------
    TraceError
        As in `read_swf` and `prepare`, or if a job is out of order. The error names the line.
    SettingsError
        As in `prepare`, or for requests by the maxima of queues, which need the whole log.

    Examples
    --------
    >>> from shadowtime.replayer.logs.trace import BUNDLED
    >>> long, notes = read_in_pieces(BUNDLED)
    >>> len(long), long.processors, next(long.jobs_from(4999)).job_number, notes
    (5000, 128, 5000, ())
    """
    if requests == "queue-maximum":
        raise SettingsError(f"requests {requests}: needs the whole log at once; leave out --in-pieces")
    workload_of = partial(
        _workload_of,
        processors=processors,
        oversized=oversized,
        requests=requests,
        sizes=sizes,
        load=load,
        recorded=recorded,
    )
    read = partial(_pieces, path, limit, workload_of)
    skipped: Counter[str] = Counter()
    jobs = lines = aligned = longer = 0
    odd = OddRows()
    start: int | None = None
    for piece, block in read(odd=odd):
        start = start if lines else block.unix_start_time
        jobs, aligned, longer = jobs + len(block), aligned + block.aligned, longer + piece.longer
        lines += len(piece.table)
        skipped.update(block.skipped)
    require_few_odd(path, odd, lines, lenient=False)
    if odd.count:
        skipped[UNREADABLE] = odd.count
    workload = LongWorkload(
        block.name,
        block.processors,
        NotWhole(block.name),
        dict(skipped),
        aligned,
        start,
        jobs=jobs,
        read=partial(_blocks, read),
    )
    if not jobs:
        raise none_left(workload)
    return workload, ((odd.note(lines),) if odd.count else ()) + notes_on(longer)


def _blocks(read: Callable[[], Iterator[tuple[SwfBlock, Workload]]]) -> Iterator[Workload]:
    return (block for _, block in read() if len(block))


def _workload_of(
    trace: Trace,
    limit: int | None,
    *,
    processors: int | None,
    oversized: Oversized,
    requests: Requests,
    sizes: Sizes,
    load: float,
    recorded: bool,
) -> Workload:
    """Return the jobs of a block to replay, at most `limit`; all if it is None."""
    machine = machine_of(trace, processors)
    return at_load(
        selected(trace, machine, oversized, requests, sizes, limit, recorded=recorded), load, recorded=recorded
    )


def _pieces(
    path: Path,
    limit: int | None,
    workload_of: Callable[[Trace, int | None], Workload],
    odd: OddRows | None = None,
) -> Iterator[tuple[SwfBlock, Workload]]:
    """Yield each block of a log with the workload of its jobs to replay, until there are `limit` such jobs.

    A `limit` of None is no limit. Invalid lines are counted in `odd`.
    """
    header: dict[str, str] = {}
    odd = OddRows() if odd is None else odd
    last = np.full((1, len(FIELDS)), -1, dtype=np.int64)
    last[0, SUBMIT_TIME] = -MAX_TIME
    for piece in read_pieces(path, header, odd):
        _require_order(path, piece, last)
        last = piece.table[-1:]
        block = workload_of(Trace(trace_name(path), header, piece.table), limit)
        yield piece, block
        if limit is not None:
            limit -= len(block)
            if not limit:
                return


def _require_order(path: Path, piece: SwfBlock, last: Integers) -> None:
    """Raise `TraceError` if jobs are out of order. `last` is the last row of the block before, shape (1, 18)."""
    table = np.concatenate((last, piece.table))
    for what, column in (("job number", 0), ("submit time", SUBMIT_TIME)):
        steps = np.diff(table[:, column])
        if (wrong := steps <= 0 if column == 0 else steps < 0).any():
            at = int(wrong.argmax())
            before, now = table[at : at + 2, column].tolist()
            raise TraceError(
                f"{path}, line {piece.lines[at]}: {what} {now} after {before}; --in-pieces needs jobs in order of "
                "submission, numbered in that order, and one line for each job"
            )
