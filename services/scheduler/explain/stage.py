"""Handlers of the scheduler stage that answer questions: the state of a job, and the reasons for it."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from shadowtime.services.scheduler.explain.waiting_job import ServiceOrder, line_of, waiting
from shadowtime.services.scheduler.explain.what_if import WhatIf
from shadowtime.services.scheduler.handler import Scheduler, alone
from shadowtime.services.scheduler.history import NOTHING_PREDICTED
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.services.scheduler.probabilistic import PassState
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.messages import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    Explanation,
    GpuType,
    JobSubmitted,
    StartOutlook,
    construct_unchecked,
    moment,
)
from shadowtime.shared.stages import RunningJob, StartPredictions, expected_start

MAX_LISTED = 10
"""Maximum number of job numbers in an error message."""


class PoolAnswers(NamedTuple):
    """The queue of a pool in the order of service, and passes over a copy of the pool, for all its waiting jobs."""

    line: ServiceOrder
    what_if: WhatIf | None


class Explaining(Scheduler):
    """A `Scheduler` that explains the states of jobs. Restore it from a snapshot of the stage, or feed it the events.

    It has the full state of the policy. It runs a copy of the policy to find requests that would start a job sooner.
    """

    follows = False
    """Whether the handler follows published decisions. If so, it lacks the state of the policy."""

    def explain(self, job_number: int, run: str, sequence: int, *, brief: bool = False) -> Explanation | None:
        """Return the state of a job and the reasons for it; None if the job is unknown.

        The explanation states `run` and `sequence` as passed. If it is `brief`, no pass is run, and the running jobs
        that must end and other requests are left out.
        """
        reason = self._stands(job_number, brief=brief)
        return None if reason is None else self._explanation(job_number, run, sequence, reason)

    def _explanation(self, job_number: int, run: str, sequence: int, reason: dict[str, Any]) -> Explanation:
        return construct_unchecked(
            Explanation,
            cluster=self.opened.cluster,
            run=run,
            sequence=sequence,
            time=self.time,
            unix_start=self.opened.unix_start,
            obeyed=self.opened.obeys(self.time),
            policy=self.opened.policy,
            job_number=job_number,
            **reason,
        )

    def known(self, job_id: Callable[[int], str] = str) -> str:
        """Return a text that lists the known jobs. `job_id` returns the id of a job from its number."""
        waits, runs = list(self.jobs.waiting), list(self.jobs.running)
        counts = f"{_counted(waits, 'wait', job_id)}, {_counted(runs, 'run', job_id)}"
        return f"{counts}; of ended jobs the last {len(self.passes.ended):,} are known"

    def waiting_jobs(
        self, wanted: Callable[[JobSubmitted], bool] = lambda _: True
    ) -> Iterator[tuple[JobSubmitted, Explanation]]:
        """Yield each wanted waiting job with a brief explanation, whose `run` is empty and `sequence` is 0.

        The other fields that it has equal those of a full explanation by `explain`. A pass of each pool's policy is run
        once, unless the state of the policy is unknown. O(queue log queue + running log running) for each pool and each
        size of jobs.
        """
        known: dict[PoolScheduler, PoolAnswers] = {}
        for number, job in self.jobs.waiting.items():
            reason = self._stands(number, brief=True, known=known) if wanted(job) else None
            if reason is not None:
                yield job, self._explanation(number, "", 0, reason)

    def expected_ends(self) -> dict[int, tuple[int, bool]]:
        """Return the expected end of each running job in seconds, and whether its limit is later, by job number.

        The end is as predicted, and corrected once a job has outlived its prediction. Policies that plan running jobs
        by requests plan with later ends. Suspended jobs are left out, and jobs without a prediction and a limit.
        """
        ends: dict[int, tuple[int, bool]] = {}
        for pool in self.pools:
            busy = PassState(self.time, pool.queue, pool.running)
            columns = busy.numbers.tolist(), busy.expected_ends.tolist(), busy.requested_ends.tolist()
            for number, expected, requested in zip(*columns, strict=True):
                if expected - self.time <= MAX_DURATION:
                    ends[number] = expected, expected < requested

        return ends

    def running_jobs(self) -> Iterator[tuple[RunningJob, int | None, bool]]:
        """Yield each running job, its expected end (None if unknown), and whether its limit is later."""
        ends = self.expected_ends()
        for number, job in self.jobs.running.items():
            yield job, *ends.get(number, (None, False))

    def _stands(
        self, number: int, *, brief: bool, known: "dict[PoolScheduler, PoolAnswers] | None" = None
    ) -> dict[str, Any] | None:
        if (ended := self.passes.ended.get(number)) is not None:
            return {"state": "ended", **ended._asdict()}
        passes = self.passes
        decided, reason = passes.reasons.get(number, (None, None))
        why: dict[str, Any] = {"decided": decided, "reason": reason}
        if (runs := self.jobs.running.get(number)) is not None:
            return why | {
                "state": "running" if runs.suspended is None else "suspended",
                "processors": runs.started.processors,
                "requested_time": runs.limit,
                "since": runs.submitted.since,
                "started": moment(runs.started),
            }

        if (job := self.jobs.waiting.get(number)) is None:
            return None
        predicted = passes.promises.get(number, NOTHING_PREDICTED)
        likely = predicted.likely()
        waits: dict[str, Any] = {
            "state": "starting" if number in passes.starting else "waiting",
            "processors": job.requested_processors,
            "requested_time": job.requested_time,
            "since": job.since,
            "site_reason": job.site_reason,
            "gpu_types": self._gpu_types(job),
            "gpu_type": job.gpu_type,
            "forecast": None if predicted.forecast is None else job.since + predicted.forecast,
            "starts_by": None if likely is None else (likely[0], job.since + likely[1]),
        }
        if number in passes.starting:
            return waits | why
        if job.blocked:
            site = expected_start(self.time, job.since, StartPredictions(site=predicted.site))
            return waits | {"waits_for": "site", "starts": site}
        pool = self.places[number]
        answers = {} if known is None else known
        if pool not in answers:
            what_if = self._what_if(pool) if known is not None or not brief else None
            answers[pool] = PoolAnswers(line_of(pool, self.time, passes), what_if)
        line, what_if = answers[pool]
        advised = {} if self.opened.obeys(self.time) else why
        fields = waiting(pool, line, number, self.time, passes, what_if, pool.policy.named_order(), brief=brief)
        starts = self._starts(job, predicted, fields)
        return waits | advised | fields | {"starts": starts}

    def _gpu_types(self, job: JobSubmitted) -> tuple[GpuType, ...]:
        """Return the types of GPUs in the pool of a job that asks for GPUs; none unless there are several."""
        pools = self.opened.pools
        return (pools[job.pool or 0].gpu_types or ()) if pools and job.gpus else ()

    def _what_if(self, pool: PoolScheduler) -> WhatIf | None:
        """Return passes over a copy of a pool; None if jobs are about to start, or the policy's state is unknown."""
        if self.passes.starting or (self.follows and pool.policy.snapshot() is not None):
            return None
        return WhatIf(pool, alone(self.opened, self.pools.index(pool)), self.time)

    def _starts(self, job: JobSubmitted, predicted: StartPredictions, fields: dict[str, Any]) -> StartOutlook:
        """Return when a waiting job starts. If the machine is too small now, only the site's expectation counts."""
        obeyed, room = self.opened.obeys(self.time), fields.pop("room")
        if fields["waits_for"] == "pass" and obeyed:
            return StartOutlook(source="pass", expected=self.time)
        if fields["waits_for"] == "capacity":
            predicted = StartPredictions(site=predicted.site)
        fits_at = room.fits_at if obeyed else None
        return expected_start(self.time, job.since, predicted, fits_at, goes_first=room.goes_first)


class Following(Explaining):
    """An `Explaining` that follows the decisions in topics `decisions` and `scores`: its own policies decide nothing.

    It lacks the state of the policies, which no message contains. A policy without state can still be run to answer a
    question.
    """

    follows = True

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        for pool in self.pools:
            pool.forecaster, pool.observe = None, _nothing

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Record the decisions of the scheduler."""
        self.passes.decide(decided, obeyed=self.opened.obeys(decided.time))
        return envelope


def _nothing(event: Event) -> None:
    return


def _counted(numbers: list[int], verb: str, job_id: Callable[[int], str] = str) -> str:
    """Return a text with the number of jobs that wait or run, and the first `MAX_LISTED` job numbers.

    >>> _counted([3, 7], "wait"), _counted([], "run")
    ('2 wait (3, 7)', '0 run')
    """
    more = ", …" if len(numbers) > MAX_LISTED else ""
    listed = ", ".join(map(job_id, numbers[:MAX_LISTED]))
    return f"{len(numbers):,} {verb}" + (f" ({listed}{more})" if numbers else "")
