"""Job numbers for the tasks of arrays and for requeued jobs."""

from typing import Any

from shadowtime.shared.accounting.instants import whole_number
from shadowtime.shared.bounds import MAX_INTEGER

LIFE = 10**8
"""Increase of a job's number each time it is requeued. Slurm's own numbers are smaller, except in a federation."""

TASKS = 2**22
"""A number of tasks that no Slurm array reaches. A requeued task's number increases by `TASKS` times `LIFE`."""

FEDERATED = 2**32
"""The smallest number that no job of a federation has."""

MAX_TASKS = 4_000_002
"""The smallest number of tasks that slurm.conf does not allow (`MaxArraySize`). Federated jobs use the numbers of the
tasks from this one on."""

FEDERATED_SPANS = 43
"""Multiples of `LIFE` that cover all job numbers of a federation. They have 32 bits: six are the cluster of origin."""

MAX_PARTS = (TASKS - MAX_TASKS) // FEDERATED_SPANS - 1
"""The last life, and the maximum number of tasks, for which a federated job has a number up to `MAX_INTEGER`."""


def number_of(job: int, task: int | None = None, life: int = 0) -> int:
    """Return the number of a Slurm job or array task in one of its lives, counted from 0.

    Jobs of a federation have numbers of `LIFE` or more. They get the numbers of array tasks that cannot exist, so that
    no two jobs share a number. Federated lives and tasks beyond `MAX_PARTS` get numbers above `MAX_INTEGER`.

    >>> number_of(4711), number_of(4711, life=1), number_of(85, task=4), number_of(85, task=4, life=1)
    (4711, 100004711, 500000085, 419430900000085)
    >>> number_of(34_217_728, life=1), number_of(2**27), number_of(2**27, life=1), number_of(2**27, task=4)
    (134217728, 400000334217728, 400004634217728, 400021834217728)
    """
    part, block = (life, 0) if task is None else (task + 1, life)
    if not is_federated(job):
        return job + LIFE * (part + TASKS * block)
    if part > MAX_PARTS:
        return MAX_INTEGER + 1 + job + FEDERATED * (part + TASKS * block)
    high, low = divmod(job, LIFE)
    return low + LIFE * (MAX_TASKS + high + FEDERATED_SPANS * part + TASKS * block)


def is_federated(job: Any) -> Any:
    """Return whether a job number needs the range of federated jobs. For an array of numbers, return an array."""
    return (job >= LIFE) & (job < FEDERATED)


def task_of(number: int) -> tuple[int, int]:
    """Return the job and the task of an array task, from its number in its first life.

    >>> task_of(number_of(85, task=4)), task_of(number_of(2**27 + 1, task=0))
    ((85, 4), (134217729, 0))
    >>> task_of(number_of(2**27 + 1, task=4_600))
    (134217729, 4600)
    """
    if number > MAX_INTEGER:
        part, job = divmod(number - MAX_INTEGER - 1, FEDERATED)
        return job, part - 1
    high, low = divmod(number, LIFE)
    if high < MAX_TASKS:
        return low, high - 1
    part, span = divmod(high - MAX_TASKS, FEDERATED_SPANS)
    return span * LIFE + low, part - 1


def job_of(number: int) -> tuple[int, int | None]:
    """Return the job of a number up to `MAX_INTEGER`, and its array task in any of its lives; None outside arrays.

    A later life of a job outside arrays has the number of an array task, and is returned as this task.

    >>> job_of(4711), job_of(number_of(85, task=4, life=1)), job_of(number_of(2**27 + 1, task=0, life=2))
    ((4711, None), (85, 4), (134217729, 0))
    """
    high, job = divmod(number, LIFE)
    part = high % TASKS
    if part >= MAX_TASKS:
        part, span = divmod(part - MAX_TASKS, FEDERATED_SPANS)
        job += span * LIFE
    return job, part - 1 if part else None


def tasks_of(text: str) -> list[int] | None:
    """Return the array tasks in the part of a JobID after `_`; None if it is not a list of tasks.

    >>> tasks_of("4"), tasks_of("[0-2,7%4]"), tasks_of("[0-20:10]"), tasks_of("soon")
    ([4], [0, 1, 2, 7], [0, 10, 20], None)
    """
    if text.isdecimal() and text.isascii() and len(text) < len(str(TASKS)):  # one task, by far the most often
        return [int(text)]
    values: list[int] = []
    for part in text.removeprefix("[").partition("%")[0].removesuffix("]").split(","):
        span, _, step = part.partition(":")
        first, dash, last = span.partition("-")
        numbers = [whole_number(text) for text in (first, last if dash else first, step or "1")]
        if None in numbers:
            return None
        begin, end, by = (number or 0 for number in numbers)
        if not (begin <= end < TASKS - 1 and by > 0):
            return None
        values += range(begin, end + 1, by)

    return values if len(values) < TASKS else None
