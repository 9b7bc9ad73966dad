"""A generated year of a cluster, written in every format that is read, by code that shares nothing with the readers."""

import json
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from random import Random
from typing import NamedTuple

BEGIN = 1_767_225_600
"""1 January 2026, 00:00:00 UTC."""

YEAR = 365 * 86_400
SPACED = "%Y-%m-%d %H:%M:%S"


class WrittenJob(NamedTuple):
    """The life of a job. Instants are Unix times; `start` is None if it was cancelled while it waited."""

    number: int
    task: int | None
    submit: int
    start: int | None
    end: int
    nodes: int
    processors: int
    limit: int
    outcome: str
    user: str
    account: str
    name: str
    queue: str

    @property
    def ran(self) -> int:
        return 0 if self.start is None else self.end - self.start


def written_jobs(count: int, seed: int = 7) -> list[WrittenJob]:
    """Return jobs in order of submission; no two are submitted in the same second."""
    random = Random(seed)
    submits = sorted(random.sample(range(YEAR), count))
    jobs = []
    for number, second in enumerate(submits, 1001):
        nodes = random.choice((1, 1, 1, 2, 4))
        limit = 60 * random.choice((10, 60, 240, 1440))
        outcome = random.choices(("completed", "failed", "cancelled", "limit", "waiting"), (70, 10, 8, 7, 5))[0]
        submit = BEGIN + second
        begun = submit + random.choice((0, 1, 59, 3600, 86_400))
        ran = limit + random.randrange(20) if outcome == "limit" else random.randrange(1, limit)
        start = None if outcome == "waiting" else begun
        jobs.append(
            WrittenJob(
                number,
                random.randrange(1, 9) if random.random() < 0.1 else None,
                submit,
                start,
                begun + (ran if start is not None else 0),
                nodes,
                nodes * random.choice((1, 4, 16)),
                limit,
                outcome,
                f"user{random.randrange(60)}",
                f"group{random.randrange(9)}",
                f"sim {random.randrange(99)}" if random.random() < 0.1 else f"run{random.randrange(99)}",
                random.choice(("batch", "long")),
            )
        )
    return jobs


class WrittenFile(NamedTuple):
    """A file as its beginning, the text of each job, what lies between two jobs, and its end."""

    head: str
    rows: Sequence[str]
    between: str = "\n"
    tail: str = "\n"

    @property
    def text(self) -> str:
        return self.head + self.between.join(self.rows) + self.tail


class Writing(NamedTuple):
    """A format: its writer, and what it keeps of a job.

    `keeps` is whether the format has a job at all, `waits` whether it has its wait and its outcome, `numbered` whether
    the number of a job is its own.
    """

    write: Callable[[list[WrittenJob]], WrittenFile]
    keeps: Callable[[WrittenJob], bool] = lambda job: True
    waits: bool = True
    numbered: bool = True


def clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}"


def date(instant: int, form: str = "%Y-%m-%dT%H:%M:%S") -> str:
    return datetime.fromtimestamp(instant, UTC).strftime(form)


def pbs_name(job: WrittenJob, task: str = "[{}]") -> str:
    return f"{job.number}{'' if job.task is None else task.format(job.task)}.head"


def _pbs(jobs: list[WrittenJob], *, torque: bool) -> WrittenFile:
    rows = []
    for job in jobs:
        name, each = pbs_name(job, "-{}" if torque and job.number % 2 else "[{}]"), job.processors // job.nodes
        asked = f"user={job.user} group=g account={job.account} jobname={job.name.replace(' ', '_')} queue={job.queue} "
        asked += f"ctime={job.submit} qtime={job.submit} etime={job.submit} Resource_List.walltime={clock(job.limit)} "
        if torque:
            slots = "0" if each == 1 else f"0-{each - 1}" if job.number % 3 else f"0-{each - 2},{each}"
            hosts = "+".join(f"c{node}/{slots}" for node in range(job.nodes))
            asked += f"owner={job.user}@login Resource_List.nodes={job.nodes}:ppn={each} "
        else:
            hosts = "+".join(f"c{node}/0*{each}" for node in range(job.nodes))
            asked += f"Resource_List.ncpus={job.processors} Resource_List.nodect={job.nodes} Resource_List.place=free "
        stamp = date(job.end, "%m/%d/%Y %H:%M:%S")
        if job.start is None:
            queued = date(job.submit, "%m/%d/%Y %H:%M:%S")
            rows.append(f"{queued};Q;{name};{asked.strip()}\n{stamp};D;{name};requestor=root@head")
            continue
        code = {"completed": 0, "failed": 1, "cancelled": 271, "limit": -11 if torque else -29}[job.outcome]
        rows.append(
            f"{stamp};E;{name};{asked}start={job.start} exec_host={hosts} session=1 end={job.end} Exit_status={code} "
            f"resources_used.walltime={clock(job.ran)}"
        )
    return WrittenFile("", rows)


