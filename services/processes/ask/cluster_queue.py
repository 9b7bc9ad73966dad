"""The queue of a cluster: waiting jobs with their expected starts, running jobs with their expected ends.

The rows are from the state of stage `scheduler` in Redis. Starts and reasons are those of `ask --job`.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

from pydantic import Field

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.questions import LOG_AGE, OwnWord, RunName, log_age
from shadowtime.services.processes.ask.words import NAMES_OF, ClusterWords, WordReader
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages import (
    FOLLOWED,
    Count,
    FrozenModel,
    JobSubmitted,
    StartOutlook,
    Whole,
    construct_unchecked,
    moment,
    run_name,
)
from shadowtime.shared.quoting import listed
from shadowtime.shared.stages import ListsJobs, StageRun
from shadowtime.shared.streaming import Settings, reading
from shadowtime.shared.text import brief_of


class QueueQuestion(FrozenModel):
    """A question for the jobs of a cluster that wait or run."""

    cluster: str | None = Field(default=None, description="the cluster, by name; by default the only followed cluster")
    run: RunName | None = Field(default=None, description="a run of the cluster; by default the followed run")
    user: OwnWord | None = Field(default=None, description="only jobs of this user, by name or number")
    queue: OwnWord | None = Field(default=None, description="only jobs of this queue, by name or number")
    newcomer: bool = Field(default=False, description="whether the user may have had no job yet")


class NamedJob(FrozenModel):
    """A job of a queue, with the names of its cluster."""

    job_id: str = Field(description="id of the job on its cluster")
    job_number: Count
    user: str = Field(description="its user, by name or number")
    partition: str = Field(description="its queue, by name or number")


class WaitingRow(NamedJob):
    """A waiting job. Times are seconds of the log."""

    processors: Count = Field(description="processors that it requests")
    requested_time: Count | None = Field(description="seconds that it requests")
    since: Whole = Field(description="when its wait began")
    place: Count | None = Field(
        description="number of jobs before it in the order of its pool; null if the site blocks it"
    )
    waits_for: str = Field(description="what it waits for, as in the answer about one job; or `starting`")
    gpu_type: str = Field(default="", description="the type of the GPUs that it waits for, if that is one type")
    starts: StartOutlook | None = Field(description="when it is expected to start; null if it starts now")
    why: str = Field(description="the reason in one sentence")
    site_reason: str = Field(default="", description="why it waits, as the site's own scheduler says; empty if unknown")


class RunningRow(NamedJob):
    """A running or suspended job. Times are seconds of the log."""

    processors: Count = Field(description="processors that it holds")
    started: Whole
    ran: Whole = Field(description="seconds that it has run, without its suspensions")
    limit: Count | None = Field(description="seconds that it may run; null if unknown")
    expected_end: Whole | None = Field(description="when it ends as the policy expects; null if suspended or unknown")
    predicted: bool = Field(description="whether a prediction gives that end, not the limit")
    used: float | None = Field(description="share of its limit that it has used; null without a limit")
    suspended: bool


class QueueAnswer(FrozenModel):
    """The jobs of a run that wait or run, as of the last event that stage `scheduler` has stored."""

    cluster: str = Field(description="the cluster, by name")
    run: str = Field(description="the run behind the answer")
    sequence: Count = Field(description="number of the last event behind the answer")
    time: Whole = Field(description="time of that event")
    unix_start: Count = Field(description="Unix time of second 0")
    log_age: Whole | None = Field(description=LOG_AGE)
    waiting: tuple[WaitingRow, ...]
    running: tuple[RunningRow, ...]


class ClusterQueues(Answers):
    """Answers with the whole queue of a run, from the state of stage `scheduler`."""

    async def queue(self, question: QueueQuestion) -> QueueAnswer:
        """Return the jobs that wait or run.

        Raises
        ------
        Unanswerable
            If there is no such cluster, run, user or queue, or if no cluster is named and there are several.
        StoreError, SnapshotMismatch
            If the stored state cannot be read.
        """
        cluster = question.cluster or await self._only_cluster()
        run = await self.run_of(cluster, question.run)
        words = await self.words.of(cluster, run)
        return await self.of_run(run, partial(_queue, question, run, words))

    async def _only_cluster(self) -> str:
        await self._look()
        clusters = {seen.cluster for seen in self._seen.values()}
        runs = await self.words.followed() if len(clusters) > 1 else ()
        usual = {run_name(cluster, FOLLOWED) for cluster in clusters}
        followed = {seen.cluster for name, seen in self._seen.items() if name in usual or name in runs}
        if len(only := followed or clusters) == 1:
            return next(iter(only))
        raise Unanswerable(422, f"name one cluster; known: {listed(sorted(only))}", "cluster")


def _queue(question: QueueQuestion, run: str, words: ClusterWords, state: StageRun) -> QueueAnswer:
    handler = state.handler
    if handler is None or not isinstance(handler, ListsJobs):
        raise TypeError(f"stage {state.stage.name} does not list jobs")
    asked = question.user
    known = asked is None or not question.newcomer or words.hashed or words.numbered("user", asked) is not None
    user = words.number("user", asked, "user") if known else None
    queue = words.number("partition", question.queue, "queue")

    def wanted(job: JobSubmitted) -> bool:
        return known and (user is None or job.user_id == user) and (queue is None or job.queue_number == queue)

    return construct_unchecked(
        QueueAnswer,
        cluster=handler.opened.cluster,
        run=run,
        sequence=state.sequence,
        time=handler.time,
        unix_start=handler.opened.unix_start,
        log_age=log_age(handler.opened, handler.time),
        waiting=_waiting(handler, words, wanted),
        running=_running(handler, handler.time, words, wanted),
    )


def _of_job(job: JobSubmitted, words: ClusterWords) -> dict[str, Any]:
    return {
        "job_id": words.job(job.job_number),
        "job_number": job.job_number,
        "user": words.name("user", job.user_id),
        "partition": words.name("partition", job.queue_number),
    }


def _waiting(handler: ListsJobs, words: ClusterWords, wanted: Callable[[JobSubmitted], bool]) -> tuple[WaitingRow, ...]:
    return tuple(
        construct_unchecked(
            WaitingRow,
            **_of_job(job, words),
            processors=why.processors,
            requested_time=why.requested_time,
            since=why.since,
            place=None if why.ahead is None else why.ahead.jobs,
            waits_for=why.state if why.waits_for is None else why.waits_for,
            gpu_type=why.of_type or "",
            starts=why.starts,
            why=brief_of(why, words.job),
            site_reason=why.site_reason or "",
        )
        for job, why in handler.waiting_jobs(wanted)
    )


def _running(
    handler: ListsJobs, now: int, words: ClusterWords, wanted: Callable[[JobSubmitted], bool]
) -> tuple[RunningRow, ...]:
    rows = []
    for job, end, predicted in handler.running_jobs():
        if wanted(job.submitted):
            limit = job.limit
            rows.append(
                construct_unchecked(
                    RunningRow,
                    **_of_job(job.submitted, words),
                    processors=job.started.processors,
                    started=moment(job.started),
                    ran=job.ran(now),
                    limit=limit,
                    expected_end=None if end is None else max(end, now),
                    predicted=predicted,
                    used=None if not limit else round(job.ran(now) / limit, 4),
                    suspended=job.suspended is not None,
                )
            )
    return tuple(rows)


@asynccontextmanager
async def queues(settings: Settings) -> AsyncIterator[ClusterQueues]:
    """Yield an object that answers questions for the queue of a cluster."""
    async with reading(settings, EXPLAINED.name) as reader, reading(settings, NAMES_OF) as names:
        yield ClusterQueues(EXPLAINED, reader, words=WordReader(names))
