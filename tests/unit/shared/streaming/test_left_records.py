"""Records that wait in the log: none is forgotten, none is read twice, and the lowest offset is known."""

import asyncio
from collections import OrderedDict, defaultdict
from types import SimpleNamespace
from typing import Any, cast

import pytest
from aiokafka import TopicPartition
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.streaming.kafka import clients
from shadowtime.shared.streaming.kafka.offset_commits import BatchConsumer
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.fair_queue import FairQueue
from shadowtime.shared.streaming.worker.left_records import LeftReader, LeftRecords, LeftSpan, LogReading, Unhandled
from shadowtime.shared.streaming.worker.loop import (
    NO_RUN,
    READ_AGAIN,
    READ_BACK,
    SHORT_BACKLOG,
    STORED_FROM,
    WAITING,
    WAITING_EACH,
    WorkerLoop,
    next_reading,
)

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.sampled_from([b"a", b"b", b"c"]), st.booleans()),
        st.tuples(st.just("read"), st.sampled_from([b"a", b"b", b"c"]), st.integers(1, 5)),
        st.tuples(st.just("drop"), st.just(b""), st.just(0)),
    ),
    max_size=60,
)


@given(STEPS)
def test_left_records_are_those_of_a_list(steps: list[tuple[str, bytes, int]]) -> None:
    left, twin = LeftRecords(), list[tuple[bytes, int, int]]()  # key, epoch, offset
    offset = epoch = 0
    for step, key, number in steps:
        if step == "add":
            epoch += number
            offset += 1 + epoch % 3  # other records lie in between
            assert not left.covers(key, 0, offset)
            left.add(key, 0, epoch, offset)
            twin.append((key, epoch, offset))
        elif step == "read" and key in left:
            part = left.next_part(key)
            own = [at for whose, its, at in twin if whose == key and its == part.epoch]
            assert (part.partition, part.first <= own[0], part.last, part.count) == (0, True, own[-1], len(own))
            taken = own[:number]
            left.read(key, taken[-1] + 1 if len(taken) == number else part.last + 1, len(taken))
            twin = [entry for entry in twin if entry[2] not in taken]
        elif step == "drop" and number == 0:
            left.drop(1)
            if len(twin) > 9:
                left.drop(0)
                twin.clear()

        assert len(left) == len(twin)
        assert set(left.keys) == {key for key, _, _ in twin}
        first = left.first_of(0)
        assert (first is None) == (not twin)
        assert first is None or first <= min(at for _, _, at in twin)
        assert all(left.covers(key, 0, at) for key, _, at in twin)
        for key in left.keys:
            assert left.is_behind(key, max(at for whose, _, at in twin if whose == key) + 1)


def all_left(keys: list[bytes]) -> LeftRecords:
    """Return the records of these keys, all of stretch 7, as left in partition 0 from offset 0 on."""
    left = LeftRecords()
    for offset, key in enumerate(keys):
        left.add(key, 0, 7, offset)
    return left


def test_a_reading_for_short_backlogs_takes_all_of_them_and_no_others() -> None:
    keys = [b"live", b"other", b"long"] * 3 + [b"long"] * 9
    left = all_left(keys)
    reader = LeftReader(left, LogReading(b"live", 20, 20, 1_000, most_left=3))
    assert [at for at, key in enumerate(keys) if reader.epoch_of(key, at)] == [0, 1, 3, 4, 6, 7]
    assert reader.enough
    assert left.keys == [b"long"]


