"""The scheduler's history of a run: reasons of starts, refused candidates, heads, predicted starts, ended jobs."""

from collections import deque
from collections.abc import Collection, Iterable
from typing import Any, NamedTuple

from pydantic import ConfigDict, TypeAdapter

from shadowtime.shared.messages import Decided, Envelope, JobEnded, JobStarted, JobSubmitted, Reason, moment
from shadowtime.shared.stages import RunningJob, StartPredictions

KEPT = 3
"""Number of refusals kept for each waiting job: the most recent ones."""

KEPT_ENDED = 100
"""Number of ended jobs kept: the most recent ones."""

REASONS: TypeAdapter[Reason] = TypeAdapter(Reason, config=ConfigDict(defer_build=True))


class Refusal(NamedTuple):
    """A pass that evaluated a candidate and did not start it: time of the pass, and the values from `Evaluated`."""

    time: int
    head: int
    needed: int
    probability: float
    bound: float
    recalibrated: float | None


NOTHING_PREDICTED = StartPredictions()


class EndedJob(NamedTuple):
    """A job that has ended; times in seconds. `since` is the time from which it waited.

    `requested_time` is its last limit; None if nothing ended it.
    """

    processors: int
    requested_time: int | None
    since: int
    started: int
    ended: int
    run_time: int
    outcome: str


class DecisionHistory:
    """Decisions and predictions about the jobs in the system, and the last ended jobs. Memory is bounded by these jobs.

    O(1) for each event and each evaluated candidate.

    >>> from shadowtime.shared.messages.decisions import Evaluated
    >>> passes, risks = DecisionHistory(), {"probabilities": (0.5,), "bounds": (0.2,)}
    >>> tried = Evaluated(head=3, needed=2, after=0, job_numbers=(7,), accepted=False, **risks)
    >>> passes.decide(Decided(time=60, evaluated=(tried,)), obeyed=True)
    >>> passes.refused[7]
    deque([Refusal(time=60, head=3, needed=2, probability=0.5, bound=0.2, recalibrated=None)], maxlen=3)
    """

    def __init__(self) -> None:
        self.starting: set[int] = set()
        """Jobs that the last pass decided to start, and that have not started yet."""
        self.reasons: dict[int, tuple[int, Reason]] = {}
        """Time and reason of the decision to start a job, or of the first advice to start it, by job number."""
        self.refused: dict[int, deque[Refusal]] = {}
        """Last `KEPT` refusals of each waiting job, oldest first, by job number."""
        self.named: dict[int, None] = {}
        """Jobs that decisions named as the head, and that have not started since, in order of their last naming."""
        self.promises: dict[int, StartPredictions] = {}
        """Predicted starts of each job in the system that has any, by job number."""
        self.ended: dict[int, EndedJob] = {}
        """Last `KEPT_ENDED` ended jobs, by job number."""

    def submit(self, envelope: Envelope, job: JobSubmitted) -> None:
        """Keep the predictions of a job's start."""
        self.ended.pop(job.job_number, None)
        predictions = StartPredictions.of(envelope.forecast, envelope.wait_bounds)
        if predictions != NOTHING_PREDICTED:
            self.promises[job.job_number] = predictions

    def expect(self, number: int, start: int | None) -> None:
        """Keep the start that the site's own scheduler expects; None once it expects none."""
        self.promises[number] = self.promises.get(number, NOTHING_PREDICTED)._replace(site=start)

    def decide(self, decided: Decided, *, obeyed: bool) -> None:
        """Keep the reasons of starts, and the candidates that were evaluated and refused."""
        if not decided.starts and not decided.evaluated:  # the usual case
            self.starting.clear()
            return
        for start in decided.starts:
            if obeyed or start.job_number not in self.reasons:
                self.reasons[start.job_number] = decided.time, start.reason
            if (head := getattr(start.reason, "head", None)) is not None:
                self._name(head)
        self.starting = {start.job_number for start in decided.starts} if obeyed else set()
        for tried in decided.evaluated:
            self._name(tried.head)
            for at in range(len(tried.job_numbers) - tried.accepted):
                mended = None if tried.recalibrated is None else tried.recalibrated[at]
                number, risks = tried.job_numbers[at], (tried.probabilities[at], tried.bounds[at], mended)
                refusals = self.refused.get(number)
                if refusals is None:
                    refusals = self.refused[number] = deque(maxlen=KEPT)
                refusals.append(Refusal(decided.time, tried.head, tried.needed, *risks))

    def named_head(self, waiting: Collection[int]) -> int | None:
        """Return the one of these waiting jobs that was named as the head last; None if none was. O(named jobs)."""
        return next((number for number in reversed(self.named) if number in waiting), None)

    def start(self, started: JobStarted) -> None:
        """Drop the refusals of a job that has started. It is no longer a head."""
        self.starting.discard(started.job_number)
        self.named.pop(started.job_number, None)
        self.refused.pop(started.job_number, None)

    def end(self, ended: JobEnded, job: RunningJob) -> None:
        """Keep the outcome of an ended job. A requeued job waits again and has not ended."""
        self.reasons.pop(ended.job_number, None)
        if ended.requeued:
            if ended.job_number in self.promises:
                self.expect(ended.job_number, None)
            return
        self.promises.pop(ended.job_number, None)
        began, over = moment(job.started), moment(ended)
        self.ended[ended.job_number] = EndedJob(
            job.started.processors, job.limit, job.submitted.since, began, over, ended.run_time, ended.outcome
        )
        if len(self.ended) > KEPT_ENDED:
            del self.ended[next(iter(self.ended))]

    def forget(self, number: int) -> None:
        """Drop everything about a job that was withdrawn."""
        self.starting.discard(number)
        for kept in (self.reasons, self.refused, self.named, self.promises):
            kept.pop(number, None)

    def _name(self, head: int) -> None:
        self.named.pop(head, None)
        self.named[head] = None

    def snapshot(self) -> dict[str, Any]:
        """Return the history as plain values."""
        return {
            "starting": sorted(self.starting),
            "reasons": [[number, time, reason.model_dump()] for number, (time, reason) in self.reasons.items()],
            "refused": [[number, [list(refusal) for refusal in refusals]] for number, refusals in self.refused.items()],
            "named": list(self.named),
            "told": [[number, *promise] for number, promise in self.promises.items()],
            "ended": [[number, *job] for number, job in self.ended.items()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        self.starting = set(state["starting"])
        self.reasons = {number: (time, REASONS.validate_python(reason)) for number, time, reason in state["reasons"]}
        self.refused = {
            number: deque((Refusal(*values) for values in refusals), maxlen=KEPT)
            for number, refusals in state["refused"]
        }
        self.named = dict.fromkeys(state["named"])
        self.promises = {
            number: StartPredictions(forecast, _pairs(futures), _pairs(bounds), site)
            for number, forecast, futures, bounds, site in state["told"]
        }
        self.ended = {number: EndedJob(*values) for number, *values in state["ended"]}


def _pairs(rows: Iterable[tuple[float, int]]) -> tuple[tuple[float, int], ...]:
    return tuple((share, seconds) for share, seconds in rows)
