"""The size of the machine of a log that does not state it: the most processors in use at one time."""

import re
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from shadowtime.replayer.logs.quality import processors_in_use
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import processors_of_jobs
from shadowtime.shared.kernels import Integers

_NOT_STATED = re.compile(r"\s*(-\d+|0)?\s*\Z")


def peak_of(columns: Mapping[str, Integers]) -> int:
    """Return the maximum number of processors in use at any time as recorded, but at least the largest request.

    Parameters
    ----------
    columns
        Columns of the Standard Workload Format, shape (jobs,). Times are in seconds.

    >>> row = dict.fromkeys(FIELDS, np.array([-1, -1])) | {"submit_time": np.array([0, 5])}
    >>> row |= {"wait_time": np.array([0, 0]), "run_time": np.array([9, 9]), "requested_processors": np.array([4, 2])}
    >>> peak_of(row)
    6
    """
    size = processors_of_jobs(columns, "requested")
    begun = np.flatnonzero((columns["wait_time"] >= 0) & (columns["run_time"] > 0) & (size > 0))
    start = columns["submit_time"][begun] + columns["wait_time"][begun]
    most = int(processors_in_use(start, start + columns["run_time"][begun], size[begun]).max(initial=0))
    return max(most, int(size.max(initial=0)))


def with_sizes(trace: Trace) -> Trace:
    """Return a log in the Standard Workload Format with the sizes that it lacks.

    A log without the size of any job is a log of serial jobs: each has one processor, and a note says so. A log without
    the size of its machine gets the maximum number of processors in use (`peak_of`). A size that the header states, but
    not as a number, stays unknown.
    """
    table, header, notes = trace.table, dict(trace.header), list(trace.notes)
    columns = dict(zip(FIELDS, table.T, strict=True))
    if not (processors_of_jobs(columns, "requested") > 0).any():
        columns["requested_processors"] = np.ones(len(table), dtype=np.int64)
        table = np.column_stack([columns[name] for name in FIELDS])
        notes.append("it states the processors of no job, so each job counts as serial")
    if trace.processors is None and all(_NOT_STATED.match(header.get(key, "")) for key in ("MaxProcs", "MaxNodes")):
        held = peak_of(columns)
        header["MaxProcs"] = str(held)
        return replace(trace, header=header, table=table, notes=tuple(notes), most_held=held)
    return replace(trace, table=table, notes=tuple(notes))
