"""Errors of run-time predictions, over the jobs that ended."""

from typing import Any

import numpy as np

from shadowtime.services.scoreboard.batch import Batched
from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.distributions import BINS, bin_of, quantile_of
from shadowtime.shared.kernels import Floats, FloatTable, Integers, kernel
from shadowtime.shared.messages import RunTimeScores


@kernel
def add_errors(jobs: FloatTable, sums: Floats, errors: Integers) -> int:
    """Add the errors of jobs, one after another, to `sums`, and count them by bin in `errors`.

    Return how many jobs ran longer than assumed. A row has a job's assumed time (predicted, else requested) and its run
    time, in seconds. O(jobs).
    """
    longer = 0
    for job in range(len(jobs)):
        error = abs(jobs[job, 0] - jobs[job, 1])
        sums[0] += error
        errors[bin_of(error)] += 1
        longer += jobs[job, 0] < jobs[job, 1]

    return longer


class RunTimeErrors(Batched):
    """Running sums over ended jobs. Memory is constant, so the median error is estimated from bins."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs = 0
        self.predictions = 0
        self.absolute_error = 0.0
        self.errors = [0] * BINS
        self.under_predicted = 0
        self.run_time = 0

    def add(self, predicted_time: float | None, requested_time: int | None, run_time: int) -> None:
        """Add a job's predicted time, requested time and actual run time, in seconds.

        The requested time takes the place of a missing prediction. A job with neither does not count.
        """
        self.predictions += predicted_time is not None
        assumed = requested_time if predicted_time is None else predicted_time
        if assumed is not None:
            self._keep((assumed, run_time))

    def _take_in(self, rows: list[tuple[Any, ...]]) -> None:
        sums, errors = np.array([self.absolute_error]), np.array(self.errors)
        self.under_predicted += add_errors(np.array(rows, dtype=np.float64), sums, errors)
        self.jobs += len(rows)
        self.absolute_error, self.errors = float(sums[0]), errors.tolist()
        self.run_time += sum([run_time for _, run_time in rows])

    def scores(self) -> RunTimeScores:
        """Return the means and the median error. Without jobs, these fields are None."""
        self.fold()
        count = self.jobs
        return RunTimeScores(
            jobs=count,
            predictions=self.predictions,
            mean_absolute_error=self.absolute_error / count if count else None,
            median_absolute_error=quantile_of(np.array(self.errors, np.float64), 0.5) if count else None,
            under_predicted=self.under_predicted / count if count else None,
            mean_run_time=self.run_time / count if count else None,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums."""
        return storable(self._sums()) | {"errors": self.errors.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        vars(self).update(restored(state) | {"errors": list(state["errors"])})
