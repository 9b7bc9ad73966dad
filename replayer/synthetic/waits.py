"""The waits of a generated trace, as under EASY.

A workload model has no scheduler, but recorded replay and every component that learns from waits need waits. So the
jobs are replayed once in closed mode.
"""

from collections.abc import Mapping

import numpy as np

from shadowtime.replayer.comparison import RunPlan, replay_schedule
from shadowtime.replayer.logs import FIELDS, Trace, prepare
from shadowtime.services.catalogue import configure
from shadowtime.shared.kernels import Integers


def easy_waits(header: Mapping[str, str], table: Integers) -> Integers:
    """Return the wait in seconds, shape (n,), of each job of a trace under EASY, which plans with requested times.

    Parameters
    ----------
    header : Mapping[str, str]
        Values of the SWF header. `MaxProcs` is the size of the machine.
    table : numpy.ndarray
        (n, 18) integers as in `replayer.logs.swf.FIELDS`, sorted by submit time. A job that `prepare` drops keeps
        its wait from the table.

    Examples
    --------
    >>> import numpy as np
    >>> row = dict.fromkeys(FIELDS, -1) | {"run_time": 60, "requested_time": 90, "requested_processors": 3}
    >>> rows = [row | {"job_number": number, "submit_time": 10 * number} for number in (1, 2)]
    >>> easy_waits({"MaxProcs": "4"}, np.array([list(row.values()) for row in rows])).tolist()
    [0, 50]
    """
    workload = prepare(Trace("generated", header, table))
    jobs = replay_schedule(RunPlan("easy", workload.name, workload, configure("easy")))[1].jobs
    waits, numbers = table[:, FIELDS.index("wait_time")].copy(), table[:, FIELDS.index("job_number")]
    ran = np.isin(numbers, jobs.job_number)
    waits[ran] = jobs.wait[np.searchsorted(jobs.job_number, numbers[ran])]
    return waits
