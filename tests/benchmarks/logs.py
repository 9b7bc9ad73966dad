"""The logs that benchmarks replay: those of the archive by name, or any by its file; never others in their place."""

from pathlib import Path
from typing import NamedTuple

from shadowtime.replayer.arguments import Preparation, read_cluster, split_size
from shadowtime.replayer.logs.workload import Workload
from shadowtime.shared.cli.command_line import say
from shadowtime.shared.errors import TraceError
from tests.gates.archive import path_of, workload


class Log(NamedTuple):
    """A log by the name that figures bear."""

    name: str
    workload: Workload


SIZES = {"KTH": 100, "SDSC-SP2": 128, "CTC": 338, "HPC2N": 240, "Mira": 49_152}
"""Processors of the machines."""

METAVAR = "LOG[@PROCESSORS]"
HELP = f"{', '.join(SIZES)}, or a file."


def log(text: str, jobs: int | None = None) -> Log:
    """Return the log that `METAVAR` spells, or its first so many jobs.

    Raises
    ------
    TraceError
        If it is not there; says where it was looked for.
    """
    name, size = split_size(text)
    if name in SIZES:
        return Log(text, workload(name, size or SIZES[name], limit=jobs))
    if not Path(name).exists():
        raise TraceError(f"{name}: neither a file nor one of {', '.join(SIZES)}")
    cluster = read_cluster(text, Preparation(jobs=jobs), say, "closed")
    return Log(cluster.name, cluster.workload)


def require(name: str) -> None:
    """Raise `TraceError` if a log of the archive is not there."""
    path_of(name)
