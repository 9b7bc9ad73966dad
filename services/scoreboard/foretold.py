"""How far foretold starts were from the starts that came."""

from typing import Any

from shadowtime.services.scoreboard.wait_quantiles import WaitQuantiles
from shadowtime.shared.bounds import restored, storable
from shadowtime.shared.scores import ForetoldScores


class ForetoldStarts:
    """Running sums over jobs that started; memory is constant. Whole numbers are summed exactly.

    >>> starts = ForetoldStarts()
    >>> starts.add(foretold=130, start=100, ahead=60)
    >>> starts.add(foretold=90, start=100, ahead=20)
    >>> scores = starts.scores()
    >>> scores.mean_absolute_error, scores.mean_error, scores.late_share, scores.mean_ahead
    (20.0, 10.0, 0.5, 40.0)
    """

    def __init__(self) -> None:
        self.jobs = 0
        self.absolute_error = 0
        self.error = 0
        self.late = 0
        self.ahead = 0
        self.errors = WaitQuantiles()

    def add(self, foretold: int, start: int, ahead: int) -> None:
        """Take in the start that was foretold of a job so long ahead, and the one that came; seconds."""
        error = foretold - start
        self.jobs += 1
        self.absolute_error += abs(error)
        self.error += error
        self.late += error > 0
        self.ahead += ahead
        self.errors.add(abs(error))

    def scores(self) -> ForetoldScores:
        """Return the means, and the median."""
        jobs = self.jobs
        return ForetoldScores(
            jobs=jobs,
            mean_absolute_error=self.absolute_error / jobs if jobs else None,
            median_absolute_error=self.errors.quantiles((0.5,))[0] if jobs else None,
            mean_error=self.error / jobs if jobs else None,
            late_share=self.late / jobs if jobs else None,
            mean_ahead=self.ahead / jobs if jobs else None,
        )

    def snapshot(self) -> dict[str, Any]:
        """Return the sums as plain values."""
        return storable(vars(self)) | {"errors": self.errors.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        errors = self.errors
        vars(self).update(restored(state) | {"errors": errors})
        errors.restore(state["errors"])
