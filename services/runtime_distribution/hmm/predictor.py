"""A hidden Markov model of run times. Jobs that arrive within the same quarter of an hour share a hidden state."""

import math
from typing import Any, Final, Literal

import numpy as np
from numpy.random import PCG64, Generator
from pydantic import Field, ValidationInfo, field_validator

from shadowtime.services.runtime_distribution.hmm.filter import (
    Model,
    add_unfinished,
    forward,
    idled,
    log_likelihoods,
    propagate,
)
from shadowtime.services.runtime_distribution.hmm.learning import Method, learn, start, unlearned
from shadowtime.services.runtime_distribution.revisable import RunTimeSettings
from shadowtime.shared.distributions import BINS, bin_of, packed, unpacked
from shadowtime.shared.kernels import Floats, Integers
from shadowtime.shared.messages import (
    Count,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    RunTimePrediction,
    moment,
)
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Predictor

# Settings of `Hmm`, and its slices of time.

SLICE: Final = 900
"""Length of a slice in seconds."""

DAY: Final = 96
WEEK: Final = 7 * DAY
"""Number of slices in a week; `DAY` is the number in a day."""

MAX_LEARNED: Final = 40_960
"""Maximum of states² times weeks of history. It bounds the cost of learning, which happens within one event. 64 states
can learn from 10 weeks, 16 from 160."""


class HmmSettings(RunTimeSettings):
    """Settings of `Hmm`."""

    states: int = Field(16, ge=1, le=64, description="number of hidden states, each with a distribution of run times")
    state: Literal["posterior", "argmax"] = Field(
        "posterior",
        description="predict the mixture of all states by their probability, or the distribution of the likeliest",
    )
    learning: Method = Field(
        "baum-welch",
        description="learn the states from the sequence of slices (Baum-Welch), or as a mixture of slices (hard EM)",
    )
    evidence: Literal["unfinished", "ended"] = Field(
        "unfinished",
        description="evidence for the state: ended jobs and the elapsed times of unfinished jobs, or ended jobs only",
    )
    open: int = Field(
        16, ge=1, le=2 * WEEK, description="number of 15-minute slices within which a late end still corrects the state"
    )
    threshold: float = Field(
        3.0,
        ge=0,
        allow_inf_nan=False,
        description="learn again when the distance of the last two models times sqrt(ended jobs) reaches this",
    )
    history: int = Field(4, ge=2, le=160, description="weeks whose jobs are learned from")
    seed: Count = Field(0, description="seed of the random choice of the first states")

    @field_validator("history")
    @classmethod
    def _soon_learned(cls, history: int, info: ValidationInfo) -> int:
        states = info.data.get("states", 1)
        if states * states * history > MAX_LEARNED:
            raise ValueError(f"states={states} allows a history of at most {MAX_LEARNED // (states * states)} weeks")
        return history

    def price(self) -> Price:
        """Return the price of the table of slices and bins, and of learning from it."""
        counts = self.history * WEEK * (BINS + self.states)
        return Price(12 * counts + 12_000_000, 8 * counts, steps=10 * counts * self.states + 100_000_000)


MAX_COUNT: Final = np.iinfo(np.uint16).max

NUMBERS = ("first", "now", "ended", "rounds", "distance", "ended_at_learning")
"""Plain numbers in the state of `Hmm`."""


