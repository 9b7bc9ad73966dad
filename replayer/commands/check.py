"""Report the contents, gaps and oddities of a log: `shadowtime check LOG`."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shadowtime.replayer.reading_options import with_reading_options
from shadowtime.shared.cli import application, lasting_imports, say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.output import print_json
from shadowtime.shared.quoting import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from rich.table import Table

    from shadowtime.replayer.logs import Trace
    from shadowtime.shared.accounting import Reading
    from shadowtime.shared.kernels import Integers

COUNTED = {
    "user_id": "users",
    "group_id": "accounts or groups",
    "executable_number": "programs or job names",
    "queue_number": "queues or partitions",
    "qos_number": "QOS",
}
"""Columns whose distinct values are counted."""

_LAST_S = re.compile(r"s\b")
"""The ends of the nouns above, which one of them does not have."""


@with_reading_options
def check(
    log: Annotated[
        str, typer.Argument(metavar="LOG[@PROCESSORS]", help="SWF, accounting (sacct, PBS, LSF, …), CSV or Parquet.")
    ],
    processors: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Size of the machine, as in LOG@PROCESSORS.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
    describe: Annotated[
        bool, typer.Option("--describe", help="Also the means, medians and shapes by which papers describe a log.")
    ] = False,
    *,
    reading: "Reading",
) -> None:
    """Report the contents of a log, its gaps with their consequences, and its oddities, each with a first example.

    Times are seconds from the log's second 0. Nothing is replayed, and only the file of --names is changed.
    """
    with lasting_imports():
        from pathlib import Path

        import orjson

        from shadowtime.replayer.arguments import origin_of, size_twice, split_size
        from shadowtime.replayer.logs import columns_of, described, machine_of, read_trace, size_note

    path, size = split_size(log)
    if size is not None and processors is not None:
        raise SettingsError(size_twice(log))
    size = processors if size is None else size
    if size is not None and reading.pools is not None:
        raise SettingsError(
            f"{log}: expected no number of processors, because the file of --pools has it; leave the number out"
        )
    trace = read_trace(Path(path), reading)
    if size is not None:
        machine_of(trace, size)  # raises an error if no machine has this size
    notes = [*trace.notes, trace.doubt, size_note(trace, size, "LOG@PROCESSORS or --pools")]
    for note in filter(None, notes):
        say(f"{trace.name}: {note}")
    facts = facts_of_log(trace, size)
    if describe:
        facts["described"] = described(columns_of(trace))
    if as_json:
        print_json(orjson.dumps(origin_of(log) | facts))
    else:
        _print(facts)


def facts_of_log(trace: "Trace", size: int | None) -> dict[str, Any]:
    """Return the `--json` document of a log, on a machine of `size` processors.

    If `size` is None, it is the size in the log, or else the processors of the largest job.
    """
    import numpy as np

    from shadowtime.replayer.logs import columns_of, lacks_of, oddities_of, processors_of_jobs
    from shadowtime.shared.accounting import UNREADABLE

    columns = columns_of(trace)
    processors = size or trace.processors or max(int(processors_of_jobs(columns, "requested").max()), 0)
    submit, zero = columns["submit_time"], trace.unix_start_time
    span = int(submit[0]), int(submit[-1])
    return {
        "log": trace.name,
        "processors": processors,
        "pools": [pool.model_dump(exclude_none=True) for pool in trace.pools or ()],
        "jobs": len(submit),
        "unreadable": trace.left_out.get(UNREADABLE, (0, ""))[0],
        "submitted": span,
        "dates": _dates(zero, span),
        "load": _load(columns, processors),
        "different": {
            what: len(np.unique(columns[name][columns[name] >= 0]))
            for name, what in COUNTED.items()
            if name in columns and (columns[name] >= 0).any()
        },
        "lacks": [lack._asdict() for lack in lacks_of(columns, trace.stated_columns)],
        "odd": [oddity._asdict() for oddity in oddities_of(trace, processors)],
    }


def _load(columns: "Mapping[str, Integers]", processors: int) -> float | None:
    """Return the mean share of the machine that was in use, from the first start to the last end.

    None if no job ran, or the size of the machine or of all jobs is unknown. A job of unknown wait counts as started
    at its submission.
    """
    import numpy as np

    from shadowtime.replayer.logs import processors_of_jobs

    size = processors_of_jobs(columns, "allocated")
    ran = (columns["run_time"] > 0) & (size > 0)
    if not ran.any() or processors <= 0:
        return None
    run_time = columns["run_time"][ran]
    start = columns["submit_time"][ran] + np.maximum(columns["wait_time"][ran], 0)
    work = float((size[ran] * run_time.astype(float)).sum())
    return work / (processors * int((start + run_time).max() - start.min()))


def _dates(zero: int | None, span: tuple[int, int]) -> list[str] | None:
    """Return the dates of the first and the last submission; None without a start date or beyond the calendar."""
    from shadowtime.shared.accounting import MAX_UNIX

    if zero is None or zero + span[1] > MAX_UNIX:
        return None
    return [datetime.fromtimestamp(zero + seconds, UTC).isoformat() for seconds in span]


def _print(facts: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    from shadowtime.shared.formatting import counted

    console = Console(highlight=False, markup=False, emoji=False)
    dates = " to ".join(date[:10] for date in facts["dates"]) if facts["dates"] else "dates unknown"
    plurals = facts["different"].items()
    different = ", ".join(f"{count:,} {what if count != 1 else _LAST_S.sub('', what)}" for what, count in plurals)
    size = f" on {facts['processors']:,} processors" if facts["processors"] else ", size of the machine unknown"
    load = "unknown" if facts["load"] is None else f"{100 * facts['load']:.0f} %"
    unreadable = f", {counted(facts['unreadable'], 'more row')} cannot be read" if facts["unreadable"] else ""
    console.print(
        one_line(
            f"{facts['log']}: {counted(facts['jobs'], 'job')}{size}{unreadable}, {dates}, load {load}"
            f"{'; ' + different if different else ''}"
        )
    )
    for pool in facts["pools"]:
        has = ", ".join(f"{pool[unit]:,} {unit}" for unit in ("processors", "nodes", "gpus") if unit in pool)
        console.print(
            one_line(f"pool {pool['name']}: {has}" + (f", {pool['memory']:,} MiB" if "memory" in pool else ""))
        )

    if "described" in facts:
        console.print(_description(facts["described"]))
    lacks = Table("it does not state", "therefore", box=None, pad_edge=False, title="Lacks", title_justify="left")
    for lack in facts["lacks"]:
        lacks.add_row(lack["what"], lack["therefore"])
    odd = Table("what", "", "first example", box=None, pad_edge=False, title="Odd", title_justify="left")
    odd.columns[1].header, odd.columns[1].justify = "jobs", "right"
    for oddity in facts["odd"]:
        odd.add_row(oddity["what"], f"{oddity['times']:,}", one_line(oddity["example"]))
    for table, none in ((lacks, "It lacks nothing that Shadowtime uses."), (odd, "Nothing is odd about it.")):
        console.print()
        console.print(table if table.row_count else none)


def _description(figures: dict[str, float | None]) -> "Table":
    """Return the figures of `described` as a table, with a column for all jobs and one for each shape."""
    from rich.table import Table

    from shadowtime.replayer.logs import SHAPES

    table = Table(*("", "all jobs", *SHAPES), box=None, pad_edge=False, title="Description", title_justify="left")
    for column in table.columns[1:]:
        column.justify = "right"
    rows = (
        ("jobs", "jobs", "jobs_of_shape"),
        ("ran for no time", None, "not_run"),
        ("days", "days", None),
        ("mean wait, min", "mean_wait", None),
        ("mean wait of jobs that waited, min", "mean_wait_of_waiting", None),
        ("mean run time, min", "mean_run_time", None),
        ("mean run time of jobs that waited, min", "mean_run_time_of_waiting", None),
        ("mean requested time, min", "mean_requested_time", None),
        ("median requested time, min", "median_requested_time", None),
        ("mean processors", "mean_processors", None),
        ("median processors", "median_processors", None),
        ("mean overestimation", "mean_overestimation", "overestimation"),
        ("median overestimation", "median_overestimation", None),
    )
    for name, key, by_shape in rows:
        values = [figures.get(key or ""), *(figures.get(f"{by_shape}.{shape}") for shape in SHAPES)]
        scale, digits = (60, 1) if name.endswith("min") else (1, 0 if "jobs" in name or "no time" in name else 2)
        table.add_row(name, *("" if value is None else f"{value / scale:,.{digits}f}" for value in values))
    return table


app = application(check)
