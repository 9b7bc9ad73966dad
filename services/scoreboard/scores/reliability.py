"""Reliability table: probabilities against outcomes, in tenths."""

from typing import Any

import numpy as np

from shadowtime.shared.kernels import Flags, Floats, Integers
from shadowtime.shared.messages import Reliability, ReliabilityBin

BINS = 10


class ReliabilityTable:
    """Probabilities against outcomes in ten equal bins, separate for started candidates and those not started.

    >>> table = ReliabilityTable()
    >>> table.add(np.array([0.1, 0.15, 0.9]), np.array([0, 0, 1]), np.array([False, True, True]))
    >>> round(table.reliability().calibration_error, 3)
    0.283
    """

    def __init__(self) -> None:
        self.candidates = np.zeros((2, BINS), dtype=np.int64)
        self.delayed = np.zeros((2, BINS), dtype=np.int64)
        self.probability = np.zeros((2, BINS))
        self.squared_error = np.zeros(2)

    def add(self, probabilities: Floats, started: Integers, delayed: Flags) -> None:
        """Add the delay probabilities of candidates and their outcomes; shapes (candidates,). `started` has 0 or 1."""
        at = started, np.minimum((probabilities * BINS).astype(np.int64), BINS - 1)
        np.add.at(self.candidates, at, 1)
        np.add.at(self.delayed, at, delayed)
        np.add.at(self.probability, at, probabilities)
        np.add.at(self.squared_error, started, (probabilities - delayed) ** 2)

    def reliability(self, started: int | None = None) -> Reliability:
        """Return the table of all candidates, or only of the started (1) or the other candidates (0)."""
        rows = slice(None) if started is None else slice(started, started + 1)
        candidates, delayed = self.candidates[rows].sum(axis=0), self.delayed[rows].sum(axis=0)
        probability = self.probability[rows].sum(axis=0)
        brier_score, calibration_error = self.errors(rows)
        return Reliability(
            candidates=int(candidates.sum()),
            brier_score=brier_score,
            calibration_error=calibration_error,
            bins=tuple(
                ReliabilityBin(
                    from_probability=j / BINS,
                    candidates=int(candidates[j]),
                    mean_probability=float(probability[j] / candidates[j]),
                    delayed=float(delayed[j] / candidates[j]),
                )
                for j in np.flatnonzero(candidates).tolist()
            ),
        )

    def errors(self, rows: slice = slice(None)) -> tuple[float | None, float | None]:
        """Return Brier score and calibration error; both are None without candidates.

        `rows` selects the candidates: those not started (row 0), the started ones (row 1), or both.
        """
        total = int(self.candidates[rows].sum())
        if not total:
            return None, None
        distance = np.abs(self.probability[rows].sum(axis=0) - self.delayed[rows].sum(axis=0))
        return float(self.squared_error[rows].sum()) / total, float(distance.sum()) / total

    def snapshot(self) -> Any:
        """Return the sums."""
        return {name: array.tolist() for name, array in vars(self).items()}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        for name, array in vars(self).items():
            array[...] = state[name]
