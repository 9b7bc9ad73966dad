"""The logs that benchmarks replay: those of the archive, or generated ones of the same size where it is missing."""

from typing import NamedTuple

from replayer.lublin import generate
from replayer.swf import Trace, Workload, prepare
from tests.gates.archive import TRACES, workload


class Size(NamedTuple):
    """How large a log and its machine are."""

    jobs: int
    processors: int


SIZES = {
    "KTH": Size(28_481, 100),
    "SDSC-SP2": Size(53_999, 128),
    "CTC": Size(77_199, 338),
    "HPC2N": Size(202_871, 240),
}


def log(trace: str, jobs: int | None = None, processors: int | None = None) -> tuple[str, Workload]:
    """Return where the jobs come from, `archive` or `generated`, and the jobs, or the first so many."""
    size = SIZES[trace]
    if TRACES.is_dir():
        return "archive", workload(trace, processors or size.processors, limit=jobs)
    made = Trace(trace, *generate(size.jobs, processors or size.processors, seed=1))
    return "generated", prepare(made, limit=jobs)
