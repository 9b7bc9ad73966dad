"""Jobs of Flux as `flux jobs -a --json` prints them."""

from functools import partial
from pathlib import Path
from typing import Any

from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, instant_of, text_of, whole_of
from shadowtime.shared.accounting.systems.json_objects import json_keys, json_records
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.cluster import LIMIT
from shadowtime.shared.quoting import among, quote

NAME = "Flux"

RESULTS = {"COMPLETED": 1, "FAILED": 0, "CANCELED": 5, "TIMEOUT": LIMIT}
"""Status by the result of a job (RFC 21)."""

NUMBERED = {
    "result": {"1": "COMPLETED", "2": "FAILED", "4": "CANCELED", "8": "TIMEOUT"},
    "state": {"32": "CLEANUP", "64": "INACTIVE"},
}
"""Words by their numbers in the job list itself, as Flux's own modules for Python and REST return it."""


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is output of `flux jobs --json`."""
    return "t_submit" in json_keys(head)


def read(path: Path, _: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are Unix seconds. Jobs are numbered in order of appearance.

    A job ends when its cleanup begins (`t_cleanup`), or else when it becomes inactive. A duration of 0 is no limit.

    References
    ----------
    flux-jobs(1) of flux-core; docs/other-systems.md#flux.
    """
    jobs = AccountedJobs()
    jobs.take(json_records(path, "t_submit"), partial(_job, dict[str, int]()))
    return jobs.finished("it states no duration of a job")


def _job(numbers: dict[str, int], line: int, values: dict[str, Any]) -> JobRow:
    job, result, state = text_of(values, ["id"]), text_of(values, ["result", "status"]), text_of(values, ["state"])
    result, state = NUMBERED["result"].get(result, result), NUMBERED["state"].get(state, state)
    submit, start, cleanup, inactive = (
        instant_of(values, name) for name in ("t_submit", "t_run", "t_cleanup", "t_inactive")
    )
    over = state in ("INACTIVE", "CLEANUP", "")
    if not job or submit == UNKNOWN or (over and result not in RESULTS):
        unknown = f"unknown result {quote(result)}{among(result, RESULTS)}"
        raise ValueError("no id or t_submit" if not job or submit == UNKNOWN else unknown)
    nodes = whole_of(values, "nnodes", 0)
    return JobRow(
        line,
        numbers.setdefault(job, len(numbers) + 1),
        submit,
        start,
        (inactive if cleanup == UNKNOWN else cleanup) if over else UNKNOWN,
        whole_of(values, "ncores", 0) or whole_of(values, "ntasks", 0) or nodes,
        RESULTS.get(result, UNKNOWN),
        whole_of(values, "duration", 0) or MAX_DURATION,
        nodes=nodes or UNKNOWN,
        gpus=whole_of(values, "ngpus", 0) or UNKNOWN,
        user=text_of(values, ["username", "userid"]),
        account=text_of(values, ["bank", "project"]),
        job_name=text_of(values, ["name"]),
        partition=text_of(values, ["queue"]),
        node_list=text_of(values, ["nodelist"]),
        job_id=job,
    )
