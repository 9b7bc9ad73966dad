"""A mixture of several predictors, each weighted by how well it has predicted."""

from typing import Annotated, Any, Final

import numpy as np
from pydantic import Field

from shadowtime.services.runtime_distribution.history import MAX_OWNERS, lru_put
from shadowtime.services.runtime_distribution.hmm import Hmm, HmmSettings
from shadowtime.services.runtime_distribution.revisable import RunTimeSettings
from shadowtime.services.runtime_distribution.weighted_jobs import (
    BEYOND,
    Jobs,
    SimilarJobs,
    Weighting,
    price_of_users,
)
from shadowtime.shared.distributions import Masses, outcome_masses, outcome_of
from shadowtime.shared.kernels import Floats, kernel
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, JobWithdrawn, RunTimePrediction
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import LastValue, Predictor

# Weights of several predictors for a user's jobs, from their predictions for the jobs that ended.

Weights = Floats
"""Weight of each predictor, adding up to 1; shape (predictors,)."""

Rate = Annotated[
    float,
    Field(
        gt=0,
        le=1,
        description="step by which one ended job moves its user's weights towards the predictors that predicted it "
        "well",
    ),
]
GlobalRate = Annotated[
    float,
    Field(gt=0, le=1, description="step by which one ended job moves the common weights, with which a new user begins"),
]
Share = Annotated[
    float,
    Field(ge=0, le=1, description="share of a user's weights that each ended job moves back to the common weights"),
]

MIN_LIKELIHOOD: Final = 1e-6
"""Smallest probability with which a predictor is judged; smaller ones are raised to it."""

MAX_JUDGED: Final = 5_000
"""Maximum number of jobs in the system whose predictions are stored. Jobs submitted beyond this number are not
scored."""


@kernel
def reweighted(weights: Floats, probabilities: Floats, rate: float) -> Floats:
    """Return the weights after an outcome to which the experts gave these `probabilities`; all of shape (experts,).

    The weights move by `rate` towards the posterior probability that the outcome came from each expert. The posterior
    is proportional to weight times probability. The probability is exp(-log score), so only the log score counts.

    >>> reweighted(np.array([0.5, 0.5]), np.array([0.9, 0.1]), 0.1).round(3).tolist()
    [0.54, 0.46]
    """
    likelihoods = weights * np.maximum(probabilities, MIN_LIKELIHOOD)
    moved: Weights = (1.0 - rate) * weights + rate * likelihoods / likelihoods.sum()
    return moved


def price_of_weights(predictors: int) -> Price:
    """Return the price of the weights of all users, and of predictions for jobs in the system that are judged later."""
    return Price(MAX_OWNERS * (250 + 60 * predictors) + MAX_JUDGED * 2_500)


