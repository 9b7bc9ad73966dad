"""Answers to questions, from the state that a stage keeps of its runs in Redis; bounds are from stage `wait_bound`."""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple, TypeVar

from shadowtime.services.processes.ask.questions import Answer, Offer, Offers, OffersQuestion, Question, log_age
from shadowtime.services.processes.ask.words import MAX_LISTED, ClusterWords, WordReader
from shadowtime.shared.errors import SnapshotMismatch, Unanswerable
from shadowtime.shared.messages import (
    FOLLOWED,
    SHADOW,
    Envelope,
    JobSubmitted,
    Rejected,
    WaitBound,
    current_run,
    run_name,
)
from shadowtime.shared.quoting import among, listed, quote
from shadowtime.shared.stages import BoundDoubt, BoundsWaits, Stage, StageRun
from shadowtime.shared.streaming import Position, RunFollower, RunReader

log = logging.getLogger("shadowtime.ask")

Result = TypeVar("Result")

MAX_FOLLOWED = 16
"""The maximum number of runs whose state is kept in memory. The state of other runs is loaded for each question."""

MAX_AT_ONCE = 64
"""The maximum number of questions that are answered at once, each with at most one connection to Redis."""


class _Seen(NamedTuple):
    """A run at a position: its cluster, and the time of its last event."""

    position: Position
    cluster: str
    time: int


