"""Slurm's documents of completed jobs (`JobCompType=jobcomp/elasticsearch` or `jobcomp/kafka`), in JSON."""

from functools import partial
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting import GOING_ON, STATES, amount_of, resources_of, unknown_state
from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.lives import NOWHERE
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.filetxt import state_of_life
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, date_of, text_of, whole_of
from shadowtime.shared.accounting.systems.json_objects import json_keys, json_records
from shadowtime.shared.bounds import MAX_DURATION

NAME = "Slurm jobcomp/elasticsearch"


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning has Slurm's documents of completed jobs."""
    return {"jobid", "@end"} <= json_keys(head)


def read(path: Path, _: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are dates in UTC, the limit is in seconds.

    The documents may be on separate lines, in an array, or in the answer to a search.

    References
    ----------
    jobcomp_elasticsearch.c of Slurm 17.11 to 23.11; docs/other-systems.md#slurm-without-a-database.
    """
    jobs = AccountedJobs()
    jobs.take(json_records(path, "jobid", "_source"), partial(_job, Instants(zone_of(None))))
    return jobs.finished("it states no run time limit (sbatch --time)")


def _job(instants: Instants, line: int, values: dict[str, Any]) -> JobRow | str:
    """Return the job of a document, or the reason why it is none."""
    if values.get("state") is None and not values.get("@end"):
        return "start of a job, which has another document at its end"
    state = text_of(values, ["state"]).split(" ")[0]
    if state not in STATES.keys() | GOING_ON:
        raise ValueError(unknown_state("state", state))
    submit, eligible, start, end = (
        date_of(values, name, instants) for name in ("@submit", "@eligible", "@start", "@end")
    )
    state = state_of_life(state, start, end)
    never = text_of(values, ["nodes"]).lower() in ("", NOWHERE) and start == end
    task = values.get("array_task_id")
    job = whole_of(values, "jobid" if task is None else "array_job_id")
    held, asked = (text_of(values, [name]) for name in ("tres_alloc", "tres_req"))
    memory, gpus = resources_of(held or asked)
    return JobRow(
        line,
        number_of(job, None if task is None else whole_of(values, "array_task_id")),
        submit,
        UNKNOWN if never else start,
        UNKNOWN if state in GOING_ON else end,
        whole_of(values, "total_cpus", 0) or max(amount_of("cpu")(asked), 0),
        STATES.get(state, UNKNOWN),
        min(whole_of(values, "time_limit", MAX_DURATION), MAX_DURATION),
        eligible=eligible,
        nodes=max(amount_of("node")(asked), whole_of(values, "total_nodes", 0)) or UNKNOWN,
        memory=memory,
        gpus=gpus,
        user=text_of(values, ["username"]),
        account=text_of(values, ["account"]),
        job_name=text_of(values, ["job_name"]),
        partition=text_of(values, ["partition"]),
        qos=text_of(values, ["qos"]),
        node_list=text_of(values, ["nodes"]),
        cluster=text_of(values, ["cluster"]),
    )