def test_a_part_whose_records_kafka_no_longer_has_is_done() -> None:
    left = LeftRecords()
    for offset in (3, 4, 9):
        left.add(b"a", 0, 1, offset)
    assert (left.count(b"a"), left.count(b"b"), left.count(None)) == (3, 0, 0)
    left.read(b"a", 10, 0)
    assert (len(left), b"a" in left, left.first_of(0)) == (0, False, None)


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=60), st.integers(1, 6), st.integers(1, 20))
def test_readings_take_the_records_of_each_run_in_order_and_none_twice(keys: list[bytes], most: int, all_: int) -> None:
    left = all_left(keys)
    taken: dict[bytes, list[int]] = {key: [] for key in keys}
    for _ in range(len(keys)):
        if not left:
            break
        chosen = left.keys[0]
        part = left.next_part(chosen)
        before, own = len(left), left.count(chosen)
        due = most if own <= most else 1
        reader = LeftReader(left, LogReading(chosen, due, most, all_))
        for offset in range(part.first, part.last + 1):
            if reader.epoch_of(keys[offset], offset) == 7:
                taken[keys[offset]].append(offset)
        assert reader.enough
        assert before - len(left) <= all_ + due
        assert left.count(chosen) == 0 if own <= most else left.count(chosen) < own  # whatever others have in between
    assert not left
    assert taken == {key: [at for at, each in enumerate(keys) if each == key] for key in keys}


@given(st.lists(st.sampled_from([b"a", b"b", b"c"]), min_size=1, max_size=60), st.integers(1, 6), st.integers(1, 9))
def test_a_reading_that_was_ended_goes_on_where_it_was(keys: list[bytes], most: int, patience: int) -> None:
    left = all_left(keys)
    taken: dict[bytes, list[int]] = {key: [] for key in keys}
    while left:
        chosen = left.keys[0]
        part = left.next_part(chosen)
        before = part.first
        reader = LeftReader(left, LogReading(chosen, most, most, most))
        for offset in range(part.first, min(part.first + patience, part.last + 1)):
            if reader.epoch_of(keys[offset], offset) == 7:
                taken[keys[offset]].append(offset)
            if reader.enough:
                break
        else:
            reader.stop_before(offset + 1)
        assert chosen not in left or left.next_part(chosen).first > before
    assert taken == {key: [at for at, each in enumerate(keys) if each == key] for key in keys}


