"""Job numbers for the tasks of arrays and for requeued jobs."""

from shadowtime.shared.accounting.instants import whole_number

LIFE = 10**8
"""Increase of a job's number each time it is requeued. Slurm's own numbers are smaller."""

TASKS = 2**22
"""A number of tasks that no Slurm array reaches. A requeued task's number increases by `TASKS` times `LIFE`."""


def number_of(job: int, task: int | None = None, life: int = 0) -> int:
    """Return the number of a Slurm job or array task in one of its lives, counted from 0.

    >>> number_of(4711), number_of(4711, life=1), number_of(85, task=4), number_of(85, task=4, life=1)
    (4711, 100004711, 500000085, 419430900000085)
    """
    return job + LIFE * (life if task is None else task + 1 + TASKS * life)


def tasks_of(text: str) -> list[int] | None:
    """Return the array tasks in the part of a JobID after `_`; None if it is not a list of tasks.

    >>> tasks_of("4"), tasks_of("[0-2,7%4]"), tasks_of("[0-20:10]"), tasks_of("soon")
    ([4], [0, 1, 2, 7], [0, 10, 20], None)
    """
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
