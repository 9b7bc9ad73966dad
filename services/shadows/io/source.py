"""A shadow as a live source. It reads the log of a real run and the decisions of its own run, and emits its own events.

The events depend only on the records read. They do not depend on the division of the records into polls. So a killed
and restarted process emits the same events again. Positions are stored by the rules of
`services/follower/io/follower.py`.
"""

import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from aiokafka import AIOKafkaConsumer, TopicPartition
from aiokafka.errors import KafkaError

from shadowtime.services.follower import NameTable, Opening, SourceLoad
from shadowtime.services.shadows.comparison import PairedLogs
from shadowtime.services.shadows.machine import TwinMachine
from shadowtime.services.shadows.options import ShadowOf
from shadowtime.shared.accounting import Names
from shadowtime.shared.errors import BusError, FollowError
from shadowtime.shared.messages import (
    EVENTS,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobSubmitted,
    Rejected,
    SchedulingPoint,
)
from shadowtime.shared.quoting import quote
from shadowtime.shared.stages import DECISIONS, JOBS
from shadowtime.shared.streaming import Route, seconds_since_answer, silence_reason, topic_admin
from shadowtime.shared.streaming import clients as bus

# The beginning of the real run.

PART, PATIENCE = 500, 1_000
"""Maximum number of records of one poll of Kafka, and its timeout in milliseconds."""


async def beginning_of(
    consumer: AIOKafkaConsumer, partition: int, run: str, *, to_the_end: bool
) -> tuple[ClusterOpened, int, int]:
    """Return the first event of a run, the time of its last event so far, and the offset after the first event.

    Without `to_the_end`, only the beginning of the log is read. Then the time is the time of the last event that was
    read. Times are in seconds.

    Raise `FollowError` if there is no such run, or its beginning is gone.
    """
    place = TopicPartition(JOBS, partition)
    consumer.assign([place])
    end = (await consumer.end_offsets([place]))[place]
    await consumer.seek_to_beginning(place)
    first: ClusterOpened | None = None
    last, after = 0, 0
    while await consumer.position(place) < end and (first is None or to_the_end):
        records = await consumer.getmany(place, timeout_ms=PATIENCE, max_records=PART)
        for record in records.get(place, ()):
            if record.key != run.encode() or (envelope := Envelope.read(record.value)) is None:
                continue
            last = envelope.event.time
            if first is None:
                first, after = _opening(envelope), record.offset + 1

    if first is None:
        raise FollowError(
            f"topic {JOBS} has no run {quote(run)}; name the run to shadow: --of NAME; "
            "shadowtime watch decisions --beginning shows all runs"
        )

    return first, last, after


