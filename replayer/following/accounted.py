"""Lives of jobs as accounting has them."""

from typing import Any

import numpy as np

from shadowtime.replayer.accounting.instants import Instants, zone_of
from shadowtime.replayer.accounting.lives import in_order_of_time, joined_sizes, repeated
from shadowtime.replayer.accounting.numbers import LIFE, TASKS
from shadowtime.replayer.accounting.reading import TEXTS, UNKNOWN, Rows
from shadowtime.replayer.following.sight import Key, Sight
from shadowtime.replayer.source import OUTCOMES
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.message import MAX_DURATION


def sights_of(rows: Rows) -> list[Sight]:
    """Return what rows of accounting tell, a sight for each life; those that make no job are left out.

    O(rows log rows).
    """
    lives = in_order_of_time(rows, Instants(zone_of(None)))
    numbers, status, limit = rows.column("job_number"), rows.column("status"), rows.column("limit")
    size = rows.column("processors")
    again = repeated(numbers, lives)
    going_on = lives.end == UNKNOWN
    lives.end[going_on] = MAX_TIME  # so that the last size of a running job is joined to those before
    resized, joined = joined_sizes(numbers, lives, status, limit, size, ~again)
    sizes: dict[int, list[tuple[int, int]]] = {}
    for row, time, processors in resized:
        sizes.setdefault(row, []).append((time, processors))
    usable = ~(again | joined | (numbers == UNKNOWN) | (lives.submit == UNKNOWN))
    tasks = np.where(rows.column("life_step") == LIFE * TASKS, numbers // LIFE - 1, -1)
    jobs = np.where(tasks >= 0, numbers % LIFE, numbers)
    words = [[list(rows.words(name).values)[code] for code in rows.words(name).codes.tolist()] for name in TEXTS]
    columns = [
        *(jobs, tasks, lives.submit, lives.eligible, lives.start, lives.end, lives.run_time, limit, size, status),
        *(rows.column(name) for name in ("nodes", "memory", "gpus")),
    ]
    table = np.stack(columns, axis=1).tolist()
    return [
        _sight(table[row], dict(zip(TEXTS, (column[row] for column in words), strict=True)), sizes.get(row, []))
        for row in np.flatnonzero(usable).tolist()
    ]


def _sight(row: list[int], words: dict[str, Any], sizes: list[tuple[int, int]]) -> Sight:
    job, task, submit, eligible, start, end, run_time, limit, size, status, nodes, memory, gpus = row
    over, started = end < MAX_TIME, start != UNKNOWN
    return Sight(
        Key(job, task, submit),
        "over" if over else "running" if started else "waiting",
        eligible=eligible if eligible > 0 else None,
        start=_known(start),
        end=end if over else None,
        outcome=OUTCOMES.get(status, "completed"),
        run_time=run_time if over and started else None,
        limit=_known(limit),
        unlimited=limit == MAX_DURATION,
        processors=size,
        nodes=_known(nodes),
        memory=_known(memory),
        gpus=_known(gpus),
        resized=tuple(sizes),
        **words,
    )


def _known(value: int) -> int | None:
    return None if value == UNKNOWN else value
