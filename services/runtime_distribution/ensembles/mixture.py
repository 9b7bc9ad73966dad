"""A recalibrated mixture of several kinds of predictors, each weighted by how well it has predicted."""

from collections.abc import Iterator
from typing import Annotated, Any, Final, NamedTuple

import numpy as np
from pydantic import AfterValidator, Field, ValidationError

from shadowtime.services.runtime_distribution.empirical import Empirical, EmpiricalRequest
from shadowtime.services.runtime_distribution.ensembles.boosted import Boosted
from shadowtime.services.runtime_distribution.ensembles.experts import (
    MAX_JUDGED,
    Experts,
    GlobalRate,
    Rate,
    Share,
    UserWeights,
    Weights,
    limit,
    price_of_weights,
)
from shadowtime.services.runtime_distribution.ensembles.fine_prediction import fine_prediction
from shadowtime.services.runtime_distribution.ensembles.recalibration import PitRecalibration
from shadowtime.services.runtime_distribution.ensembles.within_bins import (
    AtRequest,
    NearRequest,
    parts_of,
    spread,
    transformed_within,
)
from shadowtime.services.runtime_distribution.hmm import Hmm
from shadowtime.services.runtime_distribution.revisable import RunTimeSettings
from shadowtime.services.runtime_distribution.templates import Templates
from shadowtime.services.runtime_distribution.weighted_jobs import UserHistories, price_of_users
from shadowtime.shared.distributions import outcome_of, packed_numbers, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, JobWithdrawn, RunTimePrediction
from shadowtime.shared.quoting import among, quote
from shadowtime.shared.spec import Price, SpecSettings, wrong_key
from shadowtime.shared.stages import LastValue, Predictor

KINDS: Final[dict[str, type[Any]]] = {
    predictor.name: predictor for predictor in (Boosted, Empirical, EmpiricalRequest, Experts, Hmm, Templates)
}
"""Predictors of distributions, by name."""

REMEMBERING: Final = (Boosted, Templates)
"""Predictors whose `history` counts ended jobs."""

REMEMBERED: Final = 60
"""Number of the user's last ended jobs from which a mixture estimates the distribution within bins."""

LEAST: Final = 1e-9
"""Smallest weight of a kind, so that weights can be normalised even if only a kind of weight 0 has a prediction."""


def _mixed(kinds: str) -> str:
    """Return the names of kinds without spaces. Raise `ValueError` if a kind is unknown, repeated or not installed."""
    names = [kind.strip() for kind in kinds.split("+")]
    for number, name in enumerate(names):
        if name not in KINDS:
            raise ValueError(f"unknown kind {quote(name)}{among(name, KINDS)}")
        if name in names[:number]:
            raise ValueError(f"{name} occurs twice; name each kind once")
        try:
            KINDS[name].Settings()
        except ValidationError as error:
            raise ValueError(str(wrong_key(name, error))) from None

    return "+".join(names)


class MixtureSettings(RunTimeSettings):
    """Settings of `Mixture`."""

    kinds: Annotated[str, AfterValidator(_mixed)] = Field(
        "experts+templates+empirical-request+hmm",
        description=f"mixed predictors, each with its defaults, joined by +; any of {', '.join(KINDS)}",
    )
    history: int = Field(
        20_000, ge=500, le=50_000, description="number of last ended jobs that templates and boosted trees remember"
    )
    rate: Rate = 0.1
    global_rate: GlobalRate = 0.01
    share: Share = 0.01

    def price(self) -> Price:
        """Return the price of all kinds, of the users' weights, and of the predictions for jobs in the system."""
        prices = [settings.price() for _, settings in self.members()]
        return price_of_weights(len(prices)).plus(price_of_users(REMEMBERED), *prices)

    def members(self) -> Iterator[tuple[type[Any], SpecSettings]]:
        """Yield the class of each kind and its settings, in order."""
        for predictor in (KINDS[name] for name in self.kinds.split("+")):
            keys = {"history": self.history} if predictor in REMEMBERING else {}
            yield predictor, predictor.Settings(**keys)


class JudgedOutcomes(NamedTuple):
    """The predictions for a job, from which weights and recalibration are updated when the job ends."""

    outcomes: FloatTable
    """Probability of each outcome (`shared.distributions.outcomes`) by each kind, shape (kinds, bin of the limit + 2),
    rows adding up to 1. A kind without a prediction has the probabilities of the mixture."""
    fine: Floats
    """Fine masses of the mixture (`within_bins`), before recalibration."""