class UserWeights:
    """Weights of predictors for each of at most `MAX_OWNERS` users, and common weights for new users.

    O(predictors) for each job.

    Parameters
    ----------
    predictors
        Number of predictors.
    rate, global_rate
        How far an ended job moves the weights of its user, and the common weights, as for `reweighted`.
    share
        Share of a user's weights that returns to the common weights with each ended job.

    >>> weights = UserWeights(2, 0.1, 0.01, 0.0)
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7)
    >>> weights.judge(job, np.array([0.9, 0.1]))
    >>> weights.of(job).round(3).tolist(), weights.of(job.model_copy(update={"user_id": 8})).round(3).tolist()
    ([0.54, 0.46], [0.504, 0.496])

    References: docs/algorithms.md#experts (Cesa-Bianchi 2006, sections 3.3 and 5.2, for log loss and fixed share; Cappé
    2009).
    """

    def __init__(self, predictors: int, rate: float, global_rate: float, share: float) -> None:
        self._rate, self._global_rate, self._share = rate, global_rate, share
        self._common = np.full(predictors, 1 / predictors)
        self._weights: dict[int, Weights] = {}

    def of(self, x: JobSubmitted) -> Weights:
        """Return the weight of each predictor for this job."""
        return self._common if x.user_id is None else self._weights.get(x.user_id, self._common)

    def judge(self, x: JobSubmitted, probabilities: Floats) -> None:
        """Update the weights by the probability that each predictor gave to the job's outcome, shape (predictors,)."""
        if x.user_id is not None:
            own = reweighted(self.of(x), probabilities, self._rate)
            lru_put(self._weights, x.user_id, (1 - self._share) * own + self._share * self._common)
        self._common = reweighted(self._common, probabilities, self._global_rate)

    def snapshot(self) -> dict[str, Any]:
        """Return the common weights and the weights of each user."""
        return {
            "common": self._common.tolist(),
            "weights": [[user, weights.tolist()] for user, weights in self._weights.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self._common = np.array(state["common"])
        self._weights = {user: np.array(weights) for user, weights in state["weights"]}


EXPERTS: Final = (
    Weighting(prior=1e6),  # in effect all users' jobs alone
    Weighting(1.0, 0.95, request=0.1, processors=0.3, executable=0.1, spread=0.05, scaled=1.0),
    Weighting(0.3, 0.90, request=0.03, processors=0.1, executable=0.03, spread=0.02, scaled=1.0),  # mostly repetitions
    Weighting(1.0, 0.70, request=0.5, spread=0.1, scaled=1.0),  # mostly the last few jobs, of any kind
    Weighting(1.0, 0.90, spread=0.05),  # jobs with any request
)


class ExpertsSettings(RunTimeSettings):
    """Settings of `Experts`."""

    window: int = Field(60, ge=1, le=1000, description="number of last ended jobs remembered of each user")
    rate: Rate = 0.1
    global_rate: GlobalRate = 0.01
    share: Share = 0.01
    forgetting: float = Field(
        0.005, ge=0, lt=1, description="share of the weight of earlier jobs of a class that each ended job removes"
    )
    beyond: float = Field(0.5, ge=0, le=1, description=BEYOND)
    hmm: bool = Field(False, description="whether the posterior mixture of `hmm` is one more expert")

    def price(self) -> Price:
        """Return the price of the users' last jobs and weights, and of predictions for jobs in the system."""
        price = price_of_users(self.window)
        price = price.plus(price_of_weights(len(EXPERTS)), Price(steps=4 * price.steps))
        return price.plus(HmmSettings().price()) if self.hmm else price


class Experts(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict a mixture of distributions, weighted by how well each has predicted the jobs that ended.

    The experts are weighted histograms of the user's last jobs as in `SimilarJobs`. They differ in their measure of
    similarity, and in the weight of all users' jobs. With the setting `hmm`, the hidden Markov model is one more
    expert. Each user has separate weights, which begin as the common weights. An expert is judged by its prediction at
    submission.

    Memory is bounded by users times window, by the classes, and by the jobs in the system.

    >>> experts = Experts(ExpertsSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in [5] * 40:
    ...     experts.observe(job)
    ...     experts.learn_one(job, run_time)
    >>> round(experts.predict_one(job).point), int(experts.weights(job).argmax())
    (4, 0)

    References: docs/algorithms.md#experts (Cesa-Bianchi 2006, sections 3.3 and 5.2, for log loss and fixed share; Cappé
    2009).
    """

    name = "experts"
    Settings = ExpertsSettings

    def __init__(self, settings: ExpertsSettings) -> None:
        self._similar = SimilarJobs(settings.window, EXPERTS, settings.forgetting, 3, settings.beyond)
        self._others: list[Predictor[JobSubmitted, int, RunTimePrediction]] = []
        if settings.hmm:
            self._others.append(Hmm(HmmSettings(state="posterior")))
        experts = len(EXPERTS) + len(self._others)
        self._user_weights = UserWeights(experts, settings.rate, settings.global_rate, settings.share)
        self._outcomes: dict[int, Masses] = {}  # by job number: the probability of each outcome by each expert
        self.masses = LastValue(self._masses)
        """Histogram that each expert predicts for a job, shape (experts, BINS), or None before any job has ended."""

    def weights(self, x: JobSubmitted) -> Weights:
        """Return the weight of each expert for this job."""
        return self._user_weights.of(x)

    def _masses(self, x: JobSubmitted) -> Masses | None:
        """Return the histogram of each expert, or None before any job has ended.

        For `hmm` without a prediction yet, the histogram of the first expert is used: that of all users' jobs.
        """
        masses = self._similar.masses(x)
        if masses is None or not self._others:
            return masses
        others = np.repeat(masses[:1], len(self._others), axis=0)
        for row, other in zip(others, self._others, strict=True):
            outcomes = other.predict_one(x)
            if outcomes is not None:
                row[:] = 0.0
                row[: len(outcomes.histogram)] = outcomes.histogram
                row /= row.sum()

        return np.concatenate((masses, others))

    def last_jobs(self, x: JobSubmitted) -> Jobs:
        """Return the last ended jobs of the same user."""
        return self._similar.last_jobs(x)

    def mixture(self, x: JobSubmitted) -> Masses | None:
        """Return the weighted mean of the experts' histograms, shape (BINS,), or None before any job has ended."""
        masses = self.masses(x)
        return None if masses is None else self.weights(x) @ masses

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the mixture, or None before any job has ended."""
        mixture = self.mixture(x)
        if mixture is None:
            return None
        return RunTimePrediction.of(mixture, x.requested_time, self._similar.observations(x))

    def observe(self, event: Event) -> None:
        """Store the predictions of the experts for a job from its submission until it ends or is withdrawn."""
        if isinstance(event, JobSubmitted) and len(self._outcomes) < MAX_JUDGED:
            masses = self.masses(event)
            if masses is not None:
                self._outcomes[event.job_number] = np.array(
                    [outcome_masses(predicted, limit(event)) for predicted in masses]
                )
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self._outcomes.pop(event.job_number, None)

        for other in self._others:
            other.observe(event)
        self.masses.forget()

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Judge the experts by the run time `y` in seconds, and let them learn it."""
        outcomes = self._outcomes.get(x.job_number)
        if outcomes is not None:
            self._user_weights.judge(x, np.ascontiguousarray(outcomes[:, outcome_of(y, limit(x))]))
        for expert in (self._similar, *self._others):
            expert.learn_one(x, y)
        self.masses.forget()

    def snapshot(self) -> Any:
        """Return the state of the experts, the weights, and the predictions for the jobs in the system."""
        return {
            "similar": self._similar.snapshot(),
            "others": [other.snapshot() for other in self._others],
            **self._user_weights.snapshot(),
            "said": [[job_number, outcomes.tolist()] for job_number, outcomes in self._outcomes.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._similar.restore(state["similar"])
        for other, known in zip(self._others, state["others"], strict=True):
            other.restore(known)
        self._user_weights.restore(state)
        self._outcomes = {job_number: np.array(outcomes) for job_number, outcomes in state["said"]}
        self.masses.forget()


def limit(job: JobSubmitted) -> float:
    """Return the request of a job in seconds, or infinity if there is none."""
    return float("inf") if job.requested_time is None else float(job.requested_time)
