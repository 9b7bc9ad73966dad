"""Conversion of the rows of an accounting file into a log, with one job for each life."""

import re

import numpy as np

from shadowtime.replayer.logs.machine_size import peak_of
from shadowtime.replayer.logs.swf import table_of
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import MAX_MACHINE
from shadowtime.shared.accounting import (
    CUT_AT_WINDOWS,
    DATED,
    HOUR,
    KINDS,
    NO_INSTANTS,
    OF_TYPE,
    TYPES,
    UNKNOWN,
    AccountingRows,
    Instants,
    Lives,
    MachineParts,
    Names,
    Reading,
    cut_at_windows,
    in_order_of_time,
    joined_sizes,
    own_numbers,
    repeated,
    zone_of,
)
from shadowtime.shared.bounds import MAX_AMOUNT, MAX_DURATION, MAX_INTEGER
from shadowtime.shared.errors import TraceError
from shadowtime.shared.kernels import Flags, Integers
from shadowtime.shared.quoting import quote

_WHOLE = re.compile(r"[0-9]{1,15}\.0\Z")

MOST_SHARE = 0.5
"""Maximum share of jobs that run longer than their limits, or have other impossible times. Beyond it, the unit of times
is in doubt."""

MOST_OVER = 0.1
"""Maximum share of at least `FEW` jobs that run longer than their limits. In logs of the archive it is below 0.02."""

LEAST_TELLING = 72
"""Jobs that run for more seconds show whether run times are in minutes."""

MOST_YEARS = 50
"""Nine tenths of a log must have been submitted within fewer years than this."""

YEAR = 366 * 86_400
"""Seconds that most jobs neither wait nor run, and that most limits do not exceed."""

FEW = 5
"""Minimum number of jobs for a check of shares."""

MANY = 20
"""Minimum number of jobs for which it is no accident that all were submitted at a full or half hour."""

GRACE = 120
"""Seconds that a job may run beyond its limit, but not beyond twice its limit, before the unit is in doubt."""


