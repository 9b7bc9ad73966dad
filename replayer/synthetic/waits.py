"""The waits of a generated trace, as under EASY.

A workload model has no scheduler, but recorded replay and every component that learns from waits need waits. So the
jobs are replayed once in closed mode through the project's own pipeline.
"""

from collections.abc import Mapping

from shadowtime.replayer.comparison import RunPlan, carry_out
from shadowtime.replayer.logs import FIELDS, Trace, prepare
from shadowtime.services.catalogue import configure
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import Envelope, JobStarted


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
    started: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            started[envelope.event.job_number] = envelope.event.time

    carry_out(RunPlan("easy", workload.name, workload, configure("easy")), [note])
    waits = table[:, FIELDS.index("wait_time")].copy()
    for row, (number, submit_time) in enumerate(table[:, :2].tolist()):
        if number in started:
            waits[row] = started[number] - submit_time
    return waits
