"""The queue of a cluster as text: tables that fit the terminal, and CSV."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from shadowtime.services.processes.ask.cluster_queue import QueueAnswer, RunningRow, WaitingRow
from shadowtime.services.processes.ask.questions import age_line
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.formatting import clock, duration, utc_clock
from shadowtime.shared.messages import StartOutlook
from shadowtime.shared.output import csv_text
from shadowtime.shared.quoting import one_line

SORTS: dict[str, Callable[[WaitingRow], Any]] = {
    "queue": lambda row: MAX_TIME if row.place is None else row.place,
    "start": lambda row: MAX_TIME if row.starts is None or row.starts.expected is None else row.starts.expected,
    "waited": lambda row: row.since,
    "size": lambda row: -row.processors,
    "user": lambda row: row.user,
    "partition": lambda row: row.partition,
    "job": lambda row: row.job_number,
}
"""Orders of the waiting jobs, by name. `queue` is the order of service."""

REASONS = {"site": "site", "capacity": "too big", "processors": "procs", "memory": "memory", "gpus": "GPUs"} | {
    "head": "others",
    "pass": "next",
    "starting": "starts",
}
"""Short names of the reasons of waits."""

NARROW = 100
"""Tables of fewer columns of text than this have shorter names, and one space between their columns."""

MEANING = "START from now: expected; 80 %: interval; 95 %: latest start"


class TextColumn(NamedTuple):
    """A column of a table. Columns with the smallest `weight` are left out until the table fits."""

    heading: str
    weight: int
    cells: Sequence[str]
    left: bool = False


def short(seconds: int | None) -> str:
    """Return a duration in at most five characters, up to 99 days; `-` for None.

    >>> short(45), short(754), short(7560), short(300_000), short(99 * 86_400), short(None)
    ('45s', '13m', '2.1h', '3.5d', '99d', '-')
    """
    if seconds is None:
        return "-"
    for unit, size, most in (("s", 1, 60), ("m", 60, 3_600), ("h", 3_600, 86_400), ("d", 86_400, None)):
        if most is None or seconds < most:
            amount = max(0, seconds) / size
            return f"{amount:.1f}{unit}" if unit in "hd" and amount < 10 else f"{amount:.0f}{unit}"
    raise AssertionError(seconds)


def queue_lines(answer: QueueAnswer, width: int, sort: str = "queue") -> list[str]:
    """Return the queue for people, in lines of at most `width` columns. `width` is at least 60."""
    at = utc_clock(answer.time, answer.unix_start)
    old = age_line(answer.log_age)
    age = "" if answer.log_age is None or old else f"; the log is {duration(answer.log_age)} old"
    counts = f"{len(answer.waiting):,} waiting, {len(answer.running):,} running"
    lines = [one_line(f"{answer.cluster} at {at}: {counts}{age}")[:width], *old]
    if answer.waiting:
        rows = sorted(answer.waiting, key=SORTS[sort])
        lines += ["", *table(_waiting_columns(answer, rows, width), width), MEANING[:width]]
    if answer.running:
        ends = sorted(answer.running, key=lambda row: MAX_TIME if row.expected_end is None else row.expected_end)
        lines += ["", *table(_running_columns(answer, ends, width), width)]
    return lines


def table(columns: Sequence[TextColumn], width: int) -> Iterator[str]:
    """Yield the lines of a table. The lightest columns are left out until it fits; a line names them.

    >>> list(table([TextColumn("A", 2, ["1", "22"]), TextColumn("LONG", 1, ["x", "y"], True)], 6))
    [' A', ' 1', '22', 'left out: long']
    >>> list(table([TextColumn("A", 2, ["1", "22"]), TextColumn("LONG", 1, ["x", "y"], True)], 8))
    [' A LONG', ' 1 x', '22 y']
    """
    gap = " " if width < NARROW else "  "
    widths = {column.heading: max(map(len, (column.heading, *column.cells))) for column in columns}
    shown = list(columns)
    while len(shown) > 1 and sum(widths[column.heading] + len(gap) for column in shown) - len(gap) > width:
        shown.remove(min(shown, key=lambda column: column.weight))

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(widths[column.heading]) if column.left else cell.rjust(widths[column.heading])
            for column, cell in zip(shown, cells, strict=True)
        )
        return gap.join(padded).rstrip()

    yield line([column.heading for column in shown])
    yield from map(line, zip(*(column.cells for column in shown), strict=True))
    if out := [column.heading.lower() for column in columns if column not in shown]:
        yield f"left out: {', '.join(out)}"


def _cut(text: str, most: int) -> str:
    text = one_line(text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def cut_apart(texts: Sequence[str], most: int) -> list[str]:
    """Return the texts, cut at their ends to `most` characters. If this makes texts equal, their middles are cut.

    >>> cut_apart(["gpu_a100_40g", "gpu_a100_80g"], 9), cut_apart(["partition_1", "gpu"], 9)
    (['gpu_…_40g', 'gpu_…_80g'], ['partitio…', 'gpu'])
    """
    lines = list(map(one_line, texts))
    for tail in (0, (most - 1) // 2, most - 1):
        cuts = {line: line if len(line) <= most else _without_middle(line, most, tail) for line in lines}
        if len(set(cuts.values())) == len(cuts):
            return [cuts[line] for line in lines]
    return [_cut(line, most) for line in lines]


def _without_middle(text: str, most: int, tail: int) -> str:
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"


def _names(rows: Sequence[WaitingRow] | Sequence[RunningRow], width: int) -> list[TextColumn]:
    job, user, partition = (16, 8, 9) if width < NARROW else (20, 16, 16)
    return [
        TextColumn("JOB", 100, cut_apart([row.job_id for row in rows], job)),
        TextColumn("USER", 90, cut_apart([row.user for row in rows], user), True),
        TextColumn("PARTITION", 60, cut_apart([row.partition for row in rows], partition), True),
        TextColumn("PROCS", 55, [str(row.processors) for row in rows]),
    ]


def _waiting_columns(answer: QueueAnswer, rows: Sequence[WaitingRow], width: int) -> list[TextColumn]:
    now = answer.time

    def until(second: int | None) -> str:
        return "-" if second is None else short(second - now)

    outlooks = [row.starts for row in rows]
    return [
        *_names(rows, width),
        TextColumn("LIMIT", 30, [short(row.requested_time) for row in rows]),
        TextColumn("WAITED", 50, [short(now - row.since) for row in rows]),
        TextColumn("START", 99, [_in(row, now) for row in rows]),
        TextColumn(
            "80 %",
            95,
            ["-" if one is None else _interval(until(one.earliest), until(one.latest)) for one in outlooks],
        ),
        TextColumn("95 %", 94, ["-" if one is None else until(one.by_95) for one in outlooks]),
        TextColumn("REASON", 70, cut_apart(list(map(_reason, rows)), 12), True),
        *_site_says(rows, width),
        TextColumn(
            "START AT",
            20,
            [
                "-" if one is None or one.expected is None else clock(one.expected, answer.unix_start, now)[:-3]
                for one in outlooks
            ],
        ),
        TextColumn("WHY", 10, [_cut(row.why, 60) for row in rows], True),
    ]


def _reason(row: WaitingRow) -> str:
    if row.waits_for == "gpus" and row.gpu_type:
        return row.gpu_type
    return REASONS.get(row.waits_for, row.waits_for)


def _site_says(rows: Sequence[WaitingRow], width: int) -> list[TextColumn]:
    """Return the column with the reasons that the site's own scheduler gives; none if it gives none."""
    most = 14 if width < NARROW else 30
    cells = [text or "-" for text in cut_apart([row.site_reason for row in rows], most)]
    return [TextColumn("SITE SAYS", 56, cells, True)] if any(row.site_reason for row in rows) else []


