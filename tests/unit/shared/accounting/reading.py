"""Accounting records, written and read."""

from pathlib import Path

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.accounting.slurm.head import FIELDS

JOB = {
    "JobIDRaw": "1",
    "JobID": "1",
    "State": "COMPLETED",
    "Submit": "1795325473",
    "Eligible": "1795325473",
    "Start": "1795325480",
    "End": "1795325540",
    "ElapsedRaw": "60",
    "Suspended": "00:00:00",
    "TimelimitRaw": "2",
    "ReqCPUS": "4",
    "AllocCPUS": "4",
    "NNodes": "1",
    "ReqTRES": "cpu=4,mem=1G,node=1",
    "AllocTRES": "cpu=4,mem=1G,node=1",
    "NodeList": "n01",
    "User": "eve",
    "Account": "physics",
    "Partition": "batch",
    "QOS": "normal",
    "JobName": "sim",
}


def written(folder: Path, *jobs: dict[str, str], fields: tuple[str, ...] = FIELDS, end: str = "\n") -> Path:
    path = folder / "sacct.txt"
    lines = ["|".join(fields), *("|".join({**JOB, **job}[name] for name in fields) for job in jobs)]
    path.write_bytes("\n".join(lines).encode(errors="surrogateescape") + end.encode())
    return path


def read(folder: Path, *jobs: dict[str, str], **reading: object) -> Trace:
    return read_trace(written(folder, *jobs), Reading(**reading))  # type: ignore[arg-type]
