"""Slurm's accounting as JSON: `sacct --json`, and the answers of slurmrestd, converted to the rows that sacct prints.

In 22.05 (v0.0.38) a number is a JSON number, or null for none, and a state is a word. From 23.11 (v0.0.40) on, a number
is an object that says whether it is set or infinite, and a state is a list of words.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from shadowtime.shared.accounting import TASKS, tasks_of, whole_contents, whole_number
from shadowtime.shared.accounting.slurm.sacct_values import STATES
from shadowtime.shared.bounds import MAX_JSON
from shadowtime.shared.errors import TraceError

UNLIMITED, NO_LIMIT_OF_ITS_OWN = "UNLIMITED", "Partition_Limit"

NO_VAL = {str(size - less) for size in (2**32, 2**64) for less in (1, 2)}
"""Numbers that Slurm writes for no value, or for an infinite one. From 23.11 on, answers of accounting have them."""

FLAGS = (
    *("COMPLETING", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED"),
    *("REVOKED", "RESV_DEL_HOLD", "SIGNALING", "STAGE_OUT"),
)
"""Flags that commands print instead of a state. The first one in this order wins."""

_BETWEEN = re.compile(rb"(?<=\})[ \t\r]*\n\s*(?=\{)")
"""The line end between two objects that no comma separates: the outputs of two calls."""

MESSAGES = re.compile(rb"\A(?:\s*sacct: [^\n]*\n)+")
"""Messages of sacct on lines before its output."""

BASE = {"PENDING", "RUNNING", "SUSPENDED", *STATES} - set(FLAGS)


def plain(value: Any) -> Any:
    """Return a number of either version; `UNLIMITED` if it is infinite, None if it is not set; other values unchanged.

    >>> plain({"set": True, "infinite": False, "number": 5}), plain({"set": False, "infinite": True, "number": 0})
    (5, 'UNLIMITED')
    >>> plain({"set": False, "infinite": False, "number": 0}), plain(7)
    (None, 7)
    """
    if isinstance(value, Mapping) and "number" in value:
        return UNLIMITED if value.get("infinite") is True else value["number"] if value.get("set") is True else None
    return value


def digits(value: Any, missing: str = "") -> str:
    """Return the text that a command prints for a number, or `missing` if it is not set.

    A value that is no number is returned as text. Its parser then refuses it.
    """
    text = plain(value)
    return missing if text is None else str(text)


def word(value: Any) -> str:
    """Return the text that a command prints for a string. Bytes that are invalid UTF-8 are kept as surrogates."""
    text = "" if value is None else str(value)
    if text.isascii():
        return text
    try:
        return text.encode(errors="surrogateescape").decode(errors="surrogateescape")
    except UnicodeEncodeError:  # half a character, escaped
        return text.encode(errors="replace").decode()


def state_of(value: Any) -> str:
    """Return the one word that commands print for a state.

    >>> state_of("PENDING"), state_of(["COMPLETED", "COMPLETING"]), state_of(["RUNNING", "POWER_UP_NODE"])
    ('PENDING', 'COMPLETING', 'RUNNING')
    """
    words = words_of(value)
    words_found = [*(flag for flag in FLAGS if flag in words), *(word for word in words if word in BASE), *words]
    return words_found[0] if words_found else ""


def tasks_in(text: str) -> list[int] | None:
    """Return the tasks of an array, from a list or a bit mask. Return None if the text is neither.

    >>> tasks_in("7-28:3"), tasks_in("0x2FC%2"), tasks_in("1,3,...")
    ([7, 10, 13, 16, 19, 22, 25, 28], [2, 3, 4, 5, 6, 7, 9], None)
    """
    if not text.startswith("0x"):
        return tasks_of(text)
    try:
        bits = int(text.partition("%")[0][: TASKS // 4], 16)
    except ValueError:
        return None
    return [at for at, bit in enumerate(reversed(f"{bits:b}")) if bit == "1"]


def instant_of(value: Any) -> str:
    """Return an instant as commands print it; `N/A` if there is none."""
    text = digits(value, "0")
    return "N/A" if text == "0" or text in NO_VAL else text


def first_line(value: Any) -> str:
    """Return the first line of a text. Only this line of a job name counts."""
    return next(iter(word(value).splitlines()), "")


def count_of(value: Any) -> int:
    """Return a number of either version; 0 if it is not set, or is no number."""
    return whole_number(digits(value)) or 0


def part_of(value: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return an object within another; an empty one if there is none."""
    part = value.get(name)
    return part if isinstance(part, Mapping) else {}


