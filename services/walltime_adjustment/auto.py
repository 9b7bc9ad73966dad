"""The adjuster that chooses key, window and percentile by the accuracy that each combination would have had so far."""

from typing import Any, NamedTuple

import numpy as np
from pydantic import Field

from shadowtime.services.walltime_adjustment.cut import cuts, positions
from shadowtime.services.walltime_adjustment.keys import WINDOWS, Traits, coarser
from shadowtime.services.walltime_adjustment.percentile import ratio
from shadowtime.services.walltime_adjustment.scheme_scores import SchemeScores, Times
from shadowtime.services.walltime_adjustment.settings import AdjustmentSettings
from shadowtime.services.walltime_adjustment.sliding_ratios import SlidingRatios
from shadowtime.shared.distributions import bin_of
from shadowtime.shared.messages import Event, JobEnded, JobSubmitted, JobWithdrawn, WalltimeAdjustment
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import Predictor

CHAINS = ("user", "user+request", "user+project+request", "project")
"""Keys of the schemes. If a key has too little history, its coarser keys are used."""

SPANS = ("1m", "6m")
PERCENTILES = (50, 70, 80, 85, 90, 95, 100)

MAX_ENDED = 100_000
"""Maximum number of ended jobs that are kept: half a year of jobs in any log of the archive. After a long time without
events, ten samples (five keys, two windows) must be sorted anew."""

NAMES = tuple(dict.fromkeys(name for chain in CHAINS for name in reversed(coarser(chain))))
"""Names of the keys whose ratios are kept, over every span; coarser keys come first."""

COARSER = {name: [NAMES.index(other) for other in coarser(name)[1:]] for name in NAMES}

Proposal = tuple[Times, list[tuple[str, int] | None]]
"""Adjusted requests of all schemes for a job, in seconds; and for each of `SOURCES` its key and number of jobs."""

Record = list[tuple[int, list[float]] | None]
"""Statistics of a key for a job in each span: number of similar jobs and `PERCENTILES` of ratios; None if too few."""

SOURCES = [[(NAMES.index(name), span) for name in coarser(chain)] for chain in CHAINS for span in range(len(SPANS))]
"""Sources of percentiles: the keys of a chain over one span, as indices into `NAMES` and `SPANS`, finest key first."""

SCHEMES = len(CHAINS) * len(SPANS) * len(PERCENTILES) + 1
"""Number of schemes. The last one adjusts nothing."""


class AutoSettings(AdjustmentSettings):
    """Settings of `Auto`."""

    bad: float = Field(
        0.02,
        ge=0,
        le=1,
        description="maximum accepted share of jobs that run at least half an hour longer than their adjusted request",
    )

    def price(self) -> Price:
        """Return the price of the ratios of `MAX_ENDED` jobs, no two of them similar, sorted for each key and span."""
        return Price(500 * len(NAMES) * MAX_ENDED, 600 * MAX_ENDED, steps=5_000 * MAX_ENDED)


class Proposals(NamedTuple):
    """Proposals of all schemes for one job: adjusted requests in seconds, shape (schemes,); chosen scheme's index."""

    adjusted_times: Times
    chosen: int