def trace_of(name: str, rows: AccountingRows, reading: Reading, names: Names, parts: MachineParts | None) -> Trace:
    """Return the log of accounting rows. O(rows log rows).

    A job waits from the time at which it is eligible. Each life becomes a separate job, with a number of its own
    (`own_numbers`). Each task of an array, and each part of a heterogeneous job, also becomes a separate job. Unusable
    rows are left out and counted by reason, with the first example. New names of users, accounts and so on are added to
    `names`. If `parts` is None, the machine has no pools.

    Raise `TraceError` if no row is left, most times are impossible, or one of several clusters must be chosen.
    """
    lives = in_order_of_time(rows, Instants(zone_of(reading.time_zone)))
    _refuse_impossible(name, rows, lives)
    pool = _pools(rows, parts, lives.started)
    numbers, ids, steps = _numbers(rows)
    others = _of_other_cluster(name, rows, reading.cluster)
    numbers = np.where(others, UNKNOWN, numbers)  # they repeat no job of this cluster
    status, limit = rows.column("status"), rows.column("limit")
    size, over = rows.column("processors"), lives.end != UNKNOWN
    again = repeated(numbers, lives)
    changes, joined = joined_sizes(numbers, lives, status, limit, size, over & ~again & ~others)
    waited = (lives.eligible != UNKNOWN) & (lives.eligible <= lives.end) if rows.has("eligible") else over
    reasons = {
        "of another cluster": others,
        "step of a job": steps,
        "listed twice": again,
        "without a number": numbers == UNKNOWN,
        "without a time of submission": lives.submit == UNKNOWN,
        "still waiting": ~lives.started & ~over,
        "still running": lives.started & ~over,
        "ended before it started": lives.started & (lives.end < lives.start),
        "cancelled before it was eligible": ~lives.started & over & ~waited,
        "larger than any machine": (size > MAX_MACHINE)
        | np.logical_or.reduce([rows.column(unit) > MAX_AMOUNT for unit in ("nodes", "memory", "gpus")]),
        "on a node and in a partition of no pool": pool == UNKNOWN if parts else np.zeros(len(rows), dtype=np.bool_),
    }
    kept = ~joined
    for reason, applies in reasons.items():
        if (invalid := np.flatnonzero(applies & kept)).size:
            rows.leave_out(reason, len(invalid), _example(rows, int(invalid[0])))
        kept &= ~applies

    since = np.where(lives.eligible > 0, np.maximum(lives.eligible, lives.submit), lives.submit)
    own, at_once = own_numbers(numbers, lives, since, kept, rows.column("life_step"))
    _add_note(rows, at_once, "jobs started while another job of the same number ran, and count as separate jobs")
    if rows.has("life_step"):  # of sacct
        _add_note(
            *(rows, cut_at_windows(numbers, lives, kept)),
            f"rows start when another row of their submission ends, and count as further lives: {CUT_AT_WINDOWS}",
        )
    early = kept & lives.started & (lives.start < since)
    since = np.where(early, lives.start, since)
    unique = np.zeros(len(rows), dtype=np.bool_)
    unique[np.unique(np.where(kept, own, UNKNOWN), return_index=True)[1]] = True
    if (taken := np.flatnonzero(kept & (~unique | (own > MAX_INTEGER)))).size:
        rows.leave_out("without a unique number", len(taken), _example(rows, int(taken[0])))
        kept[taken] = False
    if not kept.any():
        counts = ", ".join(f"{count:,} {reason}" for reason, (count, _) in rows.left_out.items())
        raise TraceError(f"{name}: it has no job that can be replayed" + (f"; left out: {counts}" if counts else ""))
    _add_note(
        *(rows, np.flatnonzero(early)),
        "jobs started before they were submitted or eligible, and count as jobs without a wait",
    )

    _note_rounded_submissions(rows, lives, kept)
    _note_rounded_numbers(rows, lives, kept)
    order = np.flatnonzero(kept)
    order = order[np.lexsort((own[order], since[order]))]
    first = int(min(lives.submit[order].min(), since[order].min()))
    zero = first if first >= DATED else 0
    table, more = _columns(rows, lives, since, own, limit, status, pool if parts else None, zero)
    for kind, field in KINDS.items():
        (more if field == "qos_number" else table)[field] = _numbered(kind, rows, order, names)

    gpu_texts = _types_of_gpus(rows, pool, parts, more) if parts else ()
    table["partition_number"] = np.where(pool == UNKNOWN, UNKNOWN, pool + 1)
    peak = peak_of({name: column[order] for name, column in table.items()})
    more = {name: column[order] for name, column in more.items() if (column[order] != UNKNOWN).any() or name == "pool"}
    return Trace(
        name,
        ({"UnixStartTime": str(zero)} if zero else {}) | ({} if parts else {"MaxProcs": str(peak)}),
        table_of({name: column[order] for name, column in table.items()}),
        tuple(rows.notes),
        more or {"left_time": np.full(len(order), UNKNOWN, dtype=np.int64)},
        None if parts is None else parts.pools,
        dict(rows.left_out),
        np.array([(own[row], time - zero, size) for row, time, size in changes if kept[row]], dtype=np.int64)
        .reshape(-1, 3)
        .T,
        None if parts else peak or None,
        {int(own[row]): ids[int(numbers[row])] for row in order.tolist() if int(numbers[row]) in ids} if ids else {},
        gpu_texts,
        frozenset({"handed_in"} if rows.has("eligible") else ()),
        _doubt(rows, lives, limit, kept),
    )


def _numbered(kind: str, rows: AccountingRows, order: Integers, names: Names) -> Integers:
    """Return the number of each row's user, group, …; `UNKNOWN` if no row in `order` has its name.

    New names get numbers in the order of the jobs, not of the file.
    """
    words = rows.words(kind)
    different, places = np.unique(words.codes[order], return_index=True)
    appearing = different[np.argsort(places)]
    texts = list(words.values)
    numbered = np.full(len(texts), UNKNOWN, dtype=np.int64)
    numbered[appearing] = names.numbers(kind, [texts[code] for code in appearing.tolist()])
    return numbered[words.codes]


