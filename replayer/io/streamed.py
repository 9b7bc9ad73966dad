"""Replay over Kafka: publish the events of a source, and apply the decisions that come back.

In a closed replay, every instant is a barrier: later events are published only after its `Decided` has arrived. If no
waiting job fits, the decision is empty, and the replay does not wait for it. The order and sequence numbers of events
stay the same.

A killed replay can resume. It runs the source again, with the decisions in the Kafka log. It does not publish events
again that the log already has.
"""

import asyncio
from collections.abc import Sequence
from typing import TypeVar

from aiokafka.errors import KafkaError

from shadowtime.replayer.io.kafka_run import KafkaRun, different
from shadowtime.replayer.io.timing import Pace
from shadowtime.replayer.simulation import Observer, ReplaySource, named_errors
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.messages import ClusterClosed, ClusterOpened, Decided, Envelope, Event, Rejected, SchedulingPoint
from shadowtime.shared.stages import SCORES
from shadowtime.shared.streaming import Settings
from shadowtime.shared.streaming import clients as bus

Result = TypeVar("Result")


class StreamedReplay:
    """One run over Kafka.

    Parameters
    ----------
    opened, source, observers
        As for an embedded replay. Observers see every envelope of the `decisions` topic once, in order.
    run
        Name of the run. The run is resumed if it is in the Kafka log.
    starts_only
        Whether the policy's decision is empty if no job fits, so that the replay may run ahead.
    pace
        The pace of published events in real time; None for as fast as possible.
    """

    def __init__(
        self,
        opened: ClusterOpened,
        source: ReplaySource,
        observers: Sequence[Observer],
        run: str,
        settings: Settings,
        *,
        starts_only: bool,
        pace: Pace | None = None,
    ) -> None:
        self.run = run
        self._opened = opened
        self._source = source
        self._observers = observers
        self._settings = settings
        self._starts_only = starts_only
        self._pace = pace
        self.sequence = 0
        """Sequence number of the next event."""
        self._kafka = KafkaRun(run, opened, settings)
        self._seen = -1
        self._heard = 0
        self._closed: asyncio.Future[Envelope] = asyncio.get_running_loop().create_future()
        self._decided: dict[int, Decided] = {}
        self._awaited: dict[int, asyncio.Future[Decided]] = {}
        self._must_be_empty: set[int] = set()

    async def run_to_end(self) -> Envelope:
        """Replay the run, and return its last envelope, which has the scores.

        Raises
        ------
        ReplayError
            If an event was rejected, a decision cannot be applied, no answer arrives, or the log of a resumed run
            has other settings.
        BusError
            If Kafka cannot be used.
        """
        await self._kafka.connect()
        listening = asyncio.ensure_future(self._listen())
        publishing = asyncio.ensure_future(self._publish_all())
        try:
            done, _ = await asyncio.wait((listening, publishing), return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
            return await publishing
        except (KafkaError, OSError) as error:
            raise bus.unusable(self._settings, error) from error
        finally:
            listening.cancel()
            publishing.cancel()
            await asyncio.gather(listening, publishing, return_exceptions=True)
            await self._kafka.stop()

    async def _publish_all(self) -> Envelope:
        await self._publish(self._kafka.opened)
        time = self._opened.time
        while (due := self._source.next_time()) is not None:
            resumed = self.sequence < len(self._kafka.published)  # events in the log are not published again
            if self._pace is not None and not resumed:
                await self._kafka.flush()
                await asyncio.sleep(max(0.0, self._pace.ahead(due)))
            time = due
            with named_errors(self._source):
                events = self._source.next_instant()
            point = -1
            for event in events:
                if isinstance(event, SchedulingPoint):
                    point = self.sequence
                await self._publish(event)

            if self._opened.mode == "recorded":
                continue
            if self._starts_only and not self._source.can_start():
                self._must_be_empty.add(point)
                continue
            decided = await self._answer(point)
            with named_errors(self._source):
                caused = self._source.apply(decided)
            for event in caused:
                await self._publish(event)

        await self._publish(ClusterClosed(time=time))
        await self._kafka.confirm()
        return await self._wait_for(self._closed, "the scores")

    async def _answer(self, point: int) -> Decided:
        if point in self._decided:
            return self._decided.pop(point)
        await self._kafka.flush()
        awaited = self._awaited[point] = asyncio.get_running_loop().create_future()
        return await self._wait_for(awaited, f"the decision at sequence {point}")

    async def _wait_for(self, awaited: "asyncio.Future[Result]", what: str) -> Result:
        """Return an awaited answer, even a late one: stages may be far behind a recorded replay.

        Raise `ReplayError` if no answer of the run arrives for `barrier_seconds`.
        """
        patience = self._settings.barrier_seconds
        while not awaited.done():
            heard = self._heard
            await asyncio.wait({awaited}, timeout=patience)
            if not awaited.done() and self._heard == heard:
                raise ReplayError(
                    f"run {self.run!r}: {what} did not arrive within {patience:.0f} s; check that all stages run, and "
                    f"see shadowtime watch dead-letters --beginning; resume with --run {self.run}"
                )

        return awaited.result()

    async def _publish(self, event: Event) -> None:
        """Publish the next event of the run, unless the log has it. Raise `ReplayError` if the log differs."""
        sequence, self.sequence = self.sequence, self.sequence + 1
        if sequence < len(published := self._kafka.published):
            if published[sequence].event != event:
                raise ReplayError(
                    f"run {self.run!r} cannot be resumed: event {sequence} differs in the log "
                    f"({different(published[sequence].event, event)}); "
                    "use the same trace and settings, or another --run"
                )
            return
        await self._kafka.publish(Envelope(run=self.run, cluster=self._opened.cluster, sequence=sequence, event=event))

    async def _listen(self) -> None:
        """Process the envelopes of `decisions`, each sequence number once, and the final scores."""
        async for topic, envelope in self._kafka.answers():
            self._heard += 1
            if envelope is None:
                continue
            if topic == SCORES:
                if isinstance(envelope.event, ClusterClosed) and not self._closed.done():
                    self._closed.set_result(envelope)
            elif envelope.sequence == self._seen + 1:
                self._seen = envelope.sequence
                self._take(envelope)

    def _take(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, Rejected):
            raise ReplayError(f"event {envelope.sequence} of run {self.run!r} was rejected: {event.reason}")
        for observer in self._observers:
            observer(envelope)
        if not isinstance(event, Decided) or self._opened.mode == "recorded":
            return
        if envelope.sequence in self._must_be_empty:
            self._must_be_empty.remove(envelope.sequence)
            if event.starts or event.kills:
                raise ReplayError(
                    f"run {self.run!r}: expected an empty decision at sequence {envelope.sequence}, because no waiting "
                    f"job fits; found {event}"
                )
        elif (awaited := self._awaited.pop(envelope.sequence, None)) is not None:
            awaited.set_result(event)
        else:
            self._decided[envelope.sequence] = event