class Hmm(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Predict from the hidden state of the machine, by a hidden Markov model of quarters of an hour.

    Jobs that arrive within the same slice of 15 minutes have the same distribution of run times: that of the slice's
    state. A job counts in the slice of its arrival once it has ended. Until then, the time that it has run so far can
    be evidence. The last `open` slices are filtered anew for each prediction, so a late end still corrects the state.
    An end in an older slice is only used for learning.

    The first model is learned a week after the first event. If fewer jobs than states have ended by then, it is learned
    on a later day. After that, the model is improved at most once a day, if more jobs have ended and one of two
    conditions holds. First, the distance of its last two versions times √(ended jobs) is at least `threshold`. Second,
    the number of ended jobs has doubled, because hard EM may have stopped at a distance of 0. Distance and convergence
    are those of `learning.learn`. A state keeps its number from one model to the next.

    Memory is bounded by `history`, the weeks whose jobs are learned from. Jobs are counted by slice and bin in a table
    of fixed size. Nissimov 2007 learns from all jobs; on KTH the last four weeks give better predictions. A job that
    ends after its slice has left the table is ignored.

    The point is that of `RunTimePrediction.of`. `observations` is the mean number of jobs behind a state, weighted by
    the probabilities of the states. A prediction takes O(open (bins + states²) + states running jobs), an end O(1), a
    new slice O(bins + states²). Learning takes O(history states (bins + states)), at most 0.4 s within `MAX_LEARNED`
    (docs/cost.md). A jump in time costs O(states²) for each skipped slice, at most for the slices of `history`.

    >>> predictor = Hmm(HmmSettings(states=2))
    >>> for number in range(1000):  # half a day of short jobs, half a day of long ones
    ...     job = JobSubmitted(time=number * 1800, job_number=number, requested_processors=1, requested_time=36000)
    ...     if number in (0, 970, 990):
    ...         answer = predictor.predict_one(job)
    ...         print(number, answer and (round(answer.point), answer.observations))
    ...     predictor.learn_one(job, 7200 if number // 24 % 2 else 60)
    0 None
    970 (506, 336)
    990 (8579, 336)

    References: docs/algorithms.md#hidden-markov-model (Nissimov 2007, section 3).
    """

    name = "hmm"
    Settings = HmmSettings

    def __init__(self, settings: HmmSettings) -> None:
        self._settings = settings
        self._first: int | None = None  # slices are numbered by time // SLICE
        self._now = 0
        self._ended = 0
        self._rounds = 0  # number of times that a model was learned; 0: there is no model
        self._distance = 0.0
        self._ended_at_learning = 0
        self._arrived: dict[int, int] = {}  # slice of arrival of each job in the system, by job number
        self._started: dict[int, int] = {}  # start of each running job, in seconds
        self._counts = np.zeros((settings.history * WEEK, BINS), np.uint16)  # the row of a slice is its number % rows
        self._model = unlearned(settings.states, BINS)
        self._jobs = np.zeros(settings.states)  # number of jobs behind each state
        self._belief = start(settings.states)  # states of the oldest open slice, before its evidence

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        """Return the distribution of run times at the arrival of `x`, or None before the first model."""
        if not self._rounds:
            return None
        belief = self.belief(x.time)
        likeliest = int(belief.argmax())
        if self._settings.state == "argmax":
            belief = np.eye(len(belief))[likeliest]
        masses = (belief[:, None] * self._model.emission).sum(axis=0)
        return RunTimePrediction.of(masses, x.requested_time, round((belief * self._jobs).sum()), likeliest)

    def belief(self, time: int) -> Floats:
        """Return the probability of each state at `time` in seconds, now or in the future; shape (states,)."""
        slices = self._slices(self._settings.open)
        likelihoods = log_likelihoods(self._counts[slices % len(self._counts)], self._model.emission)
        if self._settings.evidence == "unfinished" and self._started:
            running = [
                (self._arrived[number] - slices[0], max(time - begin, 0.0))
                for number, begin in self._started.items()
                if self._arrived[number] >= slices[0]
            ]
            rows, elapsed = np.array(running, np.float64).reshape(-1, 2).T
            add_unfinished(likelihoods, rows.astype(np.int64), np.ascontiguousarray(elapsed), self._model.emission)

        filtered = forward(likelihoods, self._model.transition, self._belief)
        return propagate(filtered[-1], self._model.transition, max(time // SLICE - self._now, 0))

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        """Count the run time `y` in seconds in the slice in which `x` arrived."""
        self._advance(x.time)
        slice_ = x.time // SLICE
        if slice_ >= self._oldest(len(self._counts)):
            row, column = slice_ % len(self._counts), bin_of(float(y))
            self._counts[row, column] += self._counts[row, column] < MAX_COUNT
            self._ended += 1

    def observe(self, event: Event) -> None:
        """Advance the time, and track which jobs wait and run."""
        if isinstance(event, JobWithdrawn):
            self._arrived.pop(event.job_number, None)
        if not isinstance(event, JobSubmitted | JobStarted | JobEnded):
            return
        self._advance(event.time)
        if self._settings.evidence == "ended":
            return
        if isinstance(event, JobSubmitted):
            self._arrived[event.job_number] = event.time // SLICE
        elif isinstance(event, JobStarted):
            self._started[event.job_number] = moment(event)
        else:
            self._started.pop(event.job_number, None)
            if not event.requeued:
                self._arrived.pop(event.job_number, None)

    def _oldest(self, count: int) -> int:
        """Return the number of the oldest of the last `count` slices, or of the first slice of all."""
        return max(self._now - count + 1, self._first or 0)

    def _slices(self, count: int) -> Integers:
        """Return the numbers of the last `count` slices, or of all slices since the first if they are fewer."""
        return np.arange(self._oldest(count), self._now + 1)

    def _advance(self, time: int) -> None:
        """Advance to the slice of `time`, in seconds."""
        now = time // SLICE
        if self._first is None:
            self._first = self._now = now
        skipped = now - self._now - len(self._counts)
        to = min(now, self._now + len(self._counts))
        closed = min(to, self._now + self._settings.open)  # slices that close later are newer and have no jobs
        while self._now < closed:
            self._next_slice()
        self._idle(to)
        if skipped > 0:  # no job is left in the table by now
            self._now = now
            self._belief = propagate(self._belief, self._model.transition, skipped)

    def _next_slice(self) -> None:
        first = self._first or 0
        self._now += 1
        self._counts[self._now % len(self._counts)] = 0
        closing = self._now - self._settings.open
        if self._rounds and closing >= first:
            row = closing % len(self._counts)
            likelihoods = log_likelihoods(self._counts[row : row + 1], self._model.emission)
            filtered = forward(likelihoods, self._model.transition, self._belief)
            self._belief = propagate(filtered[0], self._model.transition, 1)

        if self._now - first >= WEEK and (self._now - first) % DAY == 0 and self._due():
            self._learn()

    def _idle(self, to: int) -> None:
        """Advance to slice `to`, where all slices that close on the way are empty.

        Each step ends at the next day, where the model may be learned. The result is bit-identical to `_next_slice`
        slice by slice.
        """
        first, left = self._first or 0, True
        while self._now < to:
            day = first + ((self._now - first) // DAY + 1) * DAY
            until = min(to, day)
            self._counts[np.arange(self._now + 1, until + 1) % len(self._counts)] = 0
            if self._rounds:
                self._belief = idled(self._belief, self._model.transition, until - self._now)
            self._now = until
            if left and until == day and until - first >= WEEK and self._due():
                left = self._learn()

    def _due(self) -> bool:
        if not self._rounds:
            return self._ended >= self._settings.states
        grown = self._distance * math.sqrt(self._ended) >= self._settings.threshold
        return self._ended > self._ended_at_learning and (grown or self._ended >= 2 * self._ended_at_learning)

    def _learn(self) -> bool:
        """Learn a model from the table. Return False if the table has no jobs."""
        counts = self._counts[self._slices(len(self._counts)) % len(self._counts)]
        if not counts.any():
            return False
        chance = Generator(PCG64([self._settings.seed, self._rounds]))
        self._model, self._distance, self._jobs = learn(
            counts, self._model, self._settings.learning, self._settings.threshold, self._ended, chance
        )
        self._rounds += 1
        self._ended_at_learning = self._ended
        self._belief = start(self._settings.states)
        closed = counts[: max(len(counts) - self._settings.open, 0)]
        if len(closed):
            filtered = forward(log_likelihoods(closed, self._model.emission), self._model.transition, self._belief)
            self._belief = propagate(filtered[-1], self._model.transition, 1)
        return True

    def snapshot(self) -> Any:
        """Return the whole state. The table of 16-bit numbers, mostly 0, is compressed and encoded as base64."""
        return {
            **{name: getattr(self, f"_{name}") for name in NUMBERS},
            "arrived": [list(pair) for pair in self._arrived.items()],
            "started": [list(pair) for pair in self._started.items()],
            "counts": packed(self._counts.astype("<u2").tobytes()),
            "emission": self._model.emission.tolist(),
            "transition": self._model.transition.tolist(),
            "jobs": self._jobs.tolist(),
            "belief": self._belief.tolist(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        states = self._settings.states
        for name in NUMBERS:
            setattr(self, f"_{name}", state[name])

        self._arrived = dict(state["arrived"])
        self._started = dict(state["started"])
        counts = np.frombuffer(unpacked(state["counts"]), "<u2")
        self._counts = counts.reshape(self._counts.shape).astype(np.uint16)
        self._model = Model(
            np.array(state["emission"]).reshape(states, BINS), np.array(state["transition"]).reshape(states, states)
        )
        self._jobs = np.array(state["jobs"]).reshape(states)
        self._belief = np.array(state["belief"]).reshape(states)
