"""The predictions that are made anew: which jobs are predicted at an event, and which predictions have changed."""

import heapq
from itertools import islice
from typing import Any, NamedTuple

from shadowtime.services.runtime_distribution.revisable import Group, Revisable
from shadowtime.shared.bounds import MAX_REVISIONS
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction, RunTimeRevision, construct_unchecked, moment
from shadowtime.shared.spec import Price
from shadowtime.shared.stages import JobsInSystem

WORK = 200_000_000
"""Maximum number of steps of the predictions that are made anew at one event. Further jobs follow at the next event."""

PRICE = Price(steps=WORK)
"""Upper limit of the work beside that of the predictor. The memory of live jobs is not part of a price."""


class AskedJob(NamedTuple):
    """A job for which a prediction is made, and the seconds that it has run so far; None if it waits."""

    job: JobSubmitted
    elapsed: int | None


def whole_seconds(point: float) -> int:
    """Return a predicted run time as passes use it: in whole seconds, at least 1."""
    return max(int(point), 1)


def asked_about(number: int, now: int, jobs: JobsInSystem) -> AskedJob | None:
    """Return a job in the system with its run time so far; None if no prediction is made for it now.

    The time that a suspended job has run does not change. A moldable job that does not run on the requested processors
    keeps its prediction: the time that it has run is not that of the job as submitted.
    """
    if (job := jobs.waiting.get(number)) is not None:
        return AskedJob(job, None)
    runs = jobs.running[number]
    submitted, started = runs.submitted, runs.started
    if runs.suspended is not None or (submitted.moldable and started.processors != submitted.requested_processors):
        return None
    return AskedJob(submitted, now - moment(started) - runs.lost)


def is_estimate(point: float | None, elapsed: int | None) -> bool:
    """Return whether a point, in seconds, is an estimate: for a running job, it must exceed `elapsed` + 1 seconds.

    A point at this lower limit is none. A running job then keeps its last prediction, which it has outlived or soon
    will (docs/algorithms.md#expected-end).

    >>> is_estimate(1.0, None), is_estimate(61.0, 60), is_estimate(62.0, 60), is_estimate(None, 60)
    (True, False, True, False)
    """
    return point is not None and (not elapsed or point > elapsed + 1)


class Revisions:
    """The last prediction of each job in the system, and the jobs whose prediction may have changed since.

    A job is pending once it was submitted, started, resumed or requeued. It is also pending once one of its groups has
    changed, or once it has run for the time until which its prediction holds. `take` predicts pending jobs only, with
    at most `MAX_REVISIONS` jobs and `WORK` steps at one event. It returns the predictions that differ in whole seconds.
    The jobs beyond these limits stay pending, in their order. So an event costs O(pending jobs), and an end O(jobs in
    the groups of the ended job).

    References: docs/algorithms.md#predictions-made-anew (Smith 1999, section 2.1.4).
    """

    def __init__(self, predictor: Revisable) -> None:
        self._predictor = predictor
        self._most = max(1, min(MAX_REVISIONS, WORK // predictor.steps))
        self._last: dict[int, int | None] = {}
        """Last prediction of each job in the system in whole seconds; None if it had none."""
        self._groups: dict[int, tuple[Group, ...]] = {}
        self._members: dict[Group, set[int]] = {}
        """The jobs whose last prediction depends on a group; the inverse of `_groups`."""
        self._pending: dict[int, None] = {}
        self._due: dict[int, int] = {}
        """Time from which the prediction of a running job may differ."""
        self._by_time: list[tuple[int, int]] = []
        """Heap of the entries of `_due`, and of former entries."""

    def add(self, number: int, prediction: RunTimePrediction | None) -> None:
        """Add a submitted job with its prediction."""
        self._last[number] = None if prediction is None else whole_seconds(prediction.point)
        self._pending[number] = None

    def touch(self, number: int) -> None:
        """Make a job pending: it has started, resumed, or waits again."""
        self._pending[number] = None

    def forget(self, number: int) -> None:
        """Drop a job that left the system."""
        self._last.pop(number, None)
        self._pending.pop(number, None)
        self._due.pop(number, None)
        self._set_groups(number, ())

    def learn(self, ended: JobSubmitted) -> None:
        """Make pending all jobs that depend on a group of the ended job. Call this before the predictor learns."""
        for group in self._predictor.changed_by(ended):
            self._pending.update(dict.fromkeys(sorted(self._members.get(group, ()))))

    def take(self, now: int, jobs: JobsInSystem) -> tuple[RunTimeRevision, ...] | None:
        """Return the predictions that have changed as of `now`, in the order in which the jobs became pending.

        Return None if there are none.
        """
        while self._by_time and self._by_time[0][0] <= now:
            due, number = heapq.heappop(self._by_time)
            if self._due.get(number) == due:
                del self._due[number]
                self._pending[number] = None
        if self._predictor.always:
            self._pending.update(dict.fromkeys(self._last))

        revised = []
        for number in list(islice(self._pending, self._most)):
            del self._pending[number]
            asked = asked_about(number, now, jobs)
            if asked is not None and (revision := self._revision(number, asked, now)) is not None:
                revised.append(revision)
        return tuple(revised) or None

    def _revision(self, number: int, asked: AskedJob, now: int) -> RunTimeRevision | None:
        job, elapsed = asked
        point, groups, until, prediction = self._predictor.outlook(job, elapsed or 0)
        self._set_groups(number, groups)
        self._set_due(number, None if elapsed is None or until is None else now + until - elapsed)
        if point is None or not is_estimate(point, elapsed) or whole_seconds(point) == self._last[number]:
            return None
        self._last[number] = whole_seconds(point)
        prediction = prediction or self._predictor.predict_one(job, elapsed or 0)
        histogram = () if prediction is None else prediction.histogram
        return construct_unchecked(RunTimeRevision, job_number=number, point=point, histogram=histogram)

    def _set_due(self, number: int, due: int | None) -> None:
        if due is None:
            self._due.pop(number, None)
        elif self._due.get(number) != due:
            self._due[number] = due
            heapq.heappush(self._by_time, (due, number))
        if len(self._by_time) > 2 * len(self._due) + 64:  # mostly former entries
            self._by_time = sorted((due, number) for number, due in self._due.items())

    def _set_groups(self, number: int, groups: tuple[Group, ...]) -> None:
        before = self._groups.get(number, ())
        if groups == before:
            return
        for group in before:
            members = self._members[group]
            members.discard(number)
            if not members:
                del self._members[group]
        for group in groups:
            self._members.setdefault(group, set()).add(number)
        if groups:
            self._groups[number] = groups
        else:
            del self._groups[number]

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        jobs = [
            [number, last, self._due.get(number), self._groups.get(number, ())] for number, last in self._last.items()
        ]
        return {"jobs": jobs, "pending": list(self._pending)}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned. The state before must be empty."""
        for number, last, due, groups in state["jobs"]:
            self._last[number] = last
            self._set_groups(number, tuple(map(tuple, groups)))
            if due is not None:
                self._due[number] = due
        self._by_time = sorted((due, number) for number, due in self._due.items())
        self._pending = dict.fromkeys(state["pending"])
