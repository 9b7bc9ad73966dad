"""How jobs of each shape fared, and what they were promised beside the delay that they had (Perković 2000)."""

from array import array

import numpy as np

from shadowtime.replayer.workload import Workload
from shadowtime.shared.events import Decided, Envelope, JobEnded, JobStarted, JobSubmitted, JobWithdrawn, moment
from shadowtime.shared.reasons import Reserved

SHAPES = {"SN": (True, True), "SW": (True, False), "LN": (False, True), "LW": (False, False)}
"""Short or long, narrow or wide: up to the log's median or above."""

SHARES = (15, 50, 85)


class Delays:
    """Notes of each job its slowdown, and the delay that it was promised beside the one it had; an observer.

    Parameters
    ----------
    workload
        The jobs; its medians tell shapes apart (Perković 2000, Table 2).
    """

    def __init__(self, workload: Workload) -> None:
        columns = workload.columns
        self._medians = float(np.median(columns["requested_time"])), float(np.median(columns["processors"]))
        self._open: dict[int, JobSubmitted] = {}
        self._started: dict[int, int] = {}
        self._guaranteed: dict[int, int] = {}
        self._slowdowns = {shape: array("d") for shape in SHAPES}
        self._ratios = array("d")

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self._open[event.job_number] = event
        elif isinstance(event, JobWithdrawn):
            del self._open[event.job_number]
        elif isinstance(event, JobStarted):
            self._started[event.job_number] = moment(event)
        elif isinstance(event, Decided):
            for start in event.starts:
                if isinstance(start.reason, Reserved) and start.reason.guaranteed_start is not None:
                    self._guaranteed[start.job_number] = start.reason.guaranteed_start
        elif isinstance(event, JobEnded) and not event.requeued:
            self._ended(event)

    def _ended(self, event: JobEnded) -> None:
        job, started = self._open.pop(event.job_number), self._started.pop(event.job_number)
        guaranteed = self._guaranteed.pop(event.job_number, None)
        times, sizes = self._medians
        short = job.requested_time is not None and job.requested_time <= times
        shape = ("S" if short else "L") + ("N" if job.requested_processors <= sizes else "W")
        self._slowdowns[shape].append((moment(event) - job.since) / max(event.own_run_time, 10))
        if guaranteed is not None and started > job.since:
            self._ratios.append((guaranteed - job.since) / (started - job.since))

    def figures(self) -> dict[str, float | None]:
        """Return the mean bounded slowdown of each shape, not clamped, and how promises compared with delays."""
        found: dict[str, float | None] = {}
        for shape, slowdowns in self._slowdowns.items():
            found[f"slowdown.{shape}"] = float(np.mean(slowdowns)) if slowdowns else None
            found[f"jobs_of_shape.{shape}"] = len(slowdowns)
        ratios = self._ratios
        found["guaranteed_to_actual.mean"] = float(np.mean(ratios)) if ratios else None
        for share in SHARES:
            found[f"guaranteed_to_actual.{share}"] = float(np.quantile(ratios, share / 100)) if ratios else None
        return found