class Auto(Predictor[JobSubmitted, JobEnded, WalltimeAdjustment]):
    """Adjust each class of requests by its most accurate percentile scheme, within a bound on bad under-estimates.

    Once a job has ended, each scheme is scored by its proposal at the submission of the job; see `SchemeScores`.
    O(schemes + histories * log n) for each submission and each end. Memory is that of the windows and, for each job
    in the system, a number per scheme.

    >>> adjuster = Auto(AutoSettings())
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=3600, user_id=7)
    >>> for _ in range(100):
    ...     adjuster.observe(job)
    ...     adjuster.learn_one(job, JobEnded(time=0, job_number=1, run_time=2520))
    >>> adjuster.predict_one(job).adjusted_time
    2520

    References: docs/algorithms.md#automatic-adjustment (beyond Tang 2013, who choose one scheme for a machine in
    hindsight).
    """

    name = "auto"
    Settings = AutoSettings

    def __init__(self, settings: AutoSettings) -> None:
        self._settings = settings
        self._history = SlidingRatios(NAMES, [WINDOWS[span] for span in SPANS], MAX_ENDED)
        self._scores = SchemeScores(SCHEMES, settings.bad)
        self._open: dict[int, Proposals] = {}
        self._chosen: dict[Traits, Proposal] = {}
        """Cached proposals since the history last changed: users submit many similar jobs at once."""

    def predict_one(self, x: JobSubmitted) -> WalltimeAdjustment | None:
        """Return the adjusted request in seconds, or None for a job without a request."""
        if x.requested_time is None:
            return None
        times, behind = self._propose(x, x.requested_time)
        chosen = int(self._scores.chosen[bin_of(x.requested_time)])
        source, which = divmod(chosen, len(PERCENTILES))
        source_record = behind[source] if source < len(behind) else None
        if source_record is None:
            return WalltimeAdjustment(adjusted_time=x.requested_time, observations=0)
        key, count = source_record
        return WalltimeAdjustment(
            adjusted_time=int(times[chosen]),
            observations=count,
            key=key,
            window=SPANS[source % len(SPANS)],
            percentile=PERCENTILES[which],
        )

    def learn_one(self, x: JobSubmitted, y: JobEnded) -> None:
        """Score the schemes by the run time of the job, and record the ratio of this time to the request."""
        if x.requested_time is None:
            return
        scheme = self._open.pop(x.job_number, None)
        if scheme is not None:
            run_time, request = y.own_run_time, x.requested_time
            self._scores.add(bin_of(request), scheme.chosen, run_time, request, scheme.adjusted_times)
        self._history.add(Traits.of(x, x.requested_time), y.time, ratio(y.own_run_time, x.requested_time))
        self._chosen.clear()

    def observe(self, event: Event) -> None:
        """Keep the proposals for a job until it ends; expire ratios that are older than the windows."""
        if isinstance(event, JobSubmitted) and event.requested_time is not None:
            times, _ = self._propose(event, event.requested_time)
            self._open[event.job_number] = Proposals(times, int(self._scores.chosen[bin_of(event.requested_time)]))
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self._open.pop(event.job_number, None)

        if self._history.expire(event.time):
            self._chosen.clear()

    def snapshot(self) -> Any:
        """Return histories, scores and the proposals for the jobs in the system."""
        return {
            "history": self._history.snapshot(),
            "scores": self._scores.snapshot(),
            "open": [[number, scheme.chosen, scheme.adjusted_times.tolist()] for number, scheme in self._open.items()],
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._history.restore(state["history"])
        self._scores.restore(state["scores"])
        self._open = {number: Proposals(np.array(times), chosen) for number, chosen, times in state["open"]}
        self._chosen.clear()

    def _propose(self, x: JobSubmitted, requested_time: int) -> Proposal:
        """Return the proposals of all schemes, with the finest key that has enough jobs for each source."""
        job = Traits.of(x, requested_time)
        if not self._history.is_current(x.time):
            self._chosen.clear()
        scheme = self._chosen.get(job)
        if scheme is None:
            scheme = self._chosen[job] = self._look(job, x.time)
        return scheme

    def _look(self, job: Traits, now: int) -> Proposal:
        """Return the result of `_propose` for jobs with these traits, without the cache."""
        records: list[Record] = []
        for name in NAMES:  # each key after its coarser keys
            records.append(self._look_up(name, job, now, [records[index] for index in COARSER[name]]))
        shares = np.ones((len(SOURCES) + 1, len(PERCENTILES)))
        behind: list[tuple[str, int] | None] = []
        for row, source in enumerate(SOURCES):
            known = ((NAMES[name], answer) for name, span in source if (answer := records[name][span]) is not None)
            finest = next(known, None)
            if finest is None:
                behind.append(None)
            else:
                key, (count, shares[row]) = finest
                behind.append((key, count))

        times = cuts(job.request, shares, self._settings.threshold).ravel()[:SCHEMES]
        return times, behind

    def _look_up(self, name: str, job: Traits, now: int, coarser_ones: list[Record]) -> Record:
        """Return the number of similar jobs in each span, and their percentiles; None for a span with too few."""
        record: Record = []
        for span in range(len(SPANS)):
            sample = self._history.sample(name, span, job, now)
            count = len(sample)
            if count < self._settings.minimum:
                record.append(None)
                continue
            # If one sample contains the other and both have the same size, they are the same.
            wider = [*record, *(coarser[span] for coarser in coarser_ones)]
            same = next((pair for pair in wider if pair is not None and pair[0] == count), None)
            places = positions(count, PERCENTILES, self._settings.rank)
            record.append(same or (count, [sample[place] for place in places]))

        return record
