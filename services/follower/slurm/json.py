"""Answers of slurmrestd, converted to the values that Slurm's commands print. So one parser handles both.

In 22.05 (v0.0.38) a number is a JSON number, or null for none, and a state is a word. From 23.11 (v0.0.40) on, a number
is an object that says whether it is set or infinite, and a state is a list of words.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shadowtime.services.follower.slurm.load import Load
from shadowtime.shared.accounting import STATES, TASKS, tasks_of, whole_number
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote

UNLIMITED = "UNLIMITED"

NO_VAL = {str(size - less) for size in (2**32, 2**64) for less in (1, 2)}
"""Numbers that Slurm writes for no value, or for an infinite one. Accounting has them unchanged from 23.11 on."""

FLAGS = (
    *("COMPLETING", "CONFIGURING", "RESIZING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD", "SPECIAL_EXIT", "STOPPED"),
    *("REVOKED", "RESV_DEL_HOLD", "SIGNALING", "STAGE_OUT"),
)
"""Flags that commands print instead of a state. The first one in this order wins."""

BASE = {"PENDING", "RUNNING", "SUSPENDED", *STATES} - set(FLAGS)


def plain(value: Any) -> Any:
    """Return a number of either version; None if it is not set. Other values are returned unchanged.

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


def squeue_rows(jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield each row that squeue prints, as texts by field name. A waiting array has a row for each task.

    Raises
    ------
    FollowError
        If the answer does not list all tasks of an array.
    """
    for job in jobs:
        values = _job(job)
        if values["ArrayTaskID"] or not (tasks := word(job.get("array_task_string"))):
            yield values | {"ArrayTaskID": values["ArrayTaskID"] or "N/A"}
            continue
        numbers = tasks_in(tasks)
        if numbers is None:
            raise FollowError(
                f"job {quote(values['JobID'])}: slurmrestd lists only some of its tasks: {quote(tasks)}; "
                "start slurmrestd with SLURM_BITSTR_LEN=0 in its environment"
            )

        yield from (values | {"ArrayTaskID": str(number)} for number in numbers)


def sinfo_rows(nodes: Iterable[Mapping[str, Any]], partitions: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows that sinfo prints, one for each node and partition, in the order of `NODE_FIELDS`."""
    tiers = {word(partition.get("name")): _tier(partition) for partition in partitions}
    rows: list[list[str]] = []
    for node in nodes:
        total, held = count_of(node.get("effective_cpus", node.get("cpus"))), count_of(node.get("alloc_cpus"))
        idle = count_of(node.get("idle_cpus", node.get("alloc_idle_cpus")))
        counts = f"{held}/{idle}/{max(total - held - idle, 0)}/{total}"
        state = "+".join([*words_of(node.get("state")), *words_of(node.get("state_flags"))])
        rest = (state, counts, digits(node.get("real_memory")), word(node.get("gres")))
        rows += (
            [word(node.get("name")), name, tiers.get(name, "0"), *rest] for name in words_of(node.get("partitions"))
        )

    return rows


def load_of(statistics: Mapping[str, Any], user: str) -> Load | None:
    """Return the clock of slurmctld and the load of a user on it; None if the answer has no time."""
    now = count_of(statistics.get("req_time"))
    by_user = statistics.get("rpcs_by_user")
    rows = [row for row in by_user if isinstance(row, Mapping)] if isinstance(by_user, list) else []
    spent = next((row for row in rows if row.get("user") == user), None)
    if not now:
        return None
    return Load(
        now,
        count_of(statistics.get("req_time_start")) or now,
        count_of(spent.get("count")) if spent else 0,
        count_of(spent.get("total_time")) / 1e6 if spent else None,
        count_of(statistics.get("dbd_agent_queue_size")),
    )


def _job(job: Mapping[str, Any]) -> dict[str, str]:
    limit, status = plain(job.get("time_limit", "")), job.get("exit_code")
    resources = word(job.get("tres_alloc_str")) or word(job.get("tres_req_str"))
    parts = dict(part.partition("=")[::2] for part in resources.split(","))
    if job.get("time_limit", "") is None:  # 22.05
        limit = UNLIMITED
    return {
        "JobID": digits(job.get("job_id")),
        "ArrayJobID": digits(job.get("array_job_id")),
        "ArrayTaskID": digits(job.get("array_task_id")),
        "State": state_of(job.get("job_state")),
        "SubmitTime": instant_of(job.get("submit_time")),
        "EligibleTime": instant_of(job.get("eligible_time")),
        "StartTime": instant_of(job.get("start_time")),
        "EndTime": instant_of(job.get("end_time")),
        "RestartCnt": digits(job.get("restart_cnt")),
        "TimeLimit": f"{limit}:00" if isinstance(limit, int) else str(limit or "NOT_SET"),
        "TimeUsed": _used(job),
        "NumCPUs": digits(job.get("cpus"), parts.get("cpu", "")),  # missing in 22.05 for a job that never started
        "NumNodes": digits(job.get("node_count")),
        "tres-alloc": resources,
        "OverSubscribe": "NO" if "none" in words_of(job.get("shared")) else "OK",
        "PriorityLong": digits(job.get("priority"), "0"),
        "exit_code": _exit_code(status) if isinstance(status, Mapping) else digits(status),
        "UserName": word(job.get("user_name")) or digits(job.get("user_id")),
        "Account": word(job.get("account")),
        "Partition": word(job.get("partition")),
        "QOS": word(job.get("qos")),
        "NodeList": word(job.get("nodes")),
        "Reason": word(job.get("state_description")) or word(job.get("state_reason")),
        "Name": first_line(job.get("name")),
    }


def _used(job: Mapping[str, Any]) -> str:
    """Return the run time of a job that is over, in seconds, by the formula of squeue."""
    start, end, suspended = (count_of(job.get(name)) for name in ("start_time", "end_time", "suspend_time"))
    used = 0 if not start else end - start if not suspended else end - suspended + count_of(job.get("pre_sus_time"))
    return "INVALID" if used < 0 else str(used)


def _exit_code(status: Mapping[str, Any]) -> str:
    """Return a wait status: 256 times the return code plus the signal."""
    number = plain(part_of(status, "signal").get("id"))
    return str(256 * count_of(status.get("return_code")) + (number if isinstance(number, int) else 0))


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


def _tier(partition: Mapping[str, Any]) -> str:
    return digits(partition.get("priority_tier", part_of(partition, "priority").get("tier")), "0")


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
    """Yield the rows that sacct prints, in the order of its `FIELDS`. Only the job name may contain the delimiter."""
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
            UNLIMITED if limit is None else digits(limit),
            asked.get("cpu") or digits(part_of(job, "required").get("CPUs")),
            allocated.get("cpu") or asked.get("cpu", "0"),
            allocated.get("node") or asked.get("node") or digits(job.get("allocation_nodes")),
            *(
                ",".join(f"{name}={_sized(name, count)}" for name, count in resources.items())
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
    for error in listing if isinstance(listing, list) else ():
        count = plain(error.get("count")) if isinstance(error, Mapping) else None
        if count is not None:
            name = word(error.get("name"))
            amounts[word(error.get("type")) + (f"/{name}" if name else "")] = str(count)

    return amounts


def _sized(name: str, count: str) -> str:
    return f"{count}M" if name == "mem" else count
