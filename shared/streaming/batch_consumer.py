"""Faust's consumer, which hands over what a fetch has brought as a whole.

Faust takes records out of a fetch one at a time, and for each of them makes tasks, waits for whichever is done first,
and passes it through a queue: several times what a stage works on it. Membership of the group, fetching, flow control
and commits stay faust's.
"""

import time
from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol

import faust
from faust.transport.drivers import aiokafka as driver


class Receiver(Protocol):
    """Who takes records, in order of each partition."""

    async def ready(self) -> None:
        """Return when there is room for a record."""
        ...

    def receive(self, message: Any) -> None:
        """Take a record."""
        ...


class BatchConsumer(driver.Consumer):
    """Hands over all records of a fetch, and none one at a time."""

    receiver: Receiver

    async def getmany(self, timeout: float) -> AsyncIterator[Any]:
        """Fetch records and hand them over; those that come while partitions move are fetched again."""
        records, active = await self._wait_next_records(timeout)
        generation = self.app.consumer_generation_id
        if not records or self.should_stop:
            return
        if not self.flow_active:
            await self.perform_seek()
            return
        for place, batch in records.items():
            if active is None or place in active or place in self._buffered_partitions:
                # whoever is told that partitions move must not wait until there is room
                await self.wait_first(self._hand_over(place, batch, generation), self.suspend_flow.wait())
        nothing: list[Any] = []
        for each in nothing:  # faust iterates over what is left
            yield each

    async def _hand_over(self, place: Any, batch: Sequence[Any], generation: int) -> None:
        """Hand over the records of one partition that were not handed over before."""
        if self._commit_every is not None and self._n_acked >= self._commit_every:
            self._n_acked = 0
            await self.commit()
        await self.app.flow_control.acquire()
        self.app.monitor.stream_inbound_time[place] = time.monotonic()
        for record in batch:
            await self.receiver.ready()
            if not self.flow_active or self.app.consumer_generation_id != generation:
                return
            read, offset = self._read_offset[place], record.offset
            if read is not None and offset < read:
                continue
            if read and offset > read + 1:
                await self._add_gap(place, read + 1, offset)
            self.receiver.receive(self._to_message(place, record))
            self._read_offset[place] = offset


def deliver_batches(app: faust.App, receiver: Receiver) -> None:
    """Let the records that an application reads go to `receiver`, before it starts."""
    consumer = type("Consumer", (BatchConsumer,), {"receiver": receiver})
    transport = type("Transport", (driver.Transport,), {"Consumer": consumer})
    app.transport = transport(app.conf.broker_consumer, app)