def words_of(value: Any) -> list[str]:
    """Return the words of a list, or a single word as a list."""
    return [word(item) for item in (value if isinstance(value, list) else [value] if value else [])]


# Accounting answers of slurmrestd, converted to the rows that sacct prints.
#
# The answers have all fields of sacct, except the user who cancelled a job. This project does not use that field. From
# 22.05 on, the answers have all lives of a requeued job. From 23.11 on, this needs the parameter `show_duplicates`.


def sacct_rows(jobs: Iterable[Mapping[str, Any]]) -> Iterator[list[str]]:
    """Yield for each job the row that sacct prints for `FIELDS`. Only the job name may contain the delimiter."""
    for job in jobs:
        time, tres = part_of(job, "time"), part_of(job, "tres")
        asked, allocated = _resources(tres.get("requested")), _resources(tres.get("allocated"))
        limit = time.get("limit", "")
        instants = (time.get(name) for name in ("submission", "eligible", "start", "end"))
        values = [
            digits(job.get("job_id")),
            _with_task(job),
            state_of(part_of(job, "state").get("current")),
            *map(instant_of, instants),
            digits(time.get("elapsed")),
            digits(time.get("suspended")),
            UNLIMITED if limit is None else digits(limit, NO_LIMIT_OF_ITS_OWN),
            asked.get("cpu") or digits(part_of(job, "required").get("CPUs")),
            allocated.get("cpu") or asked.get("cpu", "0"),
            allocated.get("node") or asked.get("node") or digits(job.get("allocation_nodes")),
            *(
                ",".join(f"{name}={count}{'M' if name == 'mem' else ''}" for name, count in resources.items())
                for resources in (asked, allocated)
            ),
            *(word(job.get(name)) for name in ("nodes", "user", "account", "partition", "qos")),
        ]
        yield [*(value.replace("|", " ").replace("\n", " ") for value in values), first_line(job.get("name"))]


def end_of(job: Mapping[str, Any]) -> int:
    """Return the end of a job as a Unix second; 0 if it has not ended, or its end is unknown."""
    return whole_number(instant_of(part_of(job, "time").get("end"))) or 0


def _with_task(job: Mapping[str, Any]) -> str:
    array = part_of(job, "array")
    number, task = digits(array.get("job_id")), digits(array.get("task_id"))
    if task:
        return f"{number}_{task}"
    tasks = word(array.get("task"))
    numbers = tasks_in(tasks) if tasks else None
    return digits(job.get("job_id")) if numbers is None else f"{number}_[{','.join(map(str, numbers))}]"


def _resources(listing: Any) -> dict[str, str]:
    """Return the amount of each trackable resource (TRES)."""
    amounts: dict[str, str] = {}
    for resource in listing if isinstance(listing, list) else ():
        count = plain(resource.get("count")) if isinstance(resource, Mapping) else None
        if count is not None:
            name = word(resource.get("name"))
            amounts[word(resource.get("type")) + (f"/{name}" if name else "")] = str(count)

    return amounts


def jobs_in(path: Path) -> list[dict[str, Any]]:
    """Return the jobs in the output of one or several calls of `sacct --json`, also after `jq '.jobs[]'` or `jq .jobs`.

    Raise `TraceError` if the file is not such output, or is too large.
    """
    jobs: list[dict[str, Any]] = []
    for output in _BETWEEN.split(MESSAGES.sub(b"", whole_contents(path, MAX_JSON), count=1)):
        try:
            answer = orjson.loads(output)
        except orjson.JSONDecodeError as error:
            raise TraceError(f"{path}: not the whole output of sacct --json: {error}") from None
        listed = answer
        if isinstance(answer, dict):
            listed = answer.get("jobs", [answer] if "job_id" in answer else None)
        if not isinstance(listed, list):
            raise TraceError(f"{path}: expected the output of sacct --json, with a list of jobs")
        jobs += (job for job in listed if isinstance(job, dict))
    return jobs
