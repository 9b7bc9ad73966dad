"""What slurmrestd answers of accounting, as the rows that sacct prints.

It has all that sacct tells but who cancelled a job, which is of no use here. From 22.05 on it tells all lives of a job
that was requeued; before 23.11 nothing has to be said for that, from then on `show_duplicates`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shadowtime.replayer.accounting.instants import whole_number
from shadowtime.replayer.following.slurm_json import (
    UNLIMITED,
    digits,
    first_line,
    instant_of,
    part_of,
    plain,
    state_of,
    tasks_in,
    word,
)


def sacct_rows(jobs: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield what sacct prints of jobs, in the order of its `FIELDS`; only a name may have the delimiter in it."""
    for job in jobs:
        time, tres = part_of(job, "time"), part_of(job, "tres")
        asked, given = _resources(tres.get("requested")), _resources(tres.get("allocated"))
        limit = time.get("limit", "")
        instants = (time.get(name) for name in ("submission", "eligible", "start", "end"))
        values = [
            digits(job.get("job_id")),
            _with_task(job),
            state_of(part_of(job, "state").get("current")),
            *map(instant_of, instants),
            digits(time.get("elapsed")),
            digits(time.get("suspended")),
            UNLIMITED if limit is None else digits(limit),
            asked.get("cpu") or digits(part_of(job, "required").get("CPUs")),
            given.get("cpu") or asked.get("cpu", "0"),
            given.get("node") or asked.get("node") or digits(job.get("allocation_nodes")),
            *(",".join(f"{name}={_sized(name, count)}" for name, count in each.items()) for each in (asked, given)),
            *(word(job.get(name)) for name in ("nodes", "user", "account", "partition", "qos")),
        ]
        yield [*(value.replace("|", " ").replace("\n", " ") for value in values), first_line(job.get("name"))]


def end_of(job: Mapping[str, Any]) -> int:
    """Return when a job ended; 0 if it has not, or nobody knows."""
    return whole_number(instant_of(part_of(job, "time").get("end"))) or 0


def _with_task(job: Mapping[str, Any]) -> str:
    array = part_of(job, "array")
    number, task = digits(array.get("job_id")), digits(array.get("task_id"))
    if task:
        return f"{number}_{task}"
    tasks = word(array.get("task"))
    numbers = tasks_in(tasks) if tasks else None
    return digits(job.get("job_id")) if numbers is None else f"{number}_[{','.join(map(str, numbers))}]"


def _resources(told: Any) -> dict[str, str]:
    """Return how much there is of each trackable resource."""
    found: dict[str, str] = {}
    for each in told if isinstance(told, list) else ():
        count = plain(each.get("count")) if isinstance(each, Mapping) else None
        if count is not None:
            name = word(each.get("name"))
            found[word(each.get("type")) + (f"/{name}" if name else "")] = str(count)
    return found


def _sized(name: str, count: str) -> str:
    return f"{count}M" if name == "mem" else count
