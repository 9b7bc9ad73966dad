"""Small workloads, written by hand or random."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from hypothesis import strategies as st

from shadowtime.replayer.logs import FIELDS, Trace, Workload, prepare


class TraceRow(NamedTuple):
    """A job as in a trace. Times are in seconds; unknown values are -1."""

    job_number: int
    submit_time: int
    processors: int
    requested_time: int
    run_time: int
    user_id: int = -1
    wait_time: int = -1
    status: int = 1


def workload(processors: int, rows: Iterable[TraceRow]) -> Workload:
    """Return a workload of these jobs for a machine with this number of processors."""
    unknown = dict.fromkeys(FIELDS, -1)
    full = [unknown | row._asdict() | {"requested_processors": row.processors} for row in rows]
    table = np.array([[row[field] for field in FIELDS] for row in full], dtype=np.int64)
    return prepare(Trace("made", {"MaxProcs": str(processors)}, table[np.argsort(table[:, 1], kind="stable")]))


def workloads(
    max_jobs: int = 25, processors: int = 8, *, beyond_request: bool = True, waits: bool = False
) -> st.SearchStrategy[Workload]:
    """Return a strategy for random workloads, crowded enough that jobs queue.

    They have many ties, a few users, and jobs of all sizes up to the machine's.

    Parameters
    ----------
    max_jobs, processors
        Maximum number of jobs, at least 1, and size of the machine.
    beyond_request
        Whether run times may exceed the requested times.
    waits
        Whether the log has the waits of its jobs.
    """
    job = st.tuples(
        st.integers(0, 6),  # seconds since the submission before it
        st.integers(1, processors),
        st.integers(1, 20),
        st.integers(1, 30),
        st.integers(1, 3),
        st.integers(-1, 20) if waits else st.just(-1),
        st.sampled_from([0, 1, 5]),
    )

    def build(jobs: list[tuple[int, ...]]) -> Workload:
        rows, submit_time = [], 0
        for number, (gap, size, requested, run, user, wait, status) in enumerate(jobs, 1):
            submit_time += gap
            run_time = run if beyond_request else min(run, requested)
            rows.append(TraceRow(number, submit_time, size, requested, run_time, user, wait, status))

        if waits:
            rows[0] = rows[0]._replace(wait_time=max(rows[0].wait_time, 0))
        return workload(processors, rows)

    return st.lists(job, min_size=1, max_size=max_jobs).map(build)