def _lsf(jobs: list[WrittenJob]) -> WrittenFile:
    rows = []
    for job in jobs:
        each = job.processors // job.nodes
        hosts = [f'"{each}*n{node}"' for node in range(job.nodes)] if job.start is not None else []
        if job.number % 3 == 0 and hosts:  # without SHORT_EVENTFILE
            hosts = [f'"n{at // each}"' for at in range(job.processors)]
        exit_info = {"limit": 5, "cancelled": 14, "waiting": 14}.get(job.outcome, 0)
        status = 64 if job.outcome == "completed" else 32
        asked = '2 "n0" "n1"' if job.number % 5 == 0 else "0"
        extensions = '2 1032 "0" 1033 "0"' if job.number % 2 else "0"
        usage = f"{job.nodes} " + "".join(f"n{node} 1306 0 12 24 0 " for node in range(job.nodes))
        rows.append(
            f'"JOB_FINISH" "10.108" {job.end} {job.number} 1501 33554434 {job.processors} {job.submit} 0 0 '
            f'{job.start or 0} "{job.user}" "{job.queue}" "span[ptile={each}]" "" "" "login" "/home" "" "" "" '
            f'"{job.submit}.{job.number}" {asked} {" ".join([str(len(hosts)), *hosts])} {status} 60.0 "{job.name}" '
            f'"#BSUB -R ""span[ptile=4]"";sleep 3" 1.5 0.5 -1 0 -1 0 0 436 4 0 928 0 -1 0 0 0 19 2 -1 "" '
            f'"{job.account}" 0 {job.processors} "" "" {job.task or 0} 2048 0 "" "" "" "" 0 "" {exit_info} "" -1 "" "" '
            f'"" "" -1 "" "" '
            f'5136 "" {job.submit} "" "" {extensions} {usage}{job.limit} 4194304 1024 '
            f'"select[type == any] " "" -1 "" -1 0 "" 0 0 "" {job.ran} "/root" 0 "" 0.0 0.0 0.0 0.0 0.0 0 -1 0 0 0 0 0'
        )
    return WrittenFile("", rows)


def _grid_engine(jobs: list[WrittenJob], *, unit: int, more: str) -> WrittenFile:
    rows = []
    for job in jobs:
        failed, code = {"failed": (0, 1), "cancelled": (100, 143), "limit": (100, 137)}.get(job.outcome, (0, 0))
        limit = clock(job.limit) if job.number % 2 else str(job.limit)
        assert job.start is not None
        rows.append(
            f"{job.queue}:n1:users:{job.user}:{job.name}:{job.number}:sge:0:{job.submit * unit}:{job.start * unit}:"
            f"{job.end * unit}:{failed}:{code}:{job.ran}:3500.0:1.0:1000.0:0:0:0:0:100:0:0:0.0:0:0:0:0:10:10:"
            f"{job.account}:defaultdepartment:mpi:{job.processors}:{job.task or 0}:14000.0:10.0:0.0:"
            f"-l h_rt={limit} -pe mpi {job.processors}:0.0:NONE:1000000.0:0:0{more}"
        )
    return WrittenFile("# Version: 8.6\n#\n", rows)


STATES = {"completed": "COMPLETED", "failed": "FAILED", "limit": "TIMEOUT"}


def _filetxt(jobs: list[WrittenJob]) -> WrittenFile:
    rows = []
    for job in jobs:
        task = "" if job.task is None else f"ArrayJobId={job.number} ArrayTaskId={job.task} "
        nodes = "(null)" if job.start is None else f"n[01-{job.nodes:02}]"
        rows.append(
            f"JobId={job.number + (0 if job.task is None else 10**6)} UserId={job.user}(1001) GroupId=phys(100) "
            f"Name={job.name} JobState={STATES.get(job.outcome, 'CANCELLED')} Partition={job.queue} "
            f"TimeLimit={job.limit // 60} StartTime={date(job.start or job.end)} EndTime={date(job.end)} "
            f"NodeList={nodes} NodeCnt={job.nodes} ProcCnt={job.processors} WorkDir=/home/my files ReservationName= "
            "Gres= "
            f"Account={job.account} QOS=normal WcKey= Cluster=c1 SubmitTime={date(job.submit)} "
            f"EligibleTime={date(job.submit)} {task}DerivedExitCode=0:0 ExitCode=0:0 "
        )
    return WrittenFile("", rows)