class Answers:
    """Answers from the state of one stage. The states of the last `followed` runs that were queried stay in memory."""

    def __init__(
        self, stage: Stage, reader: RunReader, followed: int = MAX_FOLLOWED, words: WordReader | None = None
    ) -> None:
        self._stage = stage
        self.words = words or WordReader()
        self._reader = reader
        self._most = followed
        self._followers: dict[str, RunFollower] = {}
        self._seen: dict[str, _Seen] = {}
        self._boundless: set[str] = set()
        self._looking: asyncio.Task[None] | None = None
        self._turn = asyncio.Semaphore(MAX_AT_ONCE)

    async def answer(self, question: Question) -> Answer:
        """Return the bounds on the wait of the job in the question.

        Raises
        ------
        Unanswerable
            If there is no such cluster, run or name, the run bounds no waits on the asked side, or the machine is
            smaller than the job.
        StoreError, SnapshotMismatch
            If the stored state cannot be read.
        """
        async with self._turn:
            return await self._answer(question)

    async def offers(self, question: OffersQuestion) -> Offers:
        """Return the bound of each cluster and queue in the question, the shortest wait first.

        Offers without a bound come last, each with the reason. Raise `StoreError` or `SnapshotMismatch` if the stored
        state cannot be read.
        """
        offers = [await self._offer(asked) for asked in question.questions]
        return Offers(offers=tuple(sorted(offers, key=_wait)))

    async def _offer(self, question: Question) -> Offer:
        asked = question.queue
        offer = Offer(cluster=question.cluster, queue=int(asked) if asked and asked.isdecimal() else asked)
        try:
            answer = await self.answer(question)
        except Unanswerable as error:
            return offer.model_copy(update={"reason": str(error)})
        words = await self.words.of(question.cluster, answer.run)
        bound = _shown(answer.bounds, words.number("partition", question.queue, "queue"))
        reason = answer.bounds[0].reason if bound is None else None
        return offer.model_copy(update={"run": answer.run, "time": answer.time, "bound": bound, "reason": reason})

    async def _answer(self, question: Question) -> Answer:
        if question.run is None:
            return await self._answer_of_latest(question)
        run = question.run
        await self._require(question.cluster, run)
        answer = await self._answer_of(run, question)
        if answer is None:
            reason = f"run {quote(run)} has no bounds on waits: it was started without --wait-bound"
            raise Unanswerable(409, f"{reason}; {await self._others(question.cluster, run)}", "run")
        return answer

    async def run_of(self, cluster: str, run: str | None) -> str:
        """Return the run to ask: `run`, or by default the followed run of the cluster, or else the latest run.

        Raise `Unanswerable` if there is no such cluster or run.
        """
        if run is None:
            return (await self._in_order(cluster))[0]
        await self._look()
        if run not in self._seen or self._seen[run].cluster != cluster:
            reason = f"there is no run {quote(run)} of cluster {quote(cluster)}"
            raise Unanswerable(404, f"{reason}; {await self._others(cluster, run)}", "run")
        return run

    async def of_run(self, run: str, question: Callable[[StageRun], Result]) -> Result:
        """Return the result of `question`, called with the stored state of a run.

        Raises
        ------
        Unanswerable
            If the stage does not know the run.
        StoreError, SnapshotMismatch
            If its stored state cannot be read.
        """
        async with self._turn:
            answer = await self._follower(run).ask(lambda state: None if state.handler is None else (question(state),))
        if answer is None:
            reason = f"stage {self._stage.name} does not know run {quote(run)} yet, or no longer"
            raise Unanswerable(404, reason, "run")
        return answer[0]

    async def _require(self, cluster: str, run: str) -> None:
        """Raise `Unanswerable` if there is no such run. The error names other runs of the cluster."""
        if (await self._reader.positions([run]))[0] is None:
            raise Unanswerable(404, f"there is no run {quote(run)}; {await self._others(cluster, run)}", "run")

    async def _answer_of(self, run: str, question: Question) -> Answer | None:
        """Return the answer from a run; None if the run bounds no waits."""
        words = await self.words.of(question.cluster, run)
        answer = await self._follower(run).ask(partial(_answer, question, run, words))
        if answer is None:
            raise Unanswerable(404, f"run {quote(run)} has no opening event yet, or is no longer kept", "run")
        return answer if answer.bounds else None

    async def _answer_of_latest(self, question: Question) -> Answer:
        """Return the answer from the first run of `_in_order` that bounds waits."""
        runs = await self._in_order(question.cluster)
        self._boundless &= self._seen.keys()
        for run in runs:
            if run not in self._boundless:
                answer = await self._answer_of(run, question)
                if answer is not None:
                    return answer
                self._boundless.add(run)

        reason = f"no run of cluster {quote(question.cluster)} has bounds on waits; start one with --wait-bound"
        raise Unanswerable(409, f"{reason}; runs of the cluster: {listed(runs, MAX_LISTED)}", "cluster")

    async def _in_order(self, cluster: str) -> list[str]:
        """Return the runs of a cluster: the followed run, then others, then shadows, each kind latest first."""
        followed, shadows = await self.followed_run(cluster), run_name(cluster, SHADOW, "")
        runs = [
            (name == followed, not name.startswith(shadows), state.time, name)
            for name, state in self._seen.items()
            if state.cluster == cluster
        ]
        if runs:
            return [name for *_, name in sorted(runs, reverse=True)]
        if not self._seen:
            raise Unanswerable(404, f"stage {self._stage.name} has no run yet", "cluster")
        known = among(cluster, sorted({entry.cluster for entry in self._seen.values()}), most=MAX_LISTED)
        raise Unanswerable(404, f"there is no cluster {quote(cluster)}{known}", "cluster")

    async def followed_run(self, cluster: str) -> str | None:
        """Return the run that follows a cluster; see `current_run` if several have followed it. None if none has.

        Raise `StoreError` or `SnapshotMismatch` if the stored state cannot be read.
        """
        await self._look()
        usual, shadows = run_name(cluster, FOLLOWED), run_name(cluster, SHADOW, "")
        runs = [name for name, seen in self._seen.items() if seen.cluster == cluster and not name.startswith(shadows)]
        if runs and runs != [usual]:
            followed = await self.words.followed()
            runs = [name for name in runs if name == usual or name in followed]
        if len(runs) < 2:
            return next(iter(runs), None)
        ends = {name: await self._follower(name).ask(_end_of) for name in runs}
        return current_run(cluster, {name: end for name, end in ends.items() if end is not None})

    async def _others(self, cluster: str, run: str) -> str:
        """Return a clause that names the other runs of a cluster."""
        await self._look()
        others = [name for name, seen in self._seen.items() if seen.cluster == cluster and name != run]
        return f"other runs of cluster {quote(cluster)}: {listed(others, MAX_LISTED)}"

    async def _look(self) -> None:
        """Refresh the list of runs. Concurrent callers share one refresh."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._see())
        await asyncio.shield(self._looking)

    async def _see(self) -> None:
        """Note the cluster and the time of every run. Runs that cannot be read are skipped."""
        latest: dict[str, _Seen] = {}
        names = await self._reader.names()
        for run, position in zip(names, await self._reader.positions(names), strict=True):
            if position is None:
                continue
            seen = self._seen.get(run)
            if seen is None or seen.position != position:
                seen = _event_at(position) or await self._followed(run, position)
            if seen is not None:
                latest[run] = seen

        self._seen = latest

    async def _followed(self, run: str, position: Position) -> _Seen | None:
        """Return the cluster and the time of a run from its state; None if the state lacks them or cannot be read.

        Use this after a rebuild or a rejected event: then the last output lacks them.
        """
        try:
            return await self._follower(run).ask(
                lambda state: (
                    None if state.handler is None else _Seen(position, state.handler.opened.cluster, state.handler.time)
                )
            )
        except SnapshotMismatch as error:
            log.warning("skipped a run: %s", error, extra={"run": run})
            return None

    def _follower(self, run: str) -> RunFollower:
        """Return the run's follower. If there are too many followers, drop the least recently used one."""
        follower = self._followers.pop(run, None) or RunFollower(self._stage, self._reader, run)
        self._followers[run] = follower
        if len(self._followers) > self._most:
            del self._followers[next(iter(self._followers))]
        return follower


