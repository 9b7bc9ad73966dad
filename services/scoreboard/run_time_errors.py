"""How run-time predictions fared against the jobs that ended."""

from typing import Any

import numpy as np

from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.run_time_bins import BINS, bin_of, quantile_of
from shadowtime.shared.scores import RunTimeScores


class RunTimeErrors:
    """Running sums over ended jobs; memory is constant, so the median error is told by its bin of run times."""

    def __init__(self) -> None:
        self.jobs = 0
        self.predictions = 0
        self.absolute_error = 0.0
        self.errors = [0] * BINS
        self.under_predicted = 0
        self.run_time = 0

    def add(self, predicted_time: float | None, requested_time: int | None, run_time: int) -> None:
        """Take in what was predicted and requested at submission, and the run time it was about, in seconds."""
        self.predictions += predicted_time is not None
        assumed = requested_time if predicted_time is None else predicted_time
        if assumed is not None:
            self.jobs += 1
            error = abs(assumed - run_time)
            self.absolute_error += error
            self.errors[bin_of(float(error))] += 1
            self.under_predicted += assumed < run_time
            self.run_time += run_time

    def scores(self) -> RunTimeScores:
        """Return the means."""
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
        return storable(vars(self)) | {"errors": self.errors.copy()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        vars(self).update(restored(state) | {"errors": list(state["errors"])})