def _document(job: WrittenJob) -> dict[str, object]:
    document: dict[str, object] = {
        "jobid": job.number + (0 if job.task is None else 10**6),
        "username": job.user,
        "@start": date(job.start or job.end),
        "@end": date(job.end),
        "elapsed": job.ran,
        "partition": job.queue,
        "nodes": "(null)" if job.start is None else f"n[01-{job.nodes:02}]",
        "total_cpus": job.processors if job.start is not None else 0,
        "total_nodes": job.nodes if job.start is not None else 0,
        "state": STATES.get(job.outcome, "CANCELLED"),
        "@submit": date(job.submit),
        "@eligible": date(job.submit),
        "time_limit": job.limit,
        "job_name": job.name,
        "account": job.account,
        "tres_req": f"cpu={job.processors},node={job.nodes},billing={job.processors}",
        "script": '#!/bin/sh\nsrun "sim" {a, b}\n',
    }
    if job.task is not None:
        document |= {"array_job_id": job.number, "array_task_id": job.task}
    return document


def _lines(jobs: list[WrittenJob]) -> WrittenFile:
    return WrittenFile("", [json.dumps(_document(job)) for job in jobs])


def _answer(jobs: list[WrittenJob]) -> WrittenFile:
    rows = [json.dumps({"_index": "slurm", "_id": str(at), "_source": _document(job)}) for at, job in enumerate(jobs)]
    return WrittenFile('{"took": 3, "hits": {"total": {"value": 9}, "hits": [', rows, ",", "]}}\n")


def _ad(job: WrittenJob) -> dict[str, object]:
    ad: dict[str, object] = {
        "AccountingGroup": job.account,
        "AllowedExecuteDuration": job.limit,
        "ClusterId": job.number,
        "Cmd": f"/home/{job.name}",
        "CompletionDate": 0 if job.outcome in ("cancelled", "waiting", "limit") else job.end,
        "CumulativeSuspensionTime": 0,
        "EnteredCurrentStatus": job.end,
        "Environment": 'A=1 B="{x},[y]"',
        "ExitBySignal": False,
        "ExitCode": 1 if job.outcome == "failed" else 0,
        "HoldReasonCode": 47 if job.outcome == "limit" else 0,
        "JobStatus": 3 if job.outcome in ("cancelled", "waiting", "limit") else 4,
        "JobUniverse": 5,
        "LastJobStatus": 1 if job.start is None else 2,
        "NumJobStarts": 0 if job.start is None else 1,
        "Owner": job.user,
        "ProcId": job.task or 0,
        "QDate": job.submit,
        "RemoteWallClockTime": float(job.ran),
        "RequestCpus": job.processors,
    }
    if job.start is not None:
        ad |= {"JobStartDate": job.start, "JobCurrentStartDate": job.start, "LastRemoteHost": "slot1_1@n01"}
    return ad