def _end_of(state: StageRun) -> int | None:
    """Return the Unix time of the last event of a run; None if it has not been opened."""
    return None if state.handler is None else state.handler.opened.unix_start + state.handler.time


def _event_at(position: Position) -> _Seen | None:
    """Return the cluster and the time of a run from the stage's last output; None if the output lacks them."""
    last = Envelope.read(position.output)
    if last is None or last.sequence != position.sequence or not last.cluster or isinstance(last.event, Rejected):
        return None
    return _Seen(position, last.cluster, last.event.time)


def _answer(question: Question, run: str, words: ClusterWords, state: StageRun) -> Answer | None:
    handler = state.handler
    if handler is None:
        return None
    cluster = handler.opened.cluster
    if cluster != question.cluster:
        reason = f"{quote(run)} is a run of cluster {quote(cluster)}, not of {quote(question.cluster)}"
        raise Unanswerable(404, reason, "run")
    unbounded = Answer(
        cluster=cluster,
        run=run,
        sequence=state.sequence,
        time=handler.time,
        unix_start=handler.opened.unix_start,
        bounds=(),
    )
    if handler.passthrough:
        return unbounded
    largest = max(handler.processors, handler.opened.processors)
    if question.processors > largest:
        reason = f"the job requests {question.processors} processors; the machine has {largest}"
        raise Unanswerable(422, reason, "processors")
    job = JobSubmitted(
        time=handler.time,
        job_number=0,
        requested_processors=question.processors,
        requested_time=question.requested_time,
        **words.place(question, handler.opened).fields(),
    )
    if not isinstance(handler, BoundsWaits):
        raise TypeError(f"stage {state.stage.name} does not bound waits")
    bounds = handler.bounds_at(job, question.quantile, question.confidence, question.side)
    if not bounds and question.side != "upper":
        reason = f"run {quote(run)} bounds waits by {quote(handler.opened.wait_bound)}, only from above; use side upper"
        raise Unanswerable(409, reason, "side")
    doubts = [handler.doubt_at(bound) for bound in bounds]
    return unbounded.replaced(
        bounds=tuple(map(unless_withdrawn, bounds, doubts)),
        outwaited=tuple(None if doubt is None else doubt.outwaited for doubt in doubts) if any(doubts) else (),
        waiting=len(handler.jobs.waiting),
        ranges=handler.ranges_at(job),
        log_age=log_age(handler.opened, handler.time),
    )


def unless_withdrawn(bound: WaitBound, doubt: BoundDoubt | None) -> WaitBound:
    """Return the bound; without its seconds, and with the reason, if the waiting jobs show that it cannot hold."""
    if doubt is None or not doubt.withdrawn:
        return bound
    reason = f"withdrawn: {doubt.outwaited:,} of {doubt.waiting:,} waiting jobs are past their bound"
    return bound.replaced(bound=None, reason=reason, starts_within=())


def _shown(bounds: Sequence[WaitBound], queue: int | None) -> WaitBound | None:
    """Return the bound to show for a queue; None if there is no bound.

    A bound of the queue is preferred to one of the cluster, then the ensemble to other groupings.
    """
    known = [bound for bound in bounds if bound.reason is None]
    return min(known, key=lambda bound: (bound.queue != queue, bound.grouping != "ensemble"), default=None)


def _wait(offer: Offer) -> tuple[bool, int]:
    """Return the sort key of an offer: its wait; offers without a bound come last."""
    if offer.bound is None:
        return True, 0
    return False, (offer.bound.bound if offer.bound.bound is not None else offer.bound.lower) or 0
