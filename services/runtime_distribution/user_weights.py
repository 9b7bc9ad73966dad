"""How much each of several predictors is heard about a user's jobs, by what it said of those that ended."""

from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from shadowtime.services.runtime_distribution.renewed import renew
from shadowtime.shared.arrays import Floats
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.kernel import kernel

Weights = Floats
"""Of each predictor, adding up to 1; shape (predictors,)."""

Rate = Annotated[
    float, Field(gt=0, le=1, description="how much one ended job moves the weights of its user towards who foresaw it")
]
GlobalRate = Annotated[
    float, Field(gt=0, le=1, description="how much it moves the weights of all, with which a new user begins")
]
Share = Annotated[
    float, Field(ge=0, le=1, description="share of a user's weights that goes back to those of all with each ended job")
]

MIN_LIKELIHOOD: Final = 1e-6
"""Probability below which nobody is held to what they said."""

MAX_JUDGED: Final = 5_000
"""Jobs in the system by which predictors are judged; those that come while there are so many are not."""


@kernel
def reweighted(weights: Floats, said: Floats, rate: float) -> Floats:
    """Return the weights after an outcome of which each expert had `said` a probability; all of shape (experts,).

    They move by `rate` towards the probability of each expert to have been the one that the outcome came from, which is
    weight times what it said: exp(-log score), so the log score of what it said at submission is all that counts.

    >>> reweighted(np.array([0.5, 0.5]), np.array([0.9, 0.1]), 0.1).round(3).tolist()
    [0.54, 0.46]
    """
    heard = weights * np.maximum(said, MIN_LIKELIHOOD)
    moved: Weights = (1.0 - rate) * weights + rate * heard / heard.sum()
    return moved


class UserWeights:
    """Weights of each user, of the last `MAX_OWNERS`, and common ones, with which a user begins. O(predictors) a job.

    Parameters
    ----------
    predictors
        How many there are.
    rate, global_rate
        How far an ended job moves the weights of its user, and the common ones.
    share
        How much of a user's weights goes back to the common ones with it.

    Examples
    --------
    >>> weights = UserWeights(2, 0.1, 0.01, 0.0)
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7)
    >>> weights.judge(job, np.array([0.9, 0.1]))
    >>> weights.of(job).round(3).tolist(), weights.of(job.model_copy(update={"user_id": 8})).round(3).tolist()
    ([0.54, 0.46], [0.504, 0.496])

    References
    ----------
    docs/algorithms.md#experts (Cesa-Bianchi 2006, sections 3.3 and 5.2, for log loss and fixed share; Cappé 2009).
    """

    def __init__(self, predictors: int, rate: float, global_rate: float, share: float) -> None:
        self._rate, self._global_rate, self._share = rate, global_rate, share
        self._common = np.full(predictors, 1 / predictors)
        self._weights: dict[int, Weights] = {}

    def of(self, x: JobSubmitted) -> Weights:
        """Return how much each predictor is heard about this job."""
        return self._common if x.user_id is None else self._weights.get(x.user_id, self._common)

    def judge(self, x: JobSubmitted, foretold: Floats) -> None:
        """Learn which probability each predictor had foretold of what a job came to; shape (predictors,)."""
        if x.user_id is not None:
            own = reweighted(self.of(x), foretold, self._rate)
            renew(self._weights, x.user_id, (1 - self._share) * own + self._share * self._common)
        self._common = reweighted(self._common, foretold, self._global_rate)

    def snapshot(self) -> dict[str, Any]:
        """Return the weights."""
        return {
            "common": self._common.tolist(),
            "weights": [[user, weights.tolist()] for user, weights in self._weights.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        self._common = np.array(state["common"])
        self._weights = {user: np.array(weights) for user, weights in state["weights"]}