def _in(row: WaitingRow, now: int) -> str:
    if row.waits_for == "starting":
        return "now"
    if row.starts is None or row.starts.expected is None:
        return "late" if row.starts is not None and row.starts.passed is not None else "-"
    return short(row.starts.expected - now)


def _interval(earliest: str, latest: str) -> str:
    """Return an interval in a few characters; an unknown end is left out.

    >>> _interval("12m", "2.1h"), _interval("-", "2.1h"), _interval("12m", "-"), _interval("-", "-")
    ('12m-2.1h', '<2.1h', '>12m', '-')
    """
    if earliest != "-" != latest:
        return f"{earliest}-{latest}"
    return f"<{latest}" if latest != "-" else f">{earliest}" if earliest != "-" else "-"


def _running_columns(answer: QueueAnswer, rows: Sequence[RunningRow], width: int) -> list[TextColumn]:
    now = answer.time
    return [
        *_names(rows, width),
        TextColumn("LIMIT", 50, [short(row.limit) for row in rows]),
        TextColumn("RUN", 50, [short(row.ran) for row in rows]),
        TextColumn("USED", 80, ["-" if row.used is None else f"{100 * row.used:.0f} %" for row in rows]),
        TextColumn("END", 99, ["-" if row.expected_end is None else short(row.expected_end - now) for row in rows]),
        TextColumn(
            "BY",
            70,
            ["suspended" if row.suspended else "prediction" if row.predicted else "limit" for row in rows],
            True,
        ),
        TextColumn(
            "END AT",
            20,
            ["-" if row.expected_end is None else clock(row.expected_end, answer.unix_start, now)[:-3] for row in rows],
        ),
    ]


def queue_csv(answer: QueueAnswer, sort: str = "queue") -> str:
    """Return the queue as CSV: one line for each job. Times are Unix seconds, durations are in seconds."""

    def at(second: int | None) -> int | None:
        return None if second is None else answer.unix_start + second

    rows = list[tuple[object, ...]]()
    for row in sorted(answer.waiting, key=SORTS[sort]):
        starts = row.starts or StartOutlook()
        rows.append(
            (
                *(row.job_id, "waiting", row.user, row.partition, row.processors, row.requested_time),
                *(at(row.since), answer.time - row.since),
                *map(at, (starts.expected, starts.earliest, starts.latest, starts.by_95)),
                *(row.waits_for, row.why, None, None, None, row.site_reason),
            )
        )
    for run in answer.running:
        state = "suspended" if run.suspended else "running"
        request = run.job_id, state, run.user, run.partition, run.processors, run.limit
        rows.append((*request, *[None] * 8, at(run.started), at(run.expected_end), run.used, None))
    return csv_text(CSV_COLUMNS, rows)


CSV_COLUMNS = (
    *("job", "state", "user", "partition", "processors", "limit_seconds", "waits_since", "waited_seconds"),
    *("expected_start", "start_10", "start_90", "start_95", "waits_for", "why"),
    *("started", "expected_end", "limit_used", "site_reason"),
)
"""Columns of the CSV. `start_10` to `start_95` are the times before which the job starts with that probability."""
