"""Probabilities that something happens, against whether it did."""

from typing import Any

from shadowtime.shared.start_scores import TENTHS, ProbabilityBin, ProbabilityScores

PARTS = 10**9
"""Of a probability, and of its square: whole numbers are summed exactly."""


class SaidProbabilities:
    """Running sums by tenths of the probability; memory is constant.

    Examples
    --------
    >>> said = SaidProbabilities()
    >>> for came in (True, True, False, True):
    ...     said.add(0.75, came=came)
    >>> scores = said.scores()
    >>> scores.mean_probability, scores.came_share, scores.brier, scores.calibration_error
    (0.75, 0.75, 0.1875, 0.0)

    References
    ----------
    docs/algorithms.md#start-distributions.
    """

    def __init__(self) -> None:
        self.said = [0] * TENTHS
        self.came = [0] * TENTHS
        self.probability = [0] * TENTHS
        self.squares = 0

    def add(self, probability: float, *, came: bool) -> None:
        """Take in a probability, and whether what it was said of came true."""
        tenth = min(int(probability * TENTHS), TENTHS - 1)
        self.said[tenth] += 1
        self.came[tenth] += came
        self.probability[tenth] += round(probability * PARTS)
        self.squares += round((probability - came) ** 2 * PARTS)

    def scores(self) -> ProbabilityScores | None:
        """Return the means; None where nothing was said."""
        said = sum(self.said)
        if not said:
            return None
        off = sum(
            abs(probability / PARTS - came) for probability, came in zip(self.probability, self.came, strict=True)
        )
        return ProbabilityScores(
            said=said,
            mean_probability=sum(self.probability) / PARTS / said,
            came_share=sum(self.came) / said,
            brier=self.squares / PARTS / said,
            calibration_error=off / said,
            bins=tuple(
                ProbabilityBin(
                    from_probability=tenth / TENTHS,
                    said=count,
                    mean_probability=self.probability[tenth] / PARTS / count,
                    came_share=self.came[tenth] / count,
                )
                for tenth, count in enumerate(self.said)
                if count
            ),
        )

    def snapshot(self) -> list[Any]:
        """Return the sums as plain values."""
        return [*self.said, *self.came, *self.probability, self.squares]

    def restore(self, state: list[Any]) -> None:
        """Take on what `snapshot` returned."""
        self.said, self.came, self.probability = (state[at * TENTHS : (at + 1) * TENTHS] for at in range(3))
        self.squares = state[-1]