def _numbers(rows: AccountingRows) -> tuple[Integers, dict[int, str], Flags]:
    """Return the number of each row's job, the ids of jobs by number, and which rows are steps of jobs.

    An id that is no number gets a number above all others, in order of appearance. `17.0` is a step if there is a job
    `17`, else a job.
    """
    numbers = rows.column("job_number")
    if not rows.has("job_id"):
        return numbers, {}, np.zeros(len(rows), dtype=np.bool_)
    ids = rows.words("job_id")
    texts, codes_of_rows, unnumbered = list(ids.values), ids.codes, numbers == UNKNOWN
    jobs = {str(number) for number in np.unique(numbers).tolist()} if unnumbered.any() else set()
    is_step = np.array([text.partition(".")[0] in jobs and "." in text for text in texts], dtype=np.bool_)
    steps: Flags = is_step[codes_of_rows] & unnumbered
    own = np.array([text != "" for text in texts], dtype=np.bool_)[codes_of_rows] & unnumbered & ~steps
    if own.any() and all(_WHOLE.match(texts[code]) for code in np.unique(codes_of_rows[own]).tolist()):
        numbers = numbers.copy()  # numbers that pandas has written with a fraction
        numbers[own] = [int(texts[code][:-2]) for code in codes_of_rows[own].tolist()]
        own[:] = False
    codes, places, inverse = np.unique(codes_of_rows[own], return_index=True, return_inverse=True)
    rank = np.empty(len(codes), dtype=np.int64)
    rank[np.argsort(places)] = np.arange(1, len(codes) + 1)
    numbers = numbers.copy()
    numbers[own] = max(int(numbers.max(initial=0)), 0) + rank[inverse]
    named = np.flatnonzero((codes_of_rows != ids.values.get("", UNKNOWN)) & ~steps)
    pairs = zip(numbers[named].tolist(), codes_of_rows[named].tolist(), strict=True)
    return numbers, {number: texts[code] for number, code in pairs}, steps


def _of_other_cluster(name: str, rows: AccountingRows, cluster: str | None) -> Flags:
    """Return which rows are of another cluster than the chosen one. Raise `TraceError` if one must be chosen."""
    clusters = rows.words("cluster")
    known = [text for text in clusters.values if text]
    shown = ", ".join(map(quote, known[:10])) or "no cluster"
    if cluster is None:
        if len(known) > 1:
            raise TraceError(
                f"{name}: it has jobs of {len(known)} clusters: {shown}; choose one with --cluster NAME (in a table, "
                "--columns cluster= takes them for one machine)"
            )
        return np.zeros(len(rows), dtype=np.bool_)
    if cluster not in known:
        raise TraceError(f"{name}: no cluster {quote(cluster)}; it names {shown}")
    others: Flags = clusters.codes != clusters.values[cluster]
    return others


def _add_note(rows: AccountingRows, places: Integers, what: str) -> None:
    """Add a note with the number of these rows and the first of them, if there are any."""
    if len(places):
        rows.notes.append(f"{len(places):,} {what}; first {_example(rows, int(places.min()))}")