async def read_from(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> None:
    """Assign partitions to a consumer, each from its offset on. Raise `FollowError` if the record there was deleted."""
    consumer.assign(list(offsets))
    for place, offset in offsets.items():
        if (await consumer.beginning_offsets([place]))[place] > offset > 0:
            raise FollowError(
                f"topic {place.topic} has deleted the record at offset {offset}, so this shadow cannot continue; start "
                "another one with --name NEW"
            )
        consumer.seek(place, offset)


def _opening(envelope: Envelope) -> ClusterOpened:
    if not isinstance(envelope.event, ClusterOpened):
        raise FollowError(
            f"topic {JOBS} has run {quote(envelope.run)} only from sequence {envelope.sequence} on, but a shadow needs "
            "the whole run; increase the retention: shadowtime topics --retention-hours"
        )
    return envelope.event


class ShadowSource:
    """One policy beside a real run; a `LiveSource`.

    `of` has the cluster, the runs and the settings of the shadow.
    """

    name: ClassVar[str] = "shadow"
    takes: ClassVar[frozenset[str]] = frozenset()
    seen_once: ClassVar[bool] = False
    first: ClusterOpened
    paired: PairedLogs

    def __init__(self, of: ShadowOf) -> None:
        self.of = of
        self._exact = of.exact is not False
        self.load = SourceLoad()
        self.names = NameTable(Names(None))
        self._twin: TwinMachine | None = None
        self._consumer: AIOKafkaConsumer | None = None
        self._fetched: deque[Any] = deque()
        self._answers: deque[Any] = deque()
        self._forget()

    def _forget(self) -> None:
        self._last_sequence, self._real_offset = 0, 0  # real run: last sequence read, and offset of the next record
        self._answered, self._own_offset = -1, 0
        self._published = 0
        self._point = -1  # sequence of the last scheduling point that was emitted
        self._already: deque[Event] = deque()
        self._placed, self._placed_at = False, 0.0
        self._fetched.clear()
        self._answers.clear()

    @property
    def twin(self) -> TwinMachine:
        """Machine of the shadow. Access raises `FollowError` before `meet` or `restore` was called."""
        if self._twin is None:
            raise FollowError(f"{self.of.real}: call meet or restore first")
        return self._twin

    @property
    def met(self) -> bool:
        """Whether `meet` or `restore` has been called."""
        return self._twin is not None

    @property
    def over(self) -> bool:
        """Whether the real run was closed, and the shadow has emitted its last event."""
        return self._twin is not None and self._twin.closed

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return the opening of the real run, and the time from which on the shadow decides.

        Raises
        ------
        FollowError
            If there is no such run, or its beginning is gone.
        BusError
            If Kafka cannot be used.
        """
        self._forget()
        first, last, self._real_offset = await self._beginning(to_the_end=self.of.from_now and opened is None)
        takes_over = max(last + 1, first.time) if self.of.from_now else None
        self._begin(first, takes_over if opened is None else opened.obeyed_from)
        self._published = 1
        return Opening(first.processors, first.pools, first.unix_start, first.time, self.twin.takes_over or None)

    async def first_event(self) -> ClusterOpened:
        """Return the opening event of the real run. It raises the errors of `meet`."""
        first, _, _ = await self._beginning(to_the_end=False)
        return first

    async def _beginning(self, *, to_the_end: bool) -> tuple[ClusterOpened, int, int]:
        try:
            consumer = await self._connected()
            return await beginning_of(consumer, self._real_partition, self.of.real, to_the_end=to_the_end)
        except KafkaError as error:
            raise bus.unusable(self.of.settings, error) from error

    def _begin(self, first: ClusterOpened, takes_over: int | None) -> None:
        self.first = first
        self._twin = TwinMachine(first, exact=self._exact, takes_over=takes_over or 0)
        self.paired = PairedLogs(first, takes_over or 0)

    def next_time(self) -> int | None:
        """Return the time of the next instant. Return None if this time depends on records that were not read yet."""
        return None if self._unanswered and not self.twin.telling else self.twin.next_time()

    @property
    def _unanswered(self) -> bool:
        """Whether answers up to the last scheduling point are missing. From the takeover on, they are needed."""
        return self.twin.decides and self._answered < self._point

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant, without the events that the log has already.

        Raise `FollowError` if the log has another event than the shadow emits.
        """
        fresh = []
        for event in self.twin.next_instant():
            if isinstance(event, SchedulingPoint):
                self._point = self._published
            self._published += 1
            self.paired.shadow(event)
            if not self._already:
                fresh.append(event)
            elif (before := self._already.popleft()) != event:
                raise FollowError(
                    f"the shadow's log has {before}, but the shadow now emits {event}; start a new shadow: --name NAME"
                )

        return fresh

    async def listen(self) -> None:
        """Read the decisions of the shadow's run if a decision is pending; otherwise read more of the real run."""
        consumer = await self._connected()
        real, own = TopicPartition(JOBS, self._real_partition), TopicPartition(DECISIONS, self._own_partition)
        if not self._placed:
            await read_from(consumer, {real: self._real_offset, own: self._own_offset})
            self._placed = True
            self._placed_at = time.time()
        twin = self.twin
        if twin.deciding or self._unanswered:
            if not self._answers:
                self._answers.extend(await self._poll(own))
            while self._answers and (twin.deciding or self._unanswered):  # after a restart, later answers are there too
                self._take_answer(self._answers.popleft())
        else:
            if not self._fetched:
                self._fetched.extend(await self._poll(real))
            while self._fetched and self.next_time() is None and twin.needs_events:
                self._receive(self._fetched.popleft())

        self.load.behind = float(twin.behind)
        self.paired.at(twin.horizon - twin.behind)

    async def _poll(self, place: TopicPartition) -> Sequence[Any]:
        """Return the next records of a partition. Raise `BusError` if Kafka has not answered for long."""
        consumer = await self._connected()
        fetched = await consumer.getmany(place, timeout_ms=PATIENCE, max_records=PART)
        records: Sequence[Any] = fetched.get(place, ())
        if not records and (reason := silence_reason(seconds_since_answer(consumer, [place], self._placed_at))):
            raise BusError(reason)
        return records

    def _receive(self, record: Any) -> None:
        """Apply a record of the partition of the real run."""
        self._real_offset = record.offset + 1
        if record.key != self._real_key or (envelope := Envelope.read(record.value)) is None:
            return
        if envelope.sequence <= self._last_sequence:
            return
        if envelope.sequence > self._last_sequence + 1:
            raise FollowError(
                f"the log of run {quote(self.of.real)} has a gap: expected sequence {self._last_sequence + 1} next, "
                f"found {envelope.sequence}; shadow another run: --of NAME"
            )
        self._last_sequence = envelope.sequence
        self.load.answers += 1
        self.twin.receive(envelope.event)
        self.paired.real(envelope.event)

    def _take_answer(self, record: Any) -> None:
        """Apply a record of the partition of this run: the answer of the stages to one of its events."""
        self._own_offset = record.offset + 1
        if record.key != self._own_key or (envelope := Envelope.read(record.value)) is None:
            return
        if envelope.sequence <= self._answered:
            return
        self._answered, event = envelope.sequence, envelope.event
        if isinstance(event, Rejected):
            raise FollowError(
                f"event {envelope.sequence} of run {quote(envelope.run)} was rejected: {event.reason}; "
                "start a new shadow: --name NAME"
            )
        if envelope.run_time is not None and isinstance(event, JobSubmitted):
            self.twin.predict(event.job_number, envelope.run_time.point)
        if isinstance(event, Decided) and envelope.sequence == self._point and self.twin.deciding:
            self.twin.apply(event)

    async def _connected(self) -> AIOKafkaConsumer:
        if self._consumer is None:
            partitions = await topic_admin.partitions_of(self.of.settings, JOBS)
            self._real_key, self._own_key = self.of.real.encode(), self.of.run.encode()
            self._real_partition = bus.partition_of(self.of.real, partitions)
            self._own_partition = bus.partition_of(self.of.run, partitions)
            self._consumer = await bus.started(bus.reader(self.of.settings, wait_ms=PATIENCE))
        return self._consumer

    async def close(self) -> None:
        """Close the connection to Kafka."""
        consumer, self._consumer = self._consumer, None
        self._placed = False
        if consumer is not None:
            await consumer.stop()

    def routes(self) -> Sequence[Route]:
        """Return no routes: a shadow receives nothing over HTTP."""
        return ()

    def published(self, event: Event) -> None:
        """Record an event that an earlier process has published."""
        self._already.append(event)

    def snapshot(self) -> Any:
        """Return the positions in both logs, the machine and the comparison as plain values."""
        return {
            "real": self.of.real,
            "exact": self._exact,
            "first": self.first.model_dump(mode="json"),
            "takes_over": self.twin.takes_over,
            "heard": [self._last_sequence, self._real_offset],
            "answered": [self._answered, self._own_offset],
            "told": [self._published, self._point],
            "already": [event.model_dump() for event in self._already],
            "twin": self.twin.snapshot(),
            "side_by_side": self.paired.both.snapshot(),
            "paired": self.paired.snapshot(),
        }

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned.

        Raise `FollowError` if the stored shadow is of another real run, or has another `exact`.
        """
        wanted = self.of.exact
        if state["real"] != self.of.real or wanted not in (None, state["exact"]):
            kind = "an exact shadow" if state["exact"] else "a shadow by predictions"
            raise FollowError(
                f"run {quote(self.of.run)} exists already as {kind} of {quote(state['real'])}; choose another --name"
            )
        self._exact = state["exact"]
        self._forget()
        self._begin(ClusterOpened.model_validate(state["first"]), state["takes_over"])
        self._last_sequence, self._real_offset = state["heard"]
        self._answered, self._own_offset = state["answered"]
        self._published, self._point = state["told"]
        self._already = deque(EVENTS.validate_python(state["already"]))
        self.twin.restore(state["twin"])
        self.paired.restore(state["paired"], state["side_by_side"])
