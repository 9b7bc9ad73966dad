"""Jobs and decisions of a run as pandas frames, built on request."""

from array import array
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from shadowtime.replayer.comparison import RunRecord
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.messages import Decided, Envelope, JobSubmitted, Kill, Start
from shadowtime.shared.statistics import bounded_slowdown

if TYPE_CHECKING:
    import pandas as pd

UNKNOWN = -1

JOB_COLUMNS = {
    "job_number": "number of the job; the index",
    "submit_time": "its submission, in seconds of the log",
    "start_time": "its start",
    "end_time": "its end",
    "wait": "seconds from its submission to its start",
    "run_time": "seconds that it would run on the processors that it requested; in mode `closed` at most its request",
    "requested_time": f"seconds that it requested; {MAX_DURATION:,} if it has no limit",
    "processors": "processors that it held",
    "requested_processors": "processors that it requested",
    "bounded_slowdown": "its bounded slowdown (algorithms.md#bounded-slowdown)",
    "user_id": "number of its user; missing if unknown, as in the next four columns",
    "group_id": "number of the user's group",
    "executable_number": "number of its executable",
    "queue_number": "number of its queue",
    "partition_number": "number of its partition",
    "predicted_run_time": "run time in seconds, predicted at its submission; only if run times are predicted",
    "adjusted_request": "its adjusted request in seconds; only if requests are adjusted",
    "forecast_wait": "its wait in seconds, forecast at its submission; only if waits are forecast",
    "wait_bound_GROUPING": "bound on its wait in seconds, for each grouping of the cluster; only if waits are bounded",
}
"""Columns of the frame of jobs, and their meanings. `GROUPING` stands for the name of a grouping."""

DECISION_COLUMNS = {
    "sequence": "sequence number of the scheduling point's event; all its decisions have the same",
    "time": "time of the decision, in seconds of the log",
    "decision": "`start` or `kill`",
    "reason": "kind of its reason",
}
"""Columns that every row of the frame of decisions has. Further columns are fields of starts, kills and reasons."""


def require_pandas() -> None:
    """Raise `ImportError`, which names the extra to install, if pandas is missing."""
    try:
        import_module("pandas")
    except ModuleNotFoundError:
        raise ImportError("frames need pandas, which is not installed: pip install 'shadowtime[frames]'") from None


class SubmissionPredictions:
    """An observer that records the predictions for each job at its submission; -1 if there is none."""

    def __init__(self) -> None:
        self._rows = array("d")
        self._bounds: list[dict[str, int | None]] = []

    def __call__(self, envelope: Envelope) -> None:
        """Record the predictions of an envelope, if its event is a submission."""
        event = envelope.event
        if not isinstance(event, JobSubmitted):
            return
        run_time, adjustment, forecast = envelope.run_time, envelope.adjustment, envelope.forecast
        self._rows.extend(
            (
                event.job_number,
                UNKNOWN if run_time is None else run_time.point,
                UNKNOWN if adjustment is None else adjustment.adjusted_time,
                UNKNOWN if forecast is None or forecast.wait is None else forecast.wait,
            )
        )
        of_cluster = [wait_bound for wait_bound in envelope.wait_bounds if wait_bound.queue is None]
        self._bounds.append({f"wait_bound_{bound.grouping}": bound.bound for bound in of_cluster})

    def frame(self) -> "pd.DataFrame":
        """Return a frame, a row per job, indexed by job number. Times are in seconds; NaN without a prediction.

        A column without any prediction is left out.
        """
        require_pandas()
        import pandas as pd

        columns = ["job_number", "predicted_run_time", "adjusted_request", "forecast_wait"]
        table = pd.DataFrame(np.array(self._rows).reshape(-1, len(columns)), columns=columns)
        table["job_number"] = table["job_number"].astype("int64")
        bounds = pd.DataFrame(self._bounds, index=table.index, dtype="float64")
        return table.replace(UNKNOWN, np.nan).join(bounds).dropna(axis="columns", how="all").set_index("job_number")


class Decisions:
    """An observer that records every decided start and kill."""

    def __init__(self) -> None:
        self._decided: list[tuple[int, int, Start | Kill]] = []

    def __call__(self, envelope: Envelope) -> None:
        """Record the decisions of an envelope, if it has any."""
        event = envelope.event
        if isinstance(event, Decided):
            decided: tuple[Start | Kill, ...] = (*event.kills, *event.starts)
            self._decided += [(envelope.sequence, event.time, row) for row in decided]

    def frame(self) -> "pd.DataFrame":
        """Return a frame, a row per start or kill, in order. A row lacks values in columns of other kinds and reasons.

        Without any start or kill, the frame has no columns.
        """
        require_pandas()
        import pandas as pd

        return pd.DataFrame([_row(*row) for row in self._decided]).convert_dtypes()


def _row(sequence: int, time: int, decided: Start | Kill) -> dict[str, Any]:
    fields = decided.model_dump(exclude_none=True)
    reason = fields.pop("reason")
    why = reason if isinstance(reason, dict) else {"reason": reason}
    why = {("reason" if name == "kind" else name): value for name, value in why.items()}
    return {"sequence": sequence, "time": time, "decision": type(decided).__name__.lower()} | fields | why


def jobs_frame(record: RunRecord, predictions: SubmissionPredictions) -> "pd.DataFrame":
    """Return a frame, a row per ended job, indexed by job number: user, times, sizes, slowdown and predictions."""
    require_pandas()
    import pandas as pd

    jobs, columns = record.jobs, record.plan.workload.columns
    order = np.argsort(columns["job_number"])
    rows = order[np.searchsorted(columns["job_number"], jobs.job_number, sorter=order)]
    own_waits = jobs.end_time - jobs.submit_time - jobs.own_run_time
    slowdowns = map(bounded_slowdown, own_waits.tolist(), jobs.own_run_time.tolist())
    labels = {
        name: pd.Series(columns[name][rows]).replace(UNKNOWN, pd.NA).astype("Int64").array
        for name in ("user_id", "group_id", "executable_number", "queue_number", "partition_number")
    }
    frame = pd.DataFrame(
        {
            "submit_time": jobs.submit_time,
            "start_time": jobs.start_time,
            "end_time": jobs.end_time,
            "wait": jobs.wait,
            "run_time": jobs.own_run_time,
            "requested_time": jobs.requested_time,
            "processors": jobs.processors,
            "requested_processors": jobs.requested_processors,
            "bounded_slowdown": list(slowdowns),
            **labels,
        },
        index=pd.Index(jobs.job_number, name="job_number"),
    )
    return frame.join(predictions.frame())
