"""Observations of job lives from accounting records."""

import logging
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import (
    FIELDS,
    TEXTS,
    TYPES,
    UNKNOWN,
    AccountingRows,
    Instants,
    Reading,
    gpus_got,
    in_order_of_time,
    joined_sizes,
    repeated,
    sacct,
    task_of,
    zone_of,
)
from shadowtime.shared.bounds import MAX_DURATION, MAX_TIME
from shadowtime.shared.cli import FewAMinute
from shadowtime.shared.cluster import OUTCOMES
from shadowtime.shared.errors import FollowError, TraceError

log = logging.getLogger("shadowtime.follow.accounting")
log.addFilter(FewAMinute())

FEW = 10
"""Number of unreadable rows that are left out without an error, even if no row can be read."""


def observations_of_rows(rows: Iterable[Sequence[str]], source: str) -> tuple[list[JobObservation], int]:
    """Return the observations in rows of sacct's `FIELDS`, and the number of rows that cannot be read.

    An unreadable row is left out and logged with the `source` of the rows, because a retry could not read it either.

    Raise `FollowError` if more than half of the rows, and more than `FEW`, cannot be read: then the format is unknown.
    """
    with tempfile.TemporaryDirectory(prefix="shadowtime-") as folder:
        file = Path(folder) / "rows"
        with file.open("w", encoding="utf-8", errors="surrogateescape", newline="\n") as out:
            out.writelines("|".join(row) + "\n" for row in (FIELDS, *rows))
        try:
            read = sacct.read(file, Reading())
        except TraceError as error:
            raise FollowError(str(error).replace(str(file), source)) from None
    refused = read.odd.count
    if refused > max(FEW, len(read)):
        raise FollowError(
            f"{source}: {refused:,} of {refused + len(read):,} rows cannot be read: {read.odd.quoted}; "
            "check the version of Slurm (docs/beside-your-slurm.md)"
        )
    if refused:
        log.warning("%s: left out unreadable rows: %d, such as %s", source, refused, read.odd.quoted)
    return observations_of(read) if len(read) else [], refused


def observations_of(rows: AccountingRows) -> list[JobObservation]:
    """Return an observation for each life in accounting rows. O(rows log rows).

    A row that repeats or continues another row yields no observation. Neither does a row without a job number or a
    submission time.
    """
    lives = in_order_of_time(rows, Instants(zone_of(None)))
    numbers, status, limit = rows.column("job_number"), rows.column("status"), rows.column("limit")
    size = rows.column("processors")
    again = repeated(numbers, lives)
    going_on = lives.end == UNKNOWN
    lives.end[going_on] = MAX_TIME  # `joined_sizes` needs an end to join the last size of a running job
    resized, joined = joined_sizes(numbers, lives, status, limit, size, ~again)
    sizes: dict[int, list[tuple[int, int]]] = {}
    for row, time, processors in resized:
        sizes.setdefault(row, []).append((time, processors))
    usable = ~(again | joined | (numbers == UNKNOWN) | (lives.submit == UNKNOWN))
    keys = [(*task_of(number), submit) for number, submit in zip(numbers.tolist(), lives.submit.tolist(), strict=True)]
    texts = (*TEXTS, *TYPES)
    words = [[list(rows.words(name).values)[code] for code in rows.words(name).codes.tolist()] for name in texts]
    amounts = {name: rows.column(name).tolist() for name in ("nodes", "memory", "gpus", "whole_nodes")}
    instants = {"eligible": lives.eligible, "start": lives.start, "end": lives.end, "run_time": lives.run_time}
    amounts |= {name: column.tolist() for name, column in instants.items()}
    amounts |= {"limit": limit.tolist(), "processors": size.tolist(), "status": status.tolist()}
    return [
        observation_of(
            LifeKey(*keys[row]),
            {name: column[row] for name, column in amounts.items()},
            dict(zip(texts, (column[row] for column in words), strict=True)),
            sizes.get(row, ()),
        )
        for row in np.flatnonzero(usable).tolist()
    ]


def observation_of(
    key: LifeKey, amounts: Mapping[str, int], words: Mapping[str, str], resized: Iterable[tuple[int, int]] = ()
) -> JobObservation:
    """Return the observation of a life in accounting.

    Parameters
    ----------
    amounts
        Numbers of the life, by name; `UNKNOWN` for missing numbers. The end of a life that goes on is `MAX_TIME`.
    words
        Names and texts of the life: fields of `JobObservation`, and `gpu_got` for `gpus_got`.
    resized
        Time and processors of each resize after the start.
    """
    start, end = amounts["start"], amounts["end"]
    over, started = end < MAX_TIME, start != UNKNOWN
    named: dict[str, Any] = dict(words)
    got = gpus_got(named.pop("gpu_got", ""))
    return JobObservation(
        key,
        "over" if over else "running" if started else "waiting",
        eligible=amounts["eligible"] if amounts["eligible"] > 0 else None,
        start=_known(start),
        end=end if over else None,
        outcome=OUTCOMES.get(amounts["status"], "completed"),
        run_time=_known(amounts["run_time"]) if over and started else None,
        limit=_known(amounts["limit"]),
        unlimited=amounts["limit"] == MAX_DURATION,
        processors=amounts["processors"],
        nodes=_known(amounts["nodes"]),
        memory=_known(amounts["memory"]),
        gpus=_known(amounts["gpus"]),
        got=got if started else None,
        whole_nodes=amounts["whole_nodes"] > 0,
        resized=tuple(resized),
        **named,
    )


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