class Mixture(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict a mixture of the distributions of several kinds of predictors, weighted by how well each has predicted.

    Each user has separate weights, which begin as the common weights. The jobs of a new user get the common weights. A
    kind is judged by its prediction at submission. A kind without a prediction is left out. It is judged as the mixture
    of the others, so the outcome hardly changes its weight. Some kinds do not distinguish an end at the request from an
    end shortly before it. The mass of these two outcomes is then split by how often the user's jobs reached their
    requests. The mixture is spread within the bins like the user's run times, and then recalibrated. The point is the
    median.

    Memory is bounded by that of the kinds, by users, and by the jobs in the system. Besides the cost of the kinds, a
    prediction is O(kinds · bins + REMEMBERED), an end O(kinds + bins).

    >>> mixture = Mixture(MixtureSettings(kinds="templates+empirical"))
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for run_time in [5, 500] * 20:
    ...     mixture.observe(job)
    ...     mixture.learn_one(job, run_time)
    >>> prediction = mixture.predict_one(job)
    >>> [round(value) for value in prediction.quantiles[::6]], mixture.weights(job).round(2).tolist()
    ([5, 5, 489, 514], [0.51, 0.49])

    References: docs/algorithms.md#mixture (Cesa-Bianchi 2006, sections 3.3 and 5.2; Cappé 2009; Freund 1997; Kuleshov
    2018).
    """

    name = "mixture"
    Settings = MixtureSettings

    def __init__(self, settings: MixtureSettings) -> None:
        self.kinds: list[Predictor[JobSubmitted, int, RunTimePrediction]] = [
            predictor(its) for predictor, its in settings.members()
        ]
        """Predictors that are mixed, in the order of the setting."""
        self._user_weights = UserWeights(len(self.kinds), settings.rate, settings.global_rate, settings.share)
        self._histories = UserHistories(REMEMBERED)
        self._near, self._at_request = NearRequest(), AtRequest()
        self._recalibration = PitRecalibration()
        self._judged: dict[int, JudgedOutcomes] = {}  # of the jobs in the system, by job number
        self._ended = 0
        self.says = LastValue(self._says)
        """Prediction for a job now, before recalibration, or None while no kind has one."""

    def weights(self, x: JobSubmitted) -> Weights:
        """Return the weight of each kind for this job."""
        return self._user_weights.of(x)

    def _says(self, x: JobSubmitted) -> JudgedOutcomes | None:
        outcomes = [self._outcomes_of(kind.predict_one(x), x) for kind in self.kinds]
        spoken = [number for number, outcome in enumerate(outcomes) if outcome is not None]
        if not spoken:
            return None
        weights = np.maximum(self.weights(x)[spoken], LEAST)
        mixed = weights / weights.sum() @ np.array([outcomes[number] for number in spoken])
        fine = spread(mixed, parts_of(self._histories.of(x), self._near.counts, limit(x)))
        return JudgedOutcomes(np.array([mixed if outcome is None else outcome for outcome in outcomes]), fine)

    def _outcomes_of(self, prediction: RunTimePrediction | None, x: JobSubmitted) -> Floats | None:
        if prediction is None or not any(prediction.histogram):
            return None
        outcomes = prediction.outcomes(limit(x))
        if prediction.at_request is not None:
            return outcomes
        return self._at_request.apart(outcomes, self._histories.of(x), limit(x))

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the recalibrated mixture, or None if no kind has a prediction."""
        prediction = self.says(x)
        if prediction is None:
            return None
        observations = len(self._histories.of(x)) or self._ended
        return fine_prediction(self._recalibration.moved(prediction.fine), x, observations)

    def observe(self, event: Event) -> None:
        """Store the predictions for a job from its submission until it ends or is withdrawn."""
        if isinstance(event, JobSubmitted) and len(self._judged) < MAX_JUDGED:
            prediction = self.says(event)
            if prediction is not None:
                self._judged[event.job_number] = prediction
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self._judged.pop(event.job_number, None)

        for kind in self.kinds:
            kind.observe(event)
        self.says.forget()

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Judge the kinds and the mixture by the run time `y` in seconds. Then let the kinds learn it."""
        prediction = self._judged.get(x.job_number)
        if prediction is not None:
            self._user_weights.judge(x, np.ascontiguousarray(prediction.outcomes[:, outcome_of(y, limit(x))]))
            self._recalibration.learn(*transformed_within(prediction.fine, y, limit(x)))
        self._ended += 1
        self._histories.learn(x, y)
        self._near.learn(y, limit(x))
        self._at_request.learn(y, limit(x))
        for kind in self.kinds:
            kind.learn_one(x, y)
        self.says.forget()

    def snapshot(self) -> Any:
        """Return the state of the kinds, the weights, and the predictions for the jobs in the system."""
        return {
            "kinds": [kind.snapshot() for kind in self.kinds],
            **self._user_weights.snapshot(),
            "histories": self._histories.snapshot(),
            "near": self._near.snapshot(),
            "at_request": self._at_request.snapshot(),
            "recalibration": self._recalibration.snapshot(),
            "said": [[number, *map(packed_numbers, prediction)] for number, prediction in self._judged.items()],
            "ended": self._ended,
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        for kind, known in zip(self.kinds, state["kinds"], strict=True):
            kind.restore(known)
        self._user_weights.restore(state)
        self._histories.restore(state["histories"])
        self._near.restore(state["near"])
        self._at_request.restore(state["at_request"])
        self._recalibration.restore(state["recalibration"])
        self._judged = {
            number: JudgedOutcomes(*map(unpacked_numbers, prediction)) for number, *prediction in state["said"]
        }
        self._ended = state["ended"]
        self.says.forget()