def _note_rounded_submissions(rows: AccountingRows, lives: Lives, kept: Flags) -> None:
    """Add a note if all jobs were submitted at a full or half hour, such as midnight, but most started at others."""
    ran = kept & lives.started & (lives.submit >= DATED)
    rounded, started = (instants[ran] % (HOUR // 2) == 0 for instants in (lives.submit, lives.start))
    if ran.sum() >= MANY and rounded.all() and not started.mean() > MOST_SHARE:
        rows.notes.append(
            f"all {int(ran.sum()):,} jobs that ran were submitted at a full or half hour: these times may be rounded, "
            "and the waits wrong; name a column of submissions with a time of day"
        )


def _note_rounded_numbers(rows: AccountingRows, lives: Lives, kept: Flags) -> None:
    """Add a note if Unix times have lost their last digits: a spreadsheet writes 1.79533E+09, 32 bits hold 128 s."""
    ran = kept & lives.started & (lives.submit >= DATED)
    steps = {}
    for name in ("submit", "start", "end"):
        different = np.unique(getattr(lives, name)[ran])
        step = int(np.gcd.reduce(different)) if len(different) >= FEW else 0
        if step > 60 and step % 60:  # not the minutes or hours of a clock
            steps[name] = step
    if ran.sum() >= MANY and steps:
        rows.notes.append(
            f"all times of {', '.join(steps)} are multiples of {max(steps.values()):,} s: if they were rounded, as by "
            "a spreadsheet or in numbers of 32 bits, waits and run times are wrong; export all digits"
        )


def _refuse_impossible(name: str, rows: AccountingRows, lives: Lives) -> None:
    """Raise `TraceError` if most times are impossible, because of an unstated unit or a wrong time zone or column."""
    stated = "state the unit, such as --columns {}=COLUMN:min (or ns, us, ms, s, h, d)"
    submit = lives.submit[lives.submit != UNKNOWN]
    if "submit" in rows.open_units and len(submit):
        first, last = np.quantile(submit, (0.05, 0.95), method="nearest").tolist()
        if (years := (last - first) // (365 * 86_400)) >= MOST_YEARS:
            raise TraceError(
                f"{name}: its jobs were submitted over {years:,} years, if their times are in seconds; "
                f"{stated.format('submit')}, of all columns of times"
            )
    begun = lives.started & (lives.submit != UNKNOWN)
    early = begun & (lives.start < lives.submit - GRACE)
    if FEW <= begun.sum() < early.sum() / MOST_SHARE:
        raise TraceError(
            f"{name}: {int(early.sum()):,} of {int(begun.sum()):,} jobs started before they were submitted, first "
            f"{_example(rows, int(np.flatnonzero(early)[0]))}; if only some dates name a time zone, state that of the "
            "others with --time-zone; else name another column with --columns submit=COLUMN"
        )
    ran, held = rows.column("run_time"), lives.end - lives.start - np.maximum(lives.suspended, 0)
    over = lives.started & (lives.end != UNKNOWN)
    times = rows.open_units
    waits, runs = ("submit" if "start" in times else "wait"), ("end" if "end" in times else "run_time")
    for did, column, those, long in (
        ("waited", waits, begun, begun & (lives.start - lives.submit > YEAR)),
        ("ran", runs, over, over & (held > YEAR)),
    ):
        if {column, "submit"} <= times and FEW <= those.sum() < long.sum() / MOST_SHARE:
            raise TraceError(
                f"{name}: {int(long.sum()):,} of {int(those.sum()):,} jobs {did} for more than a year, first "
                f"{_example(rows, int(np.flatnonzero(long)[0]))}; name another column with --columns {column}=COLUMN, "
                f"or {stated.format(column)}, where s confirms seconds"
            )
    known, count = over & (ran >= 0), int(over.sum())
    telling = known & (np.maximum(ran, held) > LEAST_TELLING)
    differing = telling & ((10 * ran + 60 < held) | (ran > 10 * held + 60))
    if "run_time" in rows.open_units and FEW <= telling.sum() < differing.sum() / MOST_SHARE:
        raise TraceError(
            f"{name}: {int(differing.sum()):,} of {int(telling.sum()):,} jobs have a run time that is not the time "
            f"between their start and end, first {_example(rows, int(np.flatnonzero(differing)[0]))}; "
            f"{stated.format('run_time')}, or leave the column out with run_time="
        )
    at_once = int((over & (held == 0)).sum())
    if (
        "start" in rows.open_units
        and not rows.open_units.isdisjoint({"end", "run_time"})
        and FEW <= count < at_once / MOST_SHARE
    ):
        raise TraceError(
            f"{name}: {at_once:,} of {count:,} jobs end in the second of their start; name columns that have a time of "
            f"day, or {stated.format(min(rows.open_units & {'end', 'run_time'}))}, where s confirms seconds"
        )


def _doubt(rows: AccountingRows, lives: Lives, limit: Integers, kept: Flags) -> str:
    """Return why the unit of limits is in doubt; empty if it is not."""
    if rows.assumed_limit is None:
        return ""
    column, unit = rows.assumed_limit
    known = kept & lives.started & (lives.run_time > 0) & (limit > 0)
    over = known & (lives.run_time > limit + np.minimum(limit, GRACE))
    limited = kept & (limit > 0) & ~np.isin(limit, (MAX_DURATION, *NO_INSTANTS))
    if over.sum() > MOST_SHARE * known.sum() or FEW <= over.sum() > MOST_OVER * known.sum():
        shown = f"{int(over.sum()):,} of {int(known.sum()):,} jobs ran longer than their limits, which are"
    elif (limited & (limit > YEAR)).sum() > MOST_SHARE * limited.sum():
        shown = f"most of {int(limited.sum()):,} limits are longer than a year, if they are"
    else:
        return ""
    others = " (of run times with --columns run_time=COLUMN:ms)" if "run_time" in rows.open_units else ""
    return (
        f"{shown} read in {'seconds' if unit == 's' else unit} from column {quote(column)}; state the unit{others} "
        f"with --columns limit={column}:min (or s, h, d, ms, us, ns), where :s confirms seconds, and :h reads 2:30 as "
        "hours and minutes"
    )


def _pools(rows: AccountingRows, parts: MachineParts | None, started: Flags) -> Integers:
    """Return the pool of each row, or `UNKNOWN` for a row without a pool."""
    if parts is None:
        return np.full(len(rows), UNKNOWN, dtype=np.int64)
    nodes, partitions = rows.words("node_list"), rows.words("partition")
    if len(parts.pools) == 1 and not (parts.of_node or parts.of_partition):
        return np.zeros(len(rows), dtype=np.int64)
    node_texts, partition_texts = list(nodes.values), list(partitions.values)
    known: dict[tuple[int, int], int] = {}
    pools = np.empty(len(rows), dtype=np.int64)
    pairs = np.where(started, nodes.codes, UNKNOWN).tolist(), partitions.codes.tolist()
    for row, (node, partition) in enumerate(zip(*pairs, strict=True)):
        if (pool := known.get((node, partition))) is None:
            there = parts.pool_of(node_texts[node] if node != UNKNOWN else "", partition_texts[partition])
            pool = known[node, partition] = UNKNOWN if there is None else there
        pools[row] = pool

    return pools


def _columns(
    rows: AccountingRows,
    lives: Lives,
    since: Integers,
    own: Integers,
    limit: Integers,
    status: Integers,
    pool: Integers | None,
    zero: int,
) -> tuple[dict[str, Integers], dict[str, Integers]]:
    """Return the columns of the Standard Workload Format and the additional columns; -1 if unknown."""
    started = lives.started
    table = {
        "job_number": own,
        "submit_time": since - zero,
        "wait_time": np.where(started, lives.start - since, UNKNOWN),
        "run_time": np.where(started, lives.run_time, UNKNOWN),
        "allocated_processors": np.where(started, rows.column("processors"), UNKNOWN),
        "requested_processors": rows.column("processors"),
        "requested_time": limit,
        "requested_memory": rows.column("memory"),
        "status": status,
    }
    suspended = np.where(started, lives.end - lives.start - lives.run_time, UNKNOWN)
    more = {
        "handed_in": np.where(lives.submit < since, lives.submit - zero, UNKNOWN),
        "left_time": np.where(started, UNKNOWN, lives.end - zero),
        "suspended": np.where(suspended > 0, suspended, UNKNOWN),
        "nodes": rows.column("nodes"),
        "memory": rows.column("memory"),
        "gpus": rows.column("gpus"),
        "whole_nodes": rows.column("whole_nodes"),
    }
    return table, more if pool is None else more | {"pool": pool}


def _types_of_gpus(
    rows: AccountingRows, pool: Integers, parts: MachineParts, more: dict[str, Integers]
) -> tuple[str, ...]:
    """Add the columns of `TYPES` for jobs in pools with several types, and return their texts."""
    typed = np.array([*(bool(place.types) for place in parts.pools), False])[pool]  # UNKNOWN selects the last
    known: dict[str, int] = {}
    for name in TYPES if typed.any() else ():
        words = rows.words(name)
        codes = [known.setdefault(text, len(known)) if text else UNKNOWN for text in words.values]
        more[name] = np.where(typed, np.array(codes, dtype=np.int64)[words.codes], UNKNOWN)
    if "gpu_got" in more:  # for a job on one node, the node gives a type that the file lacks
        nodes, alone = rows.words("node_list"), (more["gpu_got"] == UNKNOWN) & (more["nodes"] == 1) & (more["gpus"] > 0)
        kinds = np.array([parts.type_of_node.get(node, "") for node in nodes.values])
        for row in np.flatnonzero(typed & alone & (kinds != "")[nodes.codes]).tolist():
            text = f"{OF_TYPE}{kinds[nodes.codes[row]]}={more['gpus'][row]}"
            more["gpu_got"][row] = known.setdefault(text, len(known))
    return tuple(known)


def _example(rows: AccountingRows, row: int) -> str:
    """Return the id or the number of a row's job, if it has one, and the line."""
    ids = rows.words("job_id")
    number = list(ids.values)[ids.codes[row]] or int(rows.column("job_number")[row])
    return f"line {rows.lines[row]}" if number == UNKNOWN else f"job {number}, line {rows.lines[row]}"
