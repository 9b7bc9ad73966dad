"""Errors of run-time predictions, where each use of a prediction counts, and not only one prediction for each job."""

from array import array
from typing import Any

import numpy as np

from shadowtime.services.scoreboard.batch import Batched
from shadowtime.shared.bounds import saturated
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel
from shadowtime.shared.messages import PredictionWorkloadScores, WorkloadErrors

MAX_CHANGES = 64
"""Changes of a job's prediction that are stored until the job ends. Beyond this number, neighbours are merged."""

COLUMNS = 4
"""Numbers that are stored for each prediction of a job: the predicted run time in seconds, and three counts of uses: at
submissions of jobs, at passes while the job waited, and at passes while it ran."""

Error = tuple[int, float]
"""Number of predictions, and the sum of their absolute errors in seconds."""


def merged(counted: "array[float]") -> "array[float]":
    """Return predictions in which each pair of neighbours is merged into its mean, weighted by use.

    >>> merged(array("d", [60, 1, 2, 0, 80, 0, 1, 0, 300, 0, 0, 4])).tolist()
    [65.0, 1.0, 3.0, 0.0, 300.0, 0.0, 0.0, 4.0]
    """
    fewer = array("d")
    for at in range(0, len(counted), 2 * COLUMNS):
        point, *uses = counted[at : at + COLUMNS]
        if after := counted[at + COLUMNS : at + 2 * COLUMNS]:
            total = sum(uses) + sum(after[1:])
            point += (after[0] - point) * sum(after[1:]) / total
            uses = [use + more for use, more in zip(uses, after[1:], strict=True)]
        fewer.extend((point, *uses))
    return fewer


class JobPredictions:
    """The predictions of one job in the system, each with the number of its uses.

    `assumed` is the prediction in use, in seconds, or the request without a prediction; None if there is neither.
    `submissions` and `passes` are the counts of the run up to which uses are stored. `runs` is whether the job runs.
    """

    __slots__ = ("assumed", "counted", "passes", "runs", "submissions")

    def __init__(self, assumed: float | None, submissions: int, passes: int) -> None:
        self.assumed, self.submissions, self.passes, self.runs = assumed, submissions, passes, False
        self.counted = array("d")

    def count(self, submissions: int, passes: int) -> None:
        """Store the uses of the prediction up to these counts of the run."""
        used, passed = submissions - self.submissions, passes - self.passes
        self.submissions, self.passes = submissions, passes
        if self.assumed is not None and used + passed:
            self.counted.extend((self.assumed, used, 0 if self.runs else passed, passed if self.runs else 0))
            if len(self.counted) > COLUMNS * MAX_CHANGES:
                self.counted = merged(self.counted)


@kernel
def add_uses(predictions: FloatTable, run_times: Floats, counts: Integers, sums: Floats) -> None:
    """Add the uses of predictions to `counts`, and their absolute errors to `sums`, one after another, in place.

    A prediction is a row of `COLUMNS` numbers. `run_times` has the run time of its job, in seconds.
    """
    for row in range(len(predictions)):
        error = abs(predictions[row, 0] - run_times[row])
        for use in range(COLUMNS - 1):
            used = predictions[row, 1 + use]
            counts[use] += int(used)
            sums[use] += used * error