def _classad(job: WrittenJob) -> str:
    def shown(value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return '"' + value.replace('"', '\\"') + '"' if isinstance(value, str) else str(value)

    return "\n".join(f"{name} = {shown(value)}" for name, value in sorted(_ad(job).items()))


def _history(jobs: list[WrittenJob]) -> WrittenFile:
    rows = [f'{_classad(job)}\n*** Offset = 0 ClusterId = {job.number} ProcId = 0 Owner = "x"' for job in jobs]
    return WrittenFile("", rows)


def _flux(jobs: list[WrittenJob]) -> WrittenFile:
    rows = []
    for at, job in enumerate(jobs):
        record: dict[str, object] = {
            "id": f"\N{LATIN SMALL LETTER F WITH HOOK}{at}Xy",
            "t_submit": job.submit + 0.25,
            "t_depend": job.submit + 0.26,
            "duration": float(job.limit),
            "name": job.name,
            "queue": job.queue,
            "bank": job.account,
            "username": job.user,
            "ncores": job.processors,
            "ntasks": job.nodes,
            "nnodes": job.nodes,
            "state": "INACTIVE",
            "result": {"limit": "TIMEOUT"}.get(job.outcome, STATES.get(job.outcome, "CANCELED")),
            "exception": {"occurred": False, "note": ""},
            "annotations": {"sched": {"resource_summary": "rank0/core[0-3]"}},
            "t_inactive": job.end + 0.9,
        }
        if job.start is not None:
            record |= {"t_run": job.start + 0.5, "t_cleanup": job.end + 0.75}
        rows.append(json.dumps(record))
    return WrittenFile('{"jobs": [', rows, ", ", "]}\n")


def _philly(jobs: list[WrittenJob]) -> WrittenFile:
    rows = []
    for job in jobs:
        each = job.processors // job.nodes
        nodes = [{"ip": f"m{node}", "gpus": [f"gpu{at}" for at in range(each)]} for node in range(job.nodes)]
        attempt = {"start_time": date(job.start or 0, SPACED), "end_time": date(job.end, SPACED), "detail": nodes}
        record = {
            "status": {"completed": "Pass", "cancelled": "Killed"}.get(job.outcome, "Failed"),
            "vc": job.queue,
            "jobid": f"application_{job.number}_{job.task}",
            "attempts": [attempt],
            "submitted_time": date(job.submit, SPACED),
            "user": job.user,
        }
        rows.append(json.dumps(record, indent=2))
    return WrittenFile("[\n", rows, ",\n", "\n]\n")


def _batsim(jobs: list[WrittenJob]) -> WrittenFile:
    rows = [
        json.dumps(
            {"id": f"w0!{job.number}", "subtime": job.submit - jobs[0].submit, "walltime": job.limit}
            | {"res": job.processors, "profile": f"p{job.number}"}
        )
        for job in jobs
    ]
    profiles = {f"p{job.number}": {"type": "delay", "delay": float(job.ran)} for job in jobs}
    return WrittenFile('{"nb_res": 4096, "jobs": [', rows, ",\n", f'], "profiles": {json.dumps(profiles)}}}\n')


GRID_STATUS = {"completed": 1, "cancelled": 5, "waiting": 5}


def _gwf(jobs: list[WrittenJob]) -> WrittenFile:
    rows = [
        f"{job.number}\t{job.submit}\t{-1 if job.start is None else job.start - job.submit}\t"
        f"{-1 if job.start is None else job.ran}\t{job.processors}\t-1\t-1\t{job.processors}\t{job.limit}\t-1\t"
        f"{GRID_STATUS.get(job.outcome, 0)}\t{job.user}\t{job.account}\t{job.name.replace(' ', '_')}\t{job.queue}\t-1\t"
        "G1/site1\tG1/site1\tUNITARY" + "\t-1" * 10
        for job in jobs
    ]
    return WrittenFile("# The Grid Workloads Format\n# JobID SubmitTime WaitTime\n", rows)


def _swf(jobs: list[WrittenJob], delimiter: str) -> WrittenFile:
    users = {name: at for at, name in enumerate(dict.fromkeys(job.user for job in jobs), 1)}
    rows = [
        delimiter.join(
            map(
                str,
                (
                    *(job.number, job.submit - jobs[0].submit, -1 if job.start is None else job.start - job.submit),
                    *(-1 if job.start is None else job.ran, job.processors, -1, -1, job.processors, job.limit, -1),
                    *(GRID_STATUS.get(job.outcome, 0), users[job.user], -1, -1, -1, -1, -1, -1),
                ),
            )
        )
        for job in jobs
    ]
    return WrittenFile(f"; UnixStartTime: {jobs[0].submit}\n", rows)


def ran(job: WrittenJob) -> bool:
    return job.start is not None


WRITINGS: dict[str, Writing] = {
    "pbs": Writing(lambda jobs: _pbs(jobs, torque=False)),
    "torque": Writing(lambda jobs: _pbs(jobs, torque=True)),
    "lsf": Writing(_lsf),
    "sge": Writing(lambda jobs: _grid_engine(jobs, unit=1, more=""), keeps=ran),
    "univa": Writing(
        lambda jobs: _grid_engine(jobs, unit=1000, more=":NONE:x:1.0:login:/home/x:qsub a\\:b:3"), keeps=ran
    ),
    "filetxt": Writing(_filetxt),
    "elasticsearch": Writing(_lines),
    "elasticsearch-answer": Writing(_answer),
    "htcondor-long": Writing(lambda jobs: WrittenFile("", [_classad(job) + "\n" for job in jobs])),
    "htcondor-history": Writing(_history),
    "htcondor-json": Writing(
        lambda jobs: WrittenFile("[\n", [json.dumps(_ad(job), indent=1) for job in jobs], ",\n", "\n]\n")
    ),
    "htcondor-lines": Writing(lambda jobs: WrittenFile("", [json.dumps(_ad(job)) for job in jobs])),
    "flux": Writing(_flux, numbered=False),
    "philly": Writing(_philly, keeps=ran, numbered=False),
    "batsim": Writing(_batsim, keeps=ran, waits=False),
    "gwf": Writing(_gwf),
    "swf": Writing(lambda jobs: _swf(jobs, " ")),
    "swf-semicolons": Writing(lambda jobs: _swf(jobs, ";")),
}
"""All formats by name."""
