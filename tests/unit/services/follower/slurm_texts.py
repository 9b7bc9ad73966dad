"""Lines as `squeue`, `sinfo` and `sacct` print them, and how they are read."""

from shadowtime.services.follower.cluster.observation import JobObservation
from shadowtime.services.follower.slurm.squeue import FIELDS, observations_of, rows_of
from shadowtime.shared.accounting import sacct

WAITS = {
    "JobID": "286",
    "ArrayJobID": "286",
    "ArrayTaskID": "N/A",
    "State": "PENDING",
    "SubmitTime": "1795541140",
    "EligibleTime": "1795541140",
    "StartTime": "1795541220",
    "EndTime": "1795541580",
    "RestartCnt": "0",
    "TimeLimit": "6:00",
    "TimeUsed": "0:00",
    "NumCPUs": "8",
    "NumNodes": "2",
    "tres-alloc": "cpu=8,mem=7200M,node=1,billing=8,gres/gpu=2",
    "OverSubscribe": "OK",
    "PriorityLong": "10009",
    "exit_code": "0",
    "UserName": "user2",
    "Account": "projecta",
    "Partition": "batch",
    "QOS": "normal",
    "NodeList": "",
    "Reason": "Priority",
    "Name": "plain2",
}


RUNS = WAITS | {"State": "RUNNING", "NodeList": "n[01-02]", "Reason": "None", "TimeUsed": "0:30"}


OVER = RUNS | {"State": "COMPLETED", "TimeUsed": "6:00"}


END = "4f1c|"


def printed(*jobs: dict[str, str]) -> str:
    return "".join("".join(job[name] + END for name in FIELDS) + "\n" for job in jobs)


def read(job: dict[str, str], **changes: str) -> JobObservation:
    (observation,) = observations_of(rows_of(printed(job | changes), END), {"batch": 1, "low": 0})
    return observation


NODES = (
    "n01|debug|20|mixed|2/2/0/4|4000|1800|(null)|\n"
    "n01|batch*|10|mixed|2/2/0/4|4000|1800|(null)|\n"
    "n02|batch*|10|mixed+drain|1/0/3/4|4000|900|gpu:a100:2(S:0-1)|\n"
    "n03|batch*|10|idle*|0/0/4/4|4000|0|(null)|\n"
    "n04|batch*|10|idle~|0/4/0/4|4000|0|(null)|\n"
)


TRES = "cpu=4,mem=7200M,node=2,billing=8,gres/gpu=2"


def row(job: str, state: str, submit: str, eligible: str, start: str, end: str, seconds: str) -> list[str]:
    raw = job.partition("_")[0]
    values = {"JobIDRaw": raw, "JobID": job, "State": state, "Submit": submit, "Eligible": eligible, "Start": start}
    values |= {"End": end, "ElapsedRaw": seconds, "TimelimitRaw": "60", "ReqCPUS": "4", "AllocCPUS": "4"}
    values |= {
        "Suspended": "00:00:00",
        "NNodes": "1",
        "Partition": "batch",
        "NodeList": "None assigned" if start == "Unknown" else "n05",
    }
    values |= {"JobName": "plain2", "User": "user2", "Account": "projecta", "QOS": "normal", "AllocTRES": TRES}
    values |= {"NNodes": "2", "ReqTRES": TRES}
    return [values.get(name, "") for name in sacct.FIELDS]