class PredictionWorkload(Batched):
    """Errors over the prediction workloads of Smith 1999, for the jobs that have ended.

    A job has one prediction for each submission while it is in the system, its own included; and one for each pass.
    The prediction is the last one that was made: at its submission, or anew. O(1) for each event and each prediction
    made anew, O(changes of its prediction) for each end. Memory is bounded by the jobs in the system.

    >>> workload = PredictionWorkload()
    >>> workload.submit(7, 60.0)
    >>> workload.decide()
    >>> workload.replace(7, 90.0)
    >>> workload.decide()
    >>> workload.end(7, 100)
    >>> scores = workload.scores(mean_run_time=100.0)
    >>> scores.submissions.mean_absolute_error, scores.passes.mean_absolute_error
    (40.0, 25.0)

    References: docs/algorithms.md#prediction-workloads (Smith 1999, section 2.1.4).
    """

    def __init__(self) -> None:
        super().__init__()
        self.jobs: dict[int, JobPredictions] = {}
        self.submissions = 0
        self.passes = 0
        self.errors: list[Error] = [(0, 0.0)] * 3
        """At submissions, at passes while the job waited, and at passes while it ran."""

    def submit(self, number: int, assumed: float | None) -> None:
        """Add a job with its predicted run time, or its request, in seconds; None without both.

        A submission uses the prediction of each job in the system once.
        """
        self.jobs[number] = JobPredictions(assumed, self.submissions, self.passes)
        self.submissions += 1

    def decide(self) -> None:
        """Count a pass, which uses the prediction of each job in the system once."""
        self.passes += 1

    def replace(self, number: int, assumed: float | None) -> None:
        """Replace the predicted run time of a job, in seconds."""
        if (job := self.jobs.get(number)) is not None:
            job.count(self.submissions, self.passes)
            job.assumed = assumed

    def start(self, number: int) -> None:
        """Record that a job runs from now on."""
        self._move(number, runs=True)

    def requeue(self, number: int) -> None:
        """Record that a job waits again."""
        self._move(number, runs=False)

    def _move(self, number: int, *, runs: bool) -> None:
        job = self.jobs[number]
        job.count(self.submissions, self.passes)
        job.runs = runs

    def withdraw(self, number: int) -> None:
        """Forget a job that never ran: its run time is unknown."""
        self.jobs.pop(number, None)

    def end(self, number: int, run_time: int) -> None:
        """Add the errors of all predictions of an ended job; its run time is in seconds."""
        job = self.jobs.pop(number)
        job.count(self.submissions, self.passes)
        self._keep((job.counted, run_time))

    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        counts, sums = np.zeros(COLUMNS - 1, np.int64), np.array([total for _, total in self.errors])
        predictions = np.frombuffer(bytearray().join([counted for counted, _ in rows])).reshape(-1, COLUMNS)
        changes = [len(counted) // COLUMNS for counted, _ in rows]
        add_uses(predictions, np.repeat([float(run_time) for _, run_time in rows], changes), counts, sums)
        of_batch = zip(counts.tolist(), sums.tolist(), strict=True)
        self.errors = [(count + more, total) for (count, _), (more, total) in zip(self.errors, of_batch, strict=True)]

    def scores(self, mean_run_time: float | None) -> PredictionWorkloadScores | None:
        """Return the mean errors in seconds, and as shares of `mean_run_time`, that of the ended jobs in seconds.

        Return None if `mean_run_time` is None or 0.
        """
        if not mean_run_time:
            return None
        self.fold()
        submissions, waiting, running = self.errors
        passes = waiting[0] + running[0], waiting[1] + running[1]
        of = [
            WorkloadErrors(
                predictions=saturated(count),
                mean_absolute_error=total / count if count else None,
                error_share=total / count / mean_run_time if count else None,
            )
            for count, total in (submissions, passes, waiting)
        ]
        return PredictionWorkloadScores(submissions=of[0], passes=of[1], passes_waiting=of[2])

    def snapshot(self) -> Any:
        """Return the jobs and the sums as plain values."""
        self.fold()
        jobs = [
            [number, job.assumed, job.submissions, job.passes, job.runs, job.counted.tolist()]
            for number, job in self.jobs.items()
        ]
        return {"jobs": jobs, "counts": [self.submissions, self.passes], "errors": self.errors}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.submissions, self.passes = state["counts"]
        self.errors = [(count, total) for count, total in state["errors"]]
        self.jobs = {}
        for number, assumed, submissions, passes, runs, counted in state["jobs"]:
            job = self.jobs[number] = JobPredictions(assumed, submissions, passes)
            job.runs, job.counted = runs, array("d", counted)
