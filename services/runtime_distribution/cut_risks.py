"""Calibrated probabilities that a job is cut at a request: its own request, or a hypothetical one.

A predicted histogram does not separate ends at the request from ends just before it, and its tail may be wrong. So each
histogram is spread within its bins like the run times of the user (`ensembles/within_bins.py`). Then the outcomes of
earlier predictions correct the resulting risks (docs/algorithms.md#risk-of-being-cut).
"""

import math
from bisect import bisect_left
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from shadowtime.services.runtime_distribution.ensembles import (
    AtRequest,
    NearRequest,
    apart_at_request,
    count_near,
    count_reached,
    parts_of,
    quantiles_of,
    spread,
    transformed_within,
)
from shadowtime.services.runtime_distribution.history import lru_put
from shadowtime.services.runtime_distribution.weighted_jobs import UserHistories
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.distributions import cut_probability, packed_numbers, predicted_outcomes, unpacked_numbers
from shadowtime.shared.kernels import Floats, FloatTable, IntegerTable, kernel
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import Price

KNOTS: Final = np.array([0, 0.01, 0.02, 0.035, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0])
"""Stated risks at which predictions are compared with outcomes. Between them the correction is linear."""

PRIOR: Final = 10.0
"""Pseudo-count of outcomes that agree with the stated risk, at each knot, so that a few jobs change little."""

KEPT: Final = 0.998
"""Factor on the counts of a knot with each job that counts there, so that about the last 500 count."""

REMEMBERED: Final = 20
"""Number of the user's last jobs that shape the distribution within bins. By `RECENCY`, older jobs hardly count."""

MAX_USERS: Final = 5_000
"""Maximum number of users whose last run times are stored."""

MAX_PENDING: Final = 5_000
"""Maximum number of jobs in the system whose predictions are stored. Jobs submitted beyond this number do not count."""

MAX_PLACES: Final = 1_000
"""Maximum number of places (pool, partition, queue) whose longest request is remembered."""

MAX_LATE: Final = 256
"""Number of submissions and ends that are applied together, unless a risk is asked for before."""

PRICE: Final = Price(
    MAX_USERS * (40 * REMEMBERED + 600) + (MAX_PENDING + MAX_LATE) * 4_000, MAX_PENDING * 6_000, MAX_LATE * 40_000
)

MINUTE: Final = 60
"""Unit of the requests at knots, in seconds."""


@kernel
def correct(record: FloatTable, outcome: FloatTable) -> None:
    """Add an outcome to the counts and the excess of a record, its two rows, in place.

    The rows of the outcome are its weight and its difference at each knot. A difference is the outcome, 0 or 1, less
    the stated risk. Earlier outcomes lose weight (`KEPT`) only at knots where the new one has a weight above 0.

    >>> record = np.zeros((2, 2))
    >>> correct(record, np.array([[0.0, 1.0], [0.5, 0.5]]))
    >>> record.tolist()
    [[0.0, 1.0], [0.0, 0.5]]
    """
    for k in range(record.shape[1]):
        kept = 1.0 - outcome[0, k] * (1.0 - KEPT)
        record[0, k] = kept * record[0, k] + outcome[0, k]
        record[1, k] = kept * record[1, k] + outcome[0, k] * outcome[1, k]


@kernel
def risk_within(fine: Floats, time: float, limit: float) -> float:
    """Return the probability, by fine masses (`within_bins`), of a run longer than `time` seconds, below the limit.

    >>> round(risk_within(np.array([0.1] + [0.8] + [0.0] * 7 + [0.1]), 1.5, 1.8), 3)
    0.1
    """
    return 1.0 - transformed_within(fine, time, limit)[1]


@kernel
def compared(fine: Floats, run_time: float, limit: float) -> FloatTable:
    """Return the weight and the difference at each knot as for `correct`, shape (2, knots).

    The request at a knot is the shortest in whole minutes with at most the risk of the knot. The outcome is 1 if the
    job ran longer than that request. The weight is 1 if that request is shorter than the limit, the job's own request.
    Otherwise both numbers are 0. Times are in seconds.

    >>> fine = np.array([0.0] * 9 + [1.0] + [0.0] * 103 + [0.0])
    >>> compared(fine, 30.0, 3600.0)[:, [1, 16]].tolist()
    [[1.0, 1.0], [0.0, 0.0]]
    """
    last = len(KNOTS) - 1
    outcomes = np.zeros((2, last + 1))
    times = quantiles_of(fine, limit, 1.0 - KNOTS[::-1])
    for k in range(last + 1):
        request = MINUTE * math.ceil(times[last - k] / MINUTE)
        if request < limit:
            outcomes[0, k] = 1.0
            outcomes[1, k] = (1.0 if run_time > request else 0.0) - risk_within(fine, request, limit)

    return outcomes