@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"b", b"c"]), st.sampled_from(["left", "waits", "done"])), max_size=60),
    st.integers(0, 3),
)
def test_what_is_stored_has_all_unhandled_records(records: list[tuple[bytes, str]], readings: int) -> None:
    """The next owner knows of each record that its predecessor had left, read again, or not handled yet."""
    left, waiting = LeftRecords(), list[tuple[bytes, int]]()
    for offset, (key, fate) in enumerate(records):
        if fate == "left" or (key in left and fate == "waits"):
            left.add(key, 3, 1 + offset // 20, offset)
        elif fate == "waits":
            waiting.append((key, offset))
    unhandled = {*waiting, *((key, at) for at, (key, fate) in enumerate(records) if left.covers(key, 3, at) and fate)}
    left.add(b"a", 4, 1, 7)  # of another partition
    for key in left.keys[:readings]:
        part = left.next_part(key)
        if part.partition == 3:
            waiting.append((key, part.first))
            left.read(key, part.first + 1, 1)

    stored = Unhandled.from_bytes(left.unhandled(3, "log/0", len(records), waiting).to_bytes())
    assert (stored.log, stored.stop) == ("log/0", len(records))
    following = LeftRecords()
    following.restore(3, 9, stored.spans)
    for key, offset in unhandled:
        assert following.covers(key, 3, offset)
        assert following.is_behind(key, len(records))
    assert not following.covers(b"a", 4, 7)
    first = min((at for key, at in unhandled), default=None)
    assert following.first_of(3) == first
    assert len(following) == sum(span.records for span in stored.spans.values())


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[" * 5_000,
        b'{"log": "log/0", "stop": 9, "spans": []}',
        b'["log/0", -1, []]',
        b'["log/0", 9, [["6b", 5, 3, 2]]]',
        b'["log/0", 9, [["6b", 5, 9, 2]]]',
        b'["log/0", 9, [["6b", 5, 7]]]',
        b'["log/0", 9, [["6b", 5, 7, 0]]]',
        b'["log/0", 9, [["key", 5, 7, 2]]]',
    ],
)
def test_what_nobody_has_stored_is_a_value_error(content: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        Unhandled.from_bytes(content)


def test_the_next_owner_begins_near_the_place_where_the_last_one_stopped() -> None:
    settings = Settings()
    loop, consumer = receiving_loop(settings)
    partition = clients.partition_of("kth", settings.partitions)
    stop, start = 9_000 + READ_BACK, 9_000
    unhandled = Unhandled("log/0", stop, {b"kth": LeftSpan(7, start + 1, 300), b"few": LeftSpan(start, stop - 1, 9)})
    consumer.at = start - 1
    asyncio.run(loop._go_on(partition, 1, unhandled))  # noqa: SLF001
    assert (consumer.at, loop.left, loop.first_left(partition)) == (start, 300, 7)
    receive(loop, b"kth", partition, 3, first=start)
    assert (loop.left, consumer.offsets) == (301, [start, start + 1, start + 2])  # two of them had been left
    asyncio.run(loop._go_on(partition, 1, unhandled))  # noqa: SLF001
    assert (consumer.at, loop.left) == (start, 301)  # all of them were handled since


def test_a_partition_that_goes_on_is_not_taken_for_a_replaced_one() -> None:
    """aiokafka fails if the place changes while records are fetched; what was fetched before is dropped."""
    taken, doubts, place = list[int](), list[int](), TopicPartition(STAGES[0].reads, 3)

    class Consumer(BatchConsumer):
        flow_active = True

        def __init__(self) -> None:
            self._next, self._seeks, self._commit_every, self._unhandled = {}, {}, None, defaultdict(OrderedDict)
            self._read_offset = {place: 10}
            monitor = SimpleNamespace(stream_inbound_time={})
            flow = SimpleNamespace(acquire=lambda: asyncio.sleep(0))
            application = SimpleNamespace(consumer_generation_id=1, monitor=monitor, flow_control=flow)
            self.app = cast("Any", application)
            self.receiver = cast(
                "Any",
                SimpleNamespace(
                    ready=lambda: asyncio.sleep(0),
                    went_back=lambda _, read: doubts.append(read),
                    receive=lambda record: taken.append(record.offset),
                ),
            )

        def assignment(self) -> set[Any]:
            return {place}

        def _to_message(self, _: Any, record: Any) -> Any:
            return record

        async def seek(self, partition: Any, offset: int) -> None:
            self._read_offset[partition] = offset

    async def work() -> None:
        consumer = Consumer()
        consumer.go_on(place, 5_000)
        await consumer._hand_over(place, [SimpleNamespace(offset=11)], 1)  # noqa: SLF001
        assert not taken
        await consumer._seek_all()  # noqa: SLF001
        assert consumer.stop_of(place) == 5_000
        await consumer._hand_over(place, [SimpleNamespace(offset=4_000), SimpleNamespace(offset=5_000)], 1)  # noqa: SLF001
        assert (taken, doubts) == ([5_000], [4_999])  # the log had a record there, and maybe none behind it

    asyncio.run(work())


def test_the_unhandled_records_are_stored_if_many_lie_behind_them() -> None:
    settings = Settings()
    loop, consumer = receiving_loop(settings)
    partition = clients.partition_of("kth", settings.partitions)
    stored = list[Unhandled]()

    async def store(_: int, unhandled: Unhandled) -> None:
        stored.append(unhandled)

    cast("Any", loop.worker).store_unhandled = store
    asyncio.run(loop._store_unhandled(cast("Any", loop.worker)))  # noqa: SLF001
    receive(loop, b"kth", partition, WAITING_EACH[0] + STORED_FROM)
    consumer.partition, consumer.at = partition, WAITING_EACH[0] + STORED_FROM - 1
    asyncio.run(loop._store_unhandled(cast("Any", loop.worker)))  # noqa: SLF001
    assert not stored
    consumer.at += 1
    asyncio.run(loop._store_unhandled(cast("Any", loop.worker)))  # noqa: SLF001
    assert not stored  # not twice in two seconds
    loop._store_due = 0.0  # noqa: SLF001
    asyncio.run(loop._store_unhandled(cast("Any", loop.worker)))  # noqa: SLF001
    assert stored == [Unhandled("log/0", consumer.at, {b"kth": LeftSpan(0, consumer.at - 1, consumer.at)})]


def test_what_is_stored_of_all_partitions_is_of_one_instant() -> None:
    """While one statement is sent, records of another partition are read from the log: they must not be in neither."""
    loop, consumer = receiving_loop(Settings())
    names = {clients.partition_of(name, 8): name.encode() for name in map(str, range(99))}
    stored = dict[int, Unhandled]()

    async def store(at: int, unhandled: Unhandled) -> None:
        stored[at] = unhandled
        for key in loop._left.keys:  # noqa: SLF001
            loop._left.read(key, 1, 1)  # noqa: SLF001

    for partition, key in names.items():
        loop._left.add(key, partition, 1, 0)  # noqa: SLF001
    consumer.at = STORED_FROM
    consumer.assignment = lambda: {TopicPartition(STAGES[0].reads, at) for at in names}  # type: ignore[method-assign]
    cast("Any", loop.worker).store_unhandled = store
    asyncio.run(loop._store_unhandled(cast("Any", loop.worker)))  # noqa: SLF001
    assert {at: list(one.spans) for at, one in stored.items()} == {at: [key] for at, key in names.items()}


def test_a_partition_that_was_revoked_has_no_more_records() -> None:
    settings = Settings()
    loop, consumer = receiving_loop(settings)
    partition = clients.partition_of("kth", settings.partitions)
    receive(loop, b"kth", partition, 1)
    assert not loop._has_more()  # noqa: SLF001
    consumer.partition = partition
    assert loop._has_more()  # noqa: SLF001


class Handled:
    """A consumer that notes which offsets are done with."""

    def __init__(self) -> None:
        self.offsets: list[int] = []
        self.flow_active, self.at, self.partition = True, 0, 0

    def handled(self, _: Any, offset: int) -> None:
        self.offsets.append(offset)

    def committed(self, _: Any) -> int:
        return self.at

    stop_of = committed

    def assignment(self) -> set[Any]:
        return {TopicPartition(STAGES[0].reads, self.partition)}

    def go_on(self, _: Any, offset: int) -> None:
        self.at = offset

    def highwater(self, tp: Any) -> int:
        assert tp in self.assignment()
        return 9


def receiving_loop(settings: Settings) -> tuple[WorkerLoop, Handled]:
    """Return a loop that receives records and handles none, and its consumer."""
    consumer = Handled()
    loop = WorkerLoop(cast("Any", SimpleNamespace(consumer=consumer)), STAGES[0], settings, WorkerMetrics("a"))
    loop.worker = cast(
        "Any",
        SimpleNamespace(
            receive=lambda record: SimpleNamespace(record=record, epoch=1, time=0.0),
            holds=lambda key: key is not None,
            was_handled=lambda _: False,
            is_current=lambda _: True,
            identity=lambda _: "log/0",
            pending=(),
        ),
    )
    return loop, consumer


def receive(loop: WorkerLoop, key: bytes, partition: int, count: int, first: int = 0) -> None:
    place = TopicPartition(STAGES[0].reads, partition)
    for offset in range(first, first + count):
        loop.receive(SimpleNamespace(key=key, value=b"{}", partition=partition, offset=offset, tp=place))


def test_a_key_in_a_wrong_partition_takes_no_room_of_the_run_of_this_name() -> None:
    """Such a record is no run's: it becomes a dead letter on a turn of such records, and these take no room either."""
    settings = Settings()
    loop, consumer = receiving_loop(settings)
    right = clients.partition_of("kth", settings.partitions)
    for partition in (right, (right + 1) % settings.partitions):
        receive(loop, b"kth", partition, WAITING_EACH[0] + 5)
    others = loop.turns.count(NO_RUN % ((right + 1) % settings.partitions))
    assert loop.turns.count(b"kth") == WAITING_EACH[0]
    assert others == WAITING_EACH[1]  # half of the room is taken by then
    assert loop.left == 5 + WAITING_EACH[0] + 5 - others
    assert len(consumer.offsets) == loop.left


def test_a_run_without_a_backlog_has_room_while_others_fill_the_queue() -> None:
    settings = Settings()
    loop, _ = receiving_loop(settings)
    loop.turns.put(b"quick", cast("Any", 0), 1)
    loop.turns.take(1, 1)
    loop.turns.charge(b"quick", 0.001, 0.001, 0.001)
    for number in range(3 * WAITING // 4):
        loop.turns.put(b"busy", cast("Any", number), 1)
    _, few, one = WAITING_EACH
    for key, room in ((b"new", one), (b"quick", few)):
        receive(loop, key, clients.partition_of(key.decode(), settings.partitions), few + 1)
        assert loop.turns.count(key) == room


def test_the_log_is_read_again_in_large_parts() -> None:
    """Records are read while there is room for many, or for a run with few waiting records, together with others'."""
    left, turns = LeftRecords(), FairQueue[Any](WAITING, WAITING)
    ample, few, one = WAITING_EACH

    def put(key: bytes, count: int) -> None:
        for number in range(count):
            turns.put(key, number, 1)

    def leave(key: bytes, count: int) -> None:
        for offset in range(count):
            left.add(key, 0, 1, offset)

    put(b"busy", ample - READ_AGAIN)
    leave(b"busy", SHORT_BACKLOG + 1)
    assert next_reading(left, turns) == LogReading(b"busy", one, ample, READ_AGAIN)
    put(b"busy", 1)
    assert next_reading(left, turns) is None  # a part of the log would be read for few records
    put(b"busy", READ_AGAIN)
    leave(b"idle", SHORT_BACKLOG + 1)
    assert next_reading(left, turns) == LogReading(b"idle", few, few, READ_AGAIN)
    put(b"idle", few // 2 + 1)
    assert next_reading(left, turns) is None
    leave(b"none waits", SHORT_BACKLOG + 1)
    leave(b"a short one", 1)
    assert next_reading(left, turns) == LogReading(b"a short one", few, few, READ_AGAIN, SHORT_BACKLOG)
    assert next_reading(left, turns, short_first=False) == LogReading(b"none waits", few, few, READ_AGAIN)
    left.read(b"a short one", 1, 1)
    put(b"busy", WAITING // 8)
    assert next_reading(left, turns) == LogReading(b"none waits", few, one, READ_AGAIN)
    put(b"busy", 3 * WAITING // 8)
    assert next_reading(left, turns) is None  # the queue is full
    leave(b"short", SHORT_BACKLOG)
    assert next_reading(left, turns) == LogReading(b"short", few, few, few, SHORT_BACKLOG)
    assert next_reading(left, turns, short_first=False) == LogReading(
        b"short", few, few, few, SHORT_BACKLOG
    )  # no other can be read
    put(b"short", few // 2 + 1)
    assert next_reading(left, turns) is None


def test_runs_with_short_backlogs_do_not_keep_a_longer_one_from_being_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """Under attack there are always some: a finished replay of 400 records had waited for seventeen minutes."""
    loop, _ = receiving_loop(Settings())
    for offset in range(SHORT_BACKLOG + 1):
        loop._left.add(b"long", 0, 1, offset)  # noqa: SLF001
    keys = list[bytes]()

    async def read(_: Any, reading: LogReading) -> None:
        keys.append(reading.key)

    async def work() -> None:
        monkeypatch.setattr(loop, "_read_left_of", read)
        for number in range(6):
            loop._left.add(b"short %d" % number, 0, 1, 1_000 + number)  # noqa: SLF001
            loop._read_left(cast("Any", loop.worker))  # noqa: SLF001
            await asyncio.sleep(0)

    asyncio.run(work())
    assert keys.count(b"long") == 3
