"""Job numbers from ids of any kind, and instants that follow from others."""

from collections.abc import Sequence
from typing import Any

from shadowtime.shared.accounting import (
    UNKNOWN,
    count_of,
    every,
    is_missing,
    is_nan,
    number_of,
    tasks_of,
    whole_number,
)


def numbers_and_ids(cells: Sequence[Any]) -> tuple[list[int], list[str] | None]:
    """Return the number of each job, `UNKNOWN` if its id is no number, and the ids that are not numbers.

    >>> numbers_and_ids(["17", "17_3", "dlctk69", 18.0])
    ([17, 400000017, -1, 18], ['', '17_3', 'dlctk69', ''])
    """
    numbers = every(cells, _job, list)
    if all(isinstance(number, int) for number in numbers):
        return numbers, None
    pairs = [(number, "") if isinstance(number, int) else number for number in numbers]
    return [number for number, _ in pairs], [name for _, name in pairs]


def _job(cell: Any) -> Any:
    """Return the number of a job, or a pair of its number and its id."""
    if is_missing(cell) or is_nan(cell):
        return UNKNOWN
    if not isinstance(cell, str):
        number = count_of(cell)
        return (UNKNOWN, str(cell)) if number is None else number
    text = cell.strip()
    if (number := whole_number(text)) is not None:
        return number
    array, _, task = text.partition("_")
    job, tasks = whole_number(array), tasks_of(task)
    return (UNKNOWN if job is None or tasks is None or len(tasks) != 1 else number_of(job, tasks[0])), text


def add_instants(numbers: dict[str, list[int]]) -> None:
    """Add the instants that follow from others, in place."""
    count = len(numbers["submit"])
    if handed_in := numbers.pop("handed_in", None):
        numbers["eligible"] = numbers["submit"]
        pairs = zip(handed_in, numbers["submit"], strict=True)
        numbers["submit"] = [since if first == UNKNOWN else first for first, since in pairs]

    if eligible := numbers.get("eligible"):
        pairs = zip(eligible, numbers["submit"], strict=True)
        numbers["eligible"] = [first if since == UNKNOWN else since for since, first in pairs]
    if (waits := numbers.pop("wait", None)) and "start" not in numbers:
        since = numbers.get("eligible", numbers["submit"])
        numbers["start"] = [UNKNOWN if UNKNOWN in part else sum(part) for part in zip(since, waits, strict=True)]
    if "end" not in numbers:
        stopped = [max(number, 0) for number in numbers.get("suspended", [0] * count)]
        parts = zip(numbers["start"], numbers["run_time"], stopped, strict=True)
        numbers["end"] = [UNKNOWN if UNKNOWN in part else sum(part) for part in parts]