@kernel
def compared_at_request(stated: float, cut: bool) -> FloatTable:
    """Return the weight and the difference at each knot as for `correct`, for the stated risk at a job's own request.

    The outcome is whether the job was cut. Only the knots next to the risk have a weight: 1 less their distance from
    the risk, in gaps between knots.

    >>> compared_at_request(0.14, True)[:, 5:8].round(2).tolist()
    [[0.0, 0.2, 0.8], [0.86, 0.86, 0.86]]
    """
    place = np.interp(stated, KNOTS, np.arange(len(KNOTS)))
    outcome = np.empty((2, len(KNOTS)))
    for k in range(len(KNOTS)):
        outcome[0, k] = max(1.0 - abs(k - place), 0.0)
        outcome[1, k] = (1.0 if cut else 0.0) - stated
    return outcome


@kernel
def stated_masses(
    histogram: Floats, at_request: float, jobs: IntegerTable, near: Floats, reached: Floats, limit: float
) -> Floats:
    """Return the fine masses (`within_bins`) of a predicted histogram, spread like the last jobs of the user.

    `at_request` is the predicted probability that the job reaches its request, negative if only the histogram is
    predicted: then `jobs` and `reached` decide. `near` and `reached` are the counts of `NearRequest` and `AtRequest`.

    >>> nobody, near, reached = np.zeros((0, 4), np.int64), np.full(8, 2.0), np.full(2, 2.0)
    >>> stated_masses(np.array([0.5, 0.5]), -1.0, nobody, near, reached, 1.8)[[0, -1]].tolist()
    [0.5, 0.25]
    """
    outcomes = predicted_outcomes(histogram, limit, at_request)
    if at_request < 0.0:
        outcomes = apart_at_request(outcomes, jobs, reached, limit)
    return spread(outcomes, parts_of(jobs, near, limit))


@kernel
def learn_end(
    fine: Floats,
    run_time: float,
    limit: float,
    cut: bool,
    own: FloatTable,
    shorter: FloatTable,
    near: Floats,
    reached: Floats,
) -> None:
    """Add an ended job to all records in place: the two of `RiskRecord`, and the counts of all users' jobs.

    `fine` are the masses from which the risks were stated. The times are the run time and the request, in seconds.
    """
    correct(shorter, compared(fine, run_time, limit))
    correct(own, compared_at_request(fine[-1], cut))
    count_near(near, run_time, limit)
    count_reached(reached, run_time, limit)


class RiskRecord:
    """The differences between stated risks and outcomes at `KNOTS`.

    >>> record = RiskRecord()
    >>> for _ in range(1_000):
    ...     correct(record.sums, np.array([np.where(KNOTS == 0.5, 1.0, 0.0), 0.2 - KNOTS]))
    >>> record.corrected()[[6, 11]].round(1).tolist()
    [0.1, 0.2]
    """

    def __init__(self) -> None:
        self.sums = np.zeros((2, len(KNOTS)))
        """The two rows of `correct`: counts, and excess."""

    def corrected(self) -> Floats:
        """Return the corrected risk at each knot. It never falls as the stated risk rises."""
        from scipy.optimize import isotonic_regression  # here: the import is slow, and only advice needs it

        weights = self.sums[0] + PRIOR
        risks = np.clip(KNOTS + self.sums[1] / weights, 0.0, 1.0)
        corrected: Floats = isotonic_regression(risks, weights=weights).x
        return corrected

    def snapshot(self) -> Any:
        """Return counts and differences."""
        return self.sums.tolist()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self.sums = np.array(state)


class CutRisk:
    """The risk of a job of being cut, as a function of its request. It never rises as the request rises."""

    def __init__(self, fine: Floats, prediction: RunTimePrediction, request: int, records: "CutRisks") -> None:
        self._fine, self._request = fine, float(request)
        self._masses = np.array(prediction.histogram)
        self._shorter = records.shorter.corrected()
        self._at_request = float(np.interp(fine[-1], KNOTS, records.own.corrected()))

    def of(self, time: float) -> float:
        """Return the probability that the job runs longer than `time`, in seconds.

        The full run time of a job that was cut is unknown. So beyond the request, the tail of the predicted histogram
        is the only source, and no record corrects it.
        """
        if time < self._request:
            stated = risk_within(self._fine, float(time), self._request)
            return max(float(np.interp(stated, KNOTS, self._shorter)), self._at_request)
        if time == self._request:
            return self._at_request
        beyond = cut_probability(self._masses, self._request)
        return self._at_request * min(cut_probability(self._masses, time) / beyond, 1.0) if beyond > 0.0 else 0.0

    def needed(self, risk: float) -> int:
        """Return the shortest request in whole seconds with at most this risk; `MAX_DURATION` if there is none.

        O(log(MAX_DURATION) · bins).
        """
        return bisect_left(range(MAX_DURATION), True, lo=1, key=lambda time: self.of(time) <= risk)


