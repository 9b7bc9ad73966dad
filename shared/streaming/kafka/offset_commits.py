"""Records that faust reads from Kafka, and the offsets that it commits: a consumer that hands over whole fetches.

Faust takes records out of a fetch one at a time. For each of them it makes tasks, waits for the first one to be done,
and passes the record through a queue. This costs several times the work of a stage on the record. Faust still manages
the group, fetches records, controls the flow and sends the commits.
"""

import time
from collections import OrderedDict, defaultdict
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Any, Protocol

import faust
from faust.transport.drivers import aiokafka as driver


class Receiver(Protocol):
    """A receiver of records, in order of each partition."""

    async def ready(self) -> None:
        """Return when there is room for a record."""
        ...

    def receive(self, message: Any) -> None:
        """Receive a record."""
        ...

    def went_back(self, partition: int, read: int) -> None:
        """Register that Kafka delivers a record before offset `read` again, although nobody has asked for it."""
        ...

    def first_left(self, partition: int) -> int | None:
        """Return the lowest offset of the records that were left in the log of a partition; None if none was."""
        ...


class BatchConsumer(driver.Consumer):
    """A consumer that hands all records of a fetch to a receiver, and none to faust's streams.

    The offset that it commits is that of the first record that is not handled yet. Faust's own rule would ignore an
    unhandled record directly after the committed offset, and all unhandled records before the first commit.
    """

    receiver: Receiver

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._unhandled: defaultdict[Any, OrderedDict[int, None]] = defaultdict(OrderedDict)
        """The offsets of the records that were handed over and are not handled yet, in order, by partition."""
        self._next: dict[Any, int] = {}
        """The offset behind the last record that was handed over, by partition."""
        self._seeks: dict[Any, int] = {}
        """The offsets from which partitions are to be handed over now."""
        self._again: defaultdict[Any, set[int]] = defaultdict(set)
        """The offsets of the records that are read again and are not handled yet, by partition."""

    async def getmany(self, timeout: float) -> AsyncIterator[Any]:
        """Fetch records and hand them over. Records that arrive during a rebalance are fetched again."""
        await self._seek_all()
        records, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if not records or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        for tp, batch in records.items():
            if active is None or tp in active or tp in self._buffered_partitions:
                # a rebalance must not wait until there is room
                await self.wait_first(self._hand_over(tp, batch, generation), self.suspend_flow.wait())

        nothing: list[Any] = []
        for record in nothing:  # faust iterates over what is left
            yield record

    async def _hand_over(self, tp: Any, batch: Sequence[Any], generation: int) -> None:
        """Hand over the records of one partition that were not handed over before."""
        if self._commit_every is not None and self._n_acked >= self._commit_every:
            self._n_acked = 0
            await self.commit()
        await self.app.flow_control.acquire()
        self.app.monitor.stream_inbound_time[tp] = time.monotonic()
        for record in batch:
            await self.receiver.ready()
            if not self.flow_active or self.app.consumer_generation_id != generation or tp in self._seeks:
                return
            read, offset = self._read_offset[tp], record.offset
            if read is not None and offset < read:
                self.receiver.went_back(tp.partition, read)
                continue
            self._unhandled[tp][offset] = None
            self._next[tp] = offset + 1
            self.receiver.receive(self._to_message(tp, record))
            self._read_offset[tp] = offset

    def read_again(self, tp: Any, offset: int) -> None:
        """Register a record that was left in the log, and is to be handled now.

        No offset behind it may be committed before `handled`.
        """
        self._again[tp].add(offset)

    def handled(self, tp: Any, offset: int) -> None:
        """Register that a record was handled, or that its receiver has left it in the log."""
        self._unhandled[tp].pop(offset, None)
        self._again[tp].discard(offset)
        self._n_acked += 1

    def committed(self, tp: Any) -> int | None:
        """Return the committed offset of a partition; None if none is known."""
        offset: int | None = self._committed_offset[tp]
        return offset

    def stop_of(self, tp: Any) -> int | None:
        """Return the offset behind the last record that was handed over; None if none was."""
        return self._next.get(tp)

    def _filter_tps_with_pending_acks(self, topics: Any = None) -> Iterator[Any]:
        return (tp for tp in self._next if topics is None or tp in topics or tp.topic in topics)

    def _filter_committable_offsets(self, tps: Iterable[Any]) -> dict[Any, int]:
        first = {tp: self._first_unhandled(tp) for tp in tps}
        return {tp: offset for tp, offset in first.items() if offset > (self._committed_offset[tp] or 0)}

    def _first_unhandled(self, tp: Any) -> int:
        unhandled, left = self._unhandled[tp], self.receiver.first_left(tp.partition)
        first = next(iter(unhandled)) if unhandled else self._next[tp]
        return min([first, *self._again[tp], *([] if left is None else [left])])

    async def on_partitions_revoked(self, revoked: Any) -> None:
        """Forget the records of partitions that this worker no longer owns."""
        self._forget(revoked)
        await super().on_partitions_revoked(revoked)

    def _forget(self, tps: Iterable[Any]) -> None:
        for tp in tps:
            self._unhandled.pop(tp, None)
            self._again.pop(tp, None)
            self._next.pop(tp, None)
            self._seeks.pop(tp, None)

    def go_on(self, tp: Any, offset: int) -> None:
        """Hand over a partition from an offset on. Its receiver knows which records before it are not handled."""
        self._seeks[tp] = offset

    async def begin_again(self, tp: Any) -> None:
        """Read a partition from its beginning, and forget all positions in it: another log has taken its place."""
        self._forget([tp])
        self._committed_offset.pop(tp, None)
        await self._commit({tp: 0})
        self._seeks[tp] = 0

    async def _seek_all(self) -> None:
        """Go to the offsets that were asked for. aiokafka fails if this happens while records are fetched."""
        while self._seeks and self.flow_active:
            tp, offset = self._seeks.popitem()
            if tp in self.assignment():
                self._next[tp] = offset
                await self.seek(tp, offset)
                if offset > 0:  # the log has the record before it: if that comes again, the log was not replaced
                    self._read_offset[tp] = offset - 1


def deliver_batches(app: faust.App, receiver: Receiver) -> None:
    """Pass all records that an application reads to `receiver`. Call this before the application starts."""
    consumer = type("Consumer", (BatchConsumer,), {"receiver": receiver})
    transport = type("Transport", (driver.Transport,), {"Consumer": consumer})
    app.transport = transport(app.conf.broker_consumer, app)
