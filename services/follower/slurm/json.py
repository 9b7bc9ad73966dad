"""Answers of slurmrestd, converted to the values that Slurm's commands print. So one parser handles both.

In 22.05 (v0.0.38) a number is a JSON number, or null for none, and a state is a word. From 23.11 (v0.0.40) on, a number
is an object that says whether it is set or infinite, and a state is a list of words.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from shadowtime.services.follower.slurm.load import Load
from shadowtime.shared.accounting import answers
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote


def squeue_rows(jobs: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, str]]:
    """Yield each row that squeue prints, as texts by field name. A waiting array has a row for each task.

    Raise `FollowError` if the answer does not list all tasks of an array.
    """
    for job in jobs:
        values = _job(job)
        if values["ArrayTaskID"] or not (tasks := answers.word(job.get("array_task_string"))):
            yield values | {"ArrayTaskID": values["ArrayTaskID"] or "N/A"}
            continue
        numbers = answers.tasks_in(tasks)
        if numbers is None:
            raise FollowError(
                f"job {quote(values['JobID'])}: slurmrestd lists only some of its tasks: {quote(tasks)}; "
                "start slurmrestd with SLURM_BITSTR_LEN=0 in its environment"
            )

        yield from (values | {"ArrayTaskID": str(number)} for number in numbers)


def sinfo_rows(nodes: Iterable[Mapping[str, Any]], partitions: Iterable[Mapping[str, Any]]) -> list[list[str]]:
    """Return the rows that sinfo prints, one for each node and partition, in the order of `NODE_FIELDS`."""
    tiers = {answers.word(partition.get("name")): _tier(partition) for partition in partitions}
    rows: list[list[str]] = []
    for node in nodes:
        total, held = (
            answers.count_of(node.get("effective_cpus", node.get("cpus"))),
            answers.count_of(node.get("alloc_cpus")),
        )
        idle = answers.count_of(node.get("idle_cpus", node.get("alloc_idle_cpus")))
        counts = f"{held}/{idle}/{max(total - held - idle, 0)}/{total}"
        state = "+".join([*answers.words_of(node.get("state")), *answers.words_of(node.get("state_flags"))])
        rest = (
            state,
            counts,
            answers.digits(node.get("real_memory")),
            answers.digits(node.get("alloc_memory", node.get("real_memory"))),
            *(answers.word(node.get(name)) for name in ("gres", "gres_used")),
        )
        rows += (
            [answers.word(node.get("name")), name, tiers.get(name, "0"), *rest]
            for name in answers.words_of(node.get("partitions"))
        )

    return rows


def memory_of_daemons(nodes: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return the memory in MB that no job can get, by node (`specialized_memory`, which 22.05 does not have)."""
    return {answers.word(node.get("name")): answers.count_of(node.get("specialized_memory")) for node in nodes}


def load_of(statistics: Mapping[str, Any], user: str) -> Load | None:
    """Return the clock of slurmctld and the load of a user, by name, on it; None if the answer has no time."""
    now = answers.count_of(statistics.get("req_time"))
    by_user = statistics.get("rpcs_by_user")
    rows = [row for row in by_user if isinstance(row, Mapping)] if isinstance(by_user, list) else []
    spent = next((row for row in rows if row.get("user") == user), None)
    if not now:
        return None
    return Load(
        now,
        answers.count_of(statistics.get("req_time_start")) or now,
        answers.count_of(spent.get("count")) if spent else 0,
        answers.count_of(spent.get("total_time")) / 1e6 if spent else None,
        answers.count_of(statistics.get("dbd_agent_queue_size")),
    )


def _job(job: Mapping[str, Any]) -> dict[str, str]:
    limit, status = answers.plain(job.get("time_limit", "")), job.get("exit_code")
    resources = answers.word(job.get("tres_alloc_str")) or answers.word(job.get("tres_req_str"))
    parts = dict(part.partition("=")[::2] for part in resources.split(","))
    if job.get("time_limit", "") is None:  # 22.05
        limit = answers.UNLIMITED
    return {
        "JobID": answers.digits(job.get("job_id")),
        "ArrayJobID": answers.digits(job.get("array_job_id")),
        "ArrayTaskID": answers.digits(job.get("array_task_id")),
        "State": answers.state_of(job.get("job_state")),
        "SubmitTime": answers.instant_of(job.get("submit_time")),
        "EligibleTime": answers.instant_of(job.get("eligible_time")),
        "StartTime": answers.instant_of(job.get("start_time")),
        "EndTime": answers.instant_of(job.get("end_time")),
        "RestartCnt": answers.digits(job.get("restart_cnt")),
        "TimeLimit": f"{limit}:00" if isinstance(limit, int) else str(limit or "NOT_SET"),
        "TimeUsed": _used(job),
        "NumCPUs": answers.digits(
            job.get("cpus"), parts.get("cpu", "")
        ),  # missing in 22.05 for a job that never started
        "NumNodes": answers.digits(job.get("node_count")),
        "tres-alloc": resources,
        "OverSubscribe": "NO" if "none" in answers.words_of(job.get("shared")) else "OK",
        "PriorityLong": answers.digits(job.get("priority"), "0"),
        "exit_code": _exit_code(status) if isinstance(status, Mapping) else answers.digits(status),
        "UserName": answers.word(job.get("user_name")) or answers.digits(job.get("user_id")),
        "Account": answers.word(job.get("account")),
        "Partition": answers.word(job.get("partition")),
        "QOS": answers.word(job.get("qos")),
        "NodeList": answers.word(job.get("nodes")),
        "Reason": answers.word(job.get("state_description")) or answers.word(job.get("state_reason")),
        "Name": answers.first_line(job.get("name")),
    }


def _used(job: Mapping[str, Any]) -> str:
    """Return the run time of a job that is over, in seconds, by the formula of squeue."""
    start, end, suspended = (answers.count_of(job.get(name)) for name in ("start_time", "end_time", "suspend_time"))
    used = (
        0
        if not start
        else end - start
        if not suspended
        else end - suspended + answers.count_of(job.get("pre_sus_time"))
    )
    return "INVALID" if used < 0 else str(used)


def _exit_code(status: Mapping[str, Any]) -> str:
    """Return a wait status: 256 times the return code plus the signal."""
    number = answers.plain(answers.part_of(status, "signal").get("id"))
    return str(256 * answers.count_of(status.get("return_code")) + (number if isinstance(number, int) else 0))


def _tier(partition: Mapping[str, Any]) -> str:
    return answers.digits(partition.get("priority_tier", answers.part_of(partition, "priority").get("tier")), "0")