class CutRisks:
    """The record of predictions of one run, from which the risks of new jobs are corrected.

    Two records are kept. The first compares the stated risk at a job's own request with whether the job was cut there.
    The second is for shorter requests. It considers the request that has the risk of a knot. If this request is shorter
    than the job's own, the risk is compared with whether the job ran longer. A job counts when it ends, by its
    prediction at submission.

    Nothing is learned before the first prediction with a histogram, and nothing from a job without a request.

    Most runs are never asked for a risk. So submissions and ends are noted, and applied in order, many at a time. One
    at a time, they would displace the code and data of the other stages from the processor's caches.

    >>> risks, masses = CutRisks(), (0.0,) * 14 + (1.0,)
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> prediction = RunTimePrediction(point=3000.0, observations=5, histogram=masses)
    >>> for _ in range(1_000):
    ...     risks.submit(job, prediction)
    ...     risks.learn(job, 3590, cut=False)
    >>> round(risks.of(job, prediction).of(3600), 2), risks.of(job, prediction).needed(0.05) > 3500
    (0.0, True)

    References: docs/algorithms.md#risk-of-being-cut (Kuleshov 2018, section 3).
    """

    def __init__(self) -> None:
        self._histories = UserHistories(REMEMBERED, MAX_USERS)
        self._near, self._reached = NearRequest(), AtRequest()
        self.own, self.shorter = RiskRecord(), RiskRecord()
        self._pending: dict[int, tuple[int, Floats]] = {}  # of the jobs in the system: request, and fine masses
        self._longest: dict[tuple[int | None, ...], int] = {}
        self._late: list[tuple[Callable[..., object], tuple[Any, ...]]] = []  # calls that are not made yet

    def _later(self, apply: Callable[..., object], *arguments: Any) -> None:
        self._late.append((apply, arguments))
        if len(self._late) == MAX_LATE:
            self._catch_up()

    def _catch_up(self) -> None:
        for apply, arguments in self._late:
            apply(*arguments)
        self._late.clear()

    def _fine(self, job: JobSubmitted, prediction: RunTimePrediction, request: int) -> Floats:
        histogram, at_request = np.array(prediction.histogram), prediction.kernel_at_request
        near, reached = self._near.counts, self._reached.counts
        fine: Floats = stated_masses(histogram, at_request, self._histories.of(job), near, reached, float(request))
        return fine

    def of(self, job: JobSubmitted, prediction: RunTimePrediction | None) -> CutRisk | None:
        """Return the risk of a job that is submitted now; None without a predicted histogram or a request."""
        if prediction is None or job.requested_time is None or not any(prediction.histogram):
            return None
        self._catch_up()
        return CutRisk(self._fine(job, prediction, job.requested_time), prediction, job.requested_time, self)

    def longest(self, job: JobSubmitted) -> int:
        """Return the longest request so far in the job's pool, partition and queue, in seconds; 0 if there is none.

        A pool, partition or queue that the job does not name matches all. A request of this length was accepted there.
        O(places).
        """
        self._catch_up()
        own = _place(job)
        fits = (
            request
            for place, request in self._longest.items()
            if all(mine is None or mine == its for mine, its in zip(own, place, strict=True))
        )
        return max(fits, default=0)

    def submit(self, job: JobSubmitted, prediction: RunTimePrediction | None) -> None:
        """Store the prediction of a submitted job until the job ends. Without a histogram or a request, do nothing."""
        if prediction is not None and job.requested_time is not None and any(prediction.histogram):
            self._later(self._store, job, prediction, job.requested_time)

    def _store(self, job: JobSubmitted, prediction: RunTimePrediction, request: int) -> None:
        place = _place(job)
        lru_put(self._longest, place, max(request, self._longest.get(place, 0)), MAX_PLACES)
        if len(self._pending) < MAX_PENDING:
            self._pending[job.job_number] = request, self._fine(job, prediction, request)

    def forget(self, job_number: int) -> None:
        """Drop the prediction of a job that was withdrawn."""
        self._later(self._pending.pop, job_number, None)

    def learn(self, job: JobSubmitted, run_time: int, *, cut: bool) -> None:
        """Compare the run time of an ended job, in seconds, with its prediction at submission.

        `cut` states whether the job ended at its request. Without a stored prediction, nothing is learned.
        """
        self._later(self._compare, job, run_time, cut)

    def _compare(self, job: JobSubmitted, run_time: int, cut: bool) -> None:
        request, fine = self._pending.pop(job.job_number, (None, None))
        if request is None or fine is None:
            return
        records = self.own.sums, self.shorter.sums, self._near.counts, self._reached.counts
        learn_end(fine, float(run_time), float(request), cut, *records)
        self._histories.learn(job, min(run_time, request))

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        self._catch_up()
        return {
            "histories": self._histories.snapshot(),
            "near": self._near.snapshot(),
            "reached": self._reached.snapshot(),
            "own": self.own.snapshot(),
            "shorter": self.shorter.snapshot(),
            "pending": [[number, request, packed_numbers(fine)] for number, (request, fine) in self._pending.items()],
            "longest": [[*place, request] for place, request in self._longest.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._late.clear()
        self._histories.restore(state["histories"])
        self._near.restore(state["near"])
        self._reached.restore(state["reached"])
        self.own.restore(state["own"])
        self.shorter.restore(state["shorter"])
        self._pending = {number: (request, unpacked_numbers(fine)) for number, request, fine in state["pending"]}
        self._longest = {tuple(place): request for *place, request in state["longest"]}


def _place(job: JobSubmitted) -> tuple[int | None, ...]:
    return job.pool, job.partition_number, job.queue_number
