"""Slurm's text file of completed jobs (`JobCompType=jobcomp/filetxt`): a line of `key=value` for each job."""

import re
from functools import partial
from pathlib import Path

from shadowtime.shared.accounting import GOING_ON, STATES, amount_of, limit_of, resources_of, unknown_state
from shadowtime.shared.accounting.instants import Instants, zone_of
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.lives import NOWHERE
from shadowtime.shared.accounting.reading import UNKNOWN, AccountingRows, Reading
from shadowtime.shared.accounting.systems.job_rows import AccountedJobs, JobRow, date_of, text_of, whole_of
from shadowtime.shared.accounting.text_file import first_lines, numbered_lines
from shadowtime.shared.quoting import quote

NAME = "Slurm jobcomp/filetxt"

_RECORD = re.compile(
    r"JobId=(?P<JobId>\d+) UserId=(?P<UserId>\S*) (?:GroupId=\S* )?Name=(?P<Name>.*) JobState=(?P<JobState>\S+) "
    r"Partition=(?P<Partition>\S*) TimeLimit=(?P<TimeLimit>\S+) StartTime=(?P<StartTime>\S+) EndTime=(?P<EndTime>\S+) "
    r"NodeList=(?P<NodeList>\S*) NodeCnt=(?P<NodeCnt>\d+)(?: ProcCnt=(?P<ProcCnt>\d+))?(?P<rest>.*)"
)
"""A record: its keys have a fixed order, and only the name and the working folder may contain spaces."""

_PAIR = re.compile(
    r" (SubmitTime|EligibleTime|Account|QOS|Cluster|Gres|Tres|ArrayJobId|ArrayTaskId|DerivedExitCode|ExitCode)=(\S*)"
)
_BEGINS = re.compile(rb"JobId=\d+ UserId=")
_CLUSTER = re.compile(r"[A-Za-z0-9_.-]{0,40}")
"""The name of a cluster (slurm.conf, ClusterName). Any other text is damage, not a second cluster."""

_GPUS = re.compile(r"(?:gres/)?gpu(?::[^:=,]*)?[:=](\d{1,6})")


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is Slurm's text file of completed jobs."""
    return any(_BEGINS.match(line) for line in first_lines(head))


def read(path: Path, reading: Reading) -> AccountingRows:
    """Return the jobs in the file. Times are local dates, the limit is in minutes.

    References
    ----------
    jobcomp_filetxt.c of Slurm 17.11 to 23.11; docs/other-systems.md#slurm-without-a-database.
    """
    jobs, instants = AccountedJobs(), Instants(zone_of(reading.time_zone))
    jobs.take(numbered_lines(path), partial(_job, instants))
    if instants.assumed:
        jobs.rows.note_assumed_utc()
    return jobs.finished("it states no run time limit (sbatch --time)")


def state_of_life(state: str, start: int, end: int) -> str:
    """Return the state in which a life ended. Slurm writes that a job is pending if a requeue ended its run."""
    return "REQUEUED" if state == "PENDING" and UNKNOWN not in (start, end) else state


def _job(instants: Instants, line: int, text: str) -> JobRow:
    match = _RECORD.match(text)
    if match is None:
        raise ValueError("not a record of jobcomp/filetxt")
    values: dict[str, object] = match.groupdict()
    values |= dict(_PAIR.findall(str(values["rest"])))
    state, limit = str(values["JobState"]), limit_of(str(values["TimeLimit"]))
    if state not in STATES.keys() | GOING_ON:
        raise ValueError(unknown_state("JobState", state))
    if limit is None:
        raise ValueError(f"TimeLimit {quote(str(values['TimeLimit']))} is neither a duration nor UNLIMITED")
    if not _CLUSTER.fullmatch(text_of(values, ["Cluster"])):
        raise ValueError(f"Cluster {quote(text_of(values, ['Cluster']))} is no name of a cluster")
    submit, eligible, start, end = (
        date_of(values, name, instants) for name in ("SubmitTime", "EligibleTime", "StartTime", "EndTime")
    )
    state = state_of_life(state, start, end)
    never = text_of(values, ["NodeList"]).lower() in ("", NOWHERE) and start == end
    task = values.get("ArrayTaskId")
    job = whole_of(values, "JobId") if task is None else whole_of(values, "ArrayJobId")
    requested = text_of(values, ["Tres"])
    nodes = whole_of(values, "NodeCnt") or max(amount_of("node")(requested), 0)
    memory, gpus = resources_of(requested)
    if not values.get("Tres"):  # before 21.08
        gpus = sum(map(int, _GPUS.findall(text_of(values, ["Gres"])))) * max(nodes, 1)
    return JobRow(
        line,
        number_of(job, None if task is None else whole_of(values, "ArrayTaskId")),
        submit,
        UNKNOWN if never else start,
        UNKNOWN if state in GOING_ON else end,
        whole_of(values, "ProcCnt", nodes) or max(amount_of("cpu")(requested), 0),  # 0 if it never started
        STATES.get(state, UNKNOWN),
        limit,
        eligible=eligible,
        nodes=nodes or UNKNOWN,
        memory=memory,
        gpus=gpus or UNKNOWN,
        user=str(values["UserId"]).partition("(")[0],
        account=text_of(values, ["Account"]),
        job_name=str(values["Name"]),
        partition=str(values["Partition"]),
        qos=text_of(values, ["QOS"]),
        node_list=text_of(values, ["NodeList"]),
        cluster=text_of(values, ["Cluster"]),
    )
