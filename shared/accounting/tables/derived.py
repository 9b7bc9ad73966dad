"""Job numbers from ids of any kind, and instants that follow from others."""

from typing import Any

import numpy as np

from shadowtime.shared.accounting import (
    UNKNOWN,
    Column,
    count_of,
    is_missing,
    is_nan,
    number_of,
    tasks_of,
    whole_number,
)
from shadowtime.shared.kernels import Integers


def numbers_and_ids(column: Column) -> tuple[Integers, Column]:
    """Return the number of each job, `UNKNOWN` if its id is no number, and the ids that are not numbers.

    >>> numbers, ids = numbers_and_ids(Column(["17", "17_3", "dlctk69", 18.0]))
    >>> numbers.tolist(), [ids[row] for row in range(4)]
    ([17, 400000017, -1, 18], ['', '17_3', 'dlctk69', ''])
    """
    if column.is_plain:
        return column.numbers(int, lambda numbers: numbers)[0], Column([""] * len(column))
    return column.numbers(lambda cell: _job(cell)[0])[0], column.words(lambda cell: _job(cell)[1])


def _job(cell: Any) -> tuple[int, str]:
    """Return the number of a job, and its id if it is no number."""
    if is_missing(cell) or is_nan(cell):
        return UNKNOWN, ""
    if not isinstance(cell, str):
        number = count_of(cell)
        return (UNKNOWN, str(cell)) if number is None else (number, "")
    text = cell.strip()
    if (number := whole_number(text)) is not None:
        return number, ""
    array, _, task = text.partition("_")
    job, tasks = whole_number(array), tasks_of(task)
    return (UNKNOWN if job is None or tasks is None or len(tasks) != 1 else number_of(job, tasks[0])), text


def add_instants(numbers: dict[str, Integers]) -> None:
    """Add the instants that follow from others, in place."""

    def known(first: Integers, other: Integers) -> Integers:
        return np.where(first == UNKNOWN, other, first)

    def after(since: Integers, span: Integers) -> Integers:
        return np.where((since == UNKNOWN) | (span == UNKNOWN), UNKNOWN, since + span)

    if (handed_in := numbers.pop("handed_in", None)) is not None:
        numbers["eligible"] = numbers["submit"]
        numbers["submit"] = known(handed_in, numbers["submit"])
    if "eligible" in numbers:
        numbers["eligible"] = known(numbers["eligible"], numbers["submit"])
    waits = numbers.pop("wait", None)
    if waits is not None and "start" not in numbers:
        numbers["start"] = after(numbers.get("eligible", numbers["submit"]), waits)
    if "end" not in numbers:
        stopped = np.maximum(numbers["suspended"], 0) if "suspended" in numbers else np.int64(0)
        ended = after(numbers["start"], numbers["run_time"])
        numbers["end"] = np.where(ended == UNKNOWN, UNKNOWN, ended + stopped)
