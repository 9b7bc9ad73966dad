"""The figures by which papers describe a log: means and medians of its jobs, and how much users overestimate."""

import numpy as np

from shadowtime.replayer.logs.quality import DAY, Columns
from shadowtime.shared.distributions import Borders, shape_of
from shadowtime.shared.kernels import Flags, Floats, Integers

SHAPES = ("SN", "SW", "LN", "LW")
"""Short and long, narrow and wide jobs, in the order of `shape_of`."""


def described(columns: Columns) -> dict[str, float | None]:
    """Return the figures of a log. A figure without jobs is None. O(jobs).

    Waits are those of the log. A figure `of_waiting` is over the jobs that ran and had waited, as in Table 1 of
    Nissimov 2007. Overestimation is the requested time over the run time, of jobs that ran. Short and narrow jobs
    request at most the median time and processors of all jobs.

    Parameters
    ----------
    columns
        Values of each job, shape (jobs,), as in `FIELDS`; -1 if unknown. Times are in seconds.

    >>> times = {"submit_time": [0, 86_400], "wait_time": [60, 0], "run_time": [60, 0], "requested_time": [600, 60]}
    >>> sizes = dict.fromkeys(("allocated_processors", "requested_processors"), [2, 1])
    >>> figures = described({name: np.array(values) for name, values in {**times, **sizes}.items()})
    >>> figures["days"], figures["mean_wait"], figures["mean_overestimation"], figures["not_run.SN"]
    (1.0, 30.0, 10.0, 1)

    References
    ----------
    docs/algorithms.md#description-of-a-log (Perković 2000, Tables 1 and 2; Nissimov 2007, Table 1).
    """
    run_time, requested = columns["run_time"], columns["requested_time"]
    asked = columns["requested_processors"]
    processors = np.where(asked > 0, asked, columns["allocated_processors"])
    ran, waits = run_time > 0, columns["wait_time"]
    over = np.full(len(run_time), np.nan)
    over[ran] = requested[ran] / run_time[ran]
    known = ran & (requested > 0)

    def mean(values: Integers | Floats, rows: Flags) -> float | None:
        return float(values[rows].mean()) if rows.any() else None

    def median(values: Integers | Floats, rows: Flags) -> float | None:
        return float(np.median(values[rows])) if rows.any() else None

    every = np.ones(len(run_time), dtype=np.bool_)
    figures: dict[str, float | None] = {
        "jobs": len(run_time),
        "days": float(np.ptp(columns["submit_time"])) / DAY if len(run_time) else None,
        "mean_wait": mean(waits, waits >= 0),
        "mean_wait_of_waiting": mean(waits, ran & (waits > 0)),
        "mean_run_time": mean(np.maximum(run_time, 0), every),
        "mean_run_time_of_waiting": mean(run_time, ran & (waits > 0)),
    }
    for name, values in (("processors", processors), ("requested_time", requested), ("overestimation", over)):
        rows = known if name == "overestimation" else values > 0
        figures |= {f"mean_{name}": mean(values, rows), f"median_{name}": median(values, rows)}

    borders = Borders(*(int(figures[f"median_{name}"] or 0) for name in ("requested_time", "processors")))
    shapes = shape_of(requested, processors, borders)
    for place, shape in enumerate(SHAPES):
        of_shape = shapes == place
        figures |= {
            f"jobs_of_shape.{shape}": int(of_shape.sum()),
            f"overestimation.{shape}": mean(over, of_shape & known),
            f"not_run.{shape}": int((of_shape & ~ran).sum()),
        }
    return figures
