"""A log that takes the place of another: events are judged by their sequence, and each is handled once."""

import asyncio
import random

import pytest

from shadowtime.shared.errors import StateAltered
from shadowtime.shared.messages import ClusterOpened, Envelope, SchedulingPoint
from shadowtime.shared.streaming.kafka.partition_log import PartitionLog
from shadowtime.shared.streaming.protocols import RunState
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.stage_worker import StageWorker
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import SCHEDULER, MemoryStream, Message, hand_over, no_sleep
from tests.support.topic_logs import without_duplicates
from tests.unit.shared.streaming.worker_runs import SETTINGS


def message(sequence: int, offset: int) -> Message:
    event = SchedulingPoint(time=sequence) if sequence else ClusterOpened(time=0, cluster="c", processors=4)
    return Message(Envelope(run="run", sequence=sequence, event=event).to_bytes(), offset, b"run")


def worker(stream: MemoryStream, store: MemoryStore) -> StageWorker:
    return StageWorker(
        WorkerContext(SCHEDULER, store, stream, SETTINGS, WorkerMetrics("scheduler"), 1, lambda: 0.0, no_sleep)
    )


def answered(stream: MemoryStream) -> list[int]:
    return without_duplicates([Envelope.from_bytes(value).sequence for value in stream.published])


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("same_topic", [False, True], ids=["another-topic", "records-lost"])
def test_new_events_at_old_offsets_are_handled(restarted: bool, same_topic: bool) -> None:
    first = [message(number, number) for number in range(10)]
    second = [message(number + 8, number) for number in range(6)]  # 8 and 9 again, then 10 to 13

    async def work() -> None:
        stream, store = MemoryStream(first, random.Random(0)), MemoryStore()
        stage = worker(stream, store)
        assert not await stage.identify(0)
        await hand_over(stage, first)
        stream.log = second
        if not same_topic:
            stream.id = "second"
        if restarted:
            stage = worker(stream, store)
            if same_topic:
                assert not await stage.identify(0)
        if same_topic or not restarted:
            await hand_over(stage, second)
            assert answered(stream) == list(range(10))
            assert stage.doubtful == {0: 9}
        assert await stage.identify(0)
        await stage.keep_log(0)
        await hand_over(stage, second)
        assert answered(stream) == list(range(14))
        (letter,) = (reason for offset, reason in stream.buried if offset == -1)
        assert ("ends before offset 9" if same_topic else "was deleted and made again") in letter
        assert list(stage.replaced_logs) == [0]
        assert not await stage.identify(0)
        assert store.logs == {0: "first/1" if same_topic else "second/0"}
        assert store.kept["run"].log == store.logs[0]

        after = worker(stream, store)
        assert not await after.identify(0)
        await hand_over(after, second)
        assert answered(stream) == list(range(14))

    asyncio.run(work())


def test_a_kafka_older_than_the_state_is_noticed_without_a_new_event() -> None:
    log = [message(number, number) for number in range(10)]

    async def work() -> None:
        stream, store = MemoryStream(log, random.Random(0)), MemoryStore()
        stage = worker(stream, store)
        await stage.identify(0)
        await hand_over(stage, log)
        for kept, replaced in ((log, False), (log[:6], True)):
            stream.log = kept
            stage = worker(stream, store)
            assert not await stage.identify(0)
            await stage.take(0)
            while stage.untaken:
                await stage.take_over()
            assert stage.doubtful == {0: 9}
            assert await stage.identify(0) is replaced
            assert stage.doubtful == {}

    asyncio.run(work())


def test_events_that_come_again_in_the_same_log_are_duplicates() -> None:
    """An early event is refused for good, even if the stream goes back when it would fit."""
    log = [message(0, 0), message(2, 1), message(1, 2)]

    async def work() -> None:
        stream, store = MemoryStream(log, random.Random(0)), MemoryStore()
        stage = worker(stream, store)
        await stage.identify(0)
        await hand_over(stage, log)
        await hand_over(stage, log)
        assert answered(stream) == [0, 1]
        assert stage.doubtful == {0: 2}
        assert not await stage.identify(0)
        assert stage.doubtful == {}

    asyncio.run(work())


def test_a_run_whose_stored_state_was_altered_begins_again_from_the_log() -> None:
    log = [message(number, number) for number in range(12)]

    class Altered(MemoryStore):
        altered = False

        async def load(self, run: str) -> RunState | None:
            if self.altered and run in self.kept:
                raise StateAltered("the state of run 'run' is not what the stage has stored")
            return await super().load(run)

    async def work() -> None:
        stream, store = MemoryStream(log, random.Random(0)), Altered()
        await hand_over(worker(stream, store), log[:8])
        honest, store.altered = list(stream.published), True
        stage = worker(stream, store)
        stream.published.clear()
        await hand_over(stage, log[8:])
        assert stream.published[:8] == honest
        assert answered(stream) == list(range(12))
        assert list(stage.altered) == ["run"]
        ((offset, reason),) = stream.buried
        assert (offset, reason[-50:]) == (-1, "it is dropped, and the run is rebuilt from the log")

    asyncio.run(work())


def test_stretches_belong_to_the_log_in_which_they_were_received() -> None:
    places = PartitionLog()
    places.identify("old")
    before = places.receive(7, b"run", b"ClusterOpened")
    places.begin_again("new")
    after = places.receive(0, b"run", b"")
    assert [places.identity_of(epoch) for epoch in (before, after)] == ["old", "new"]
    assert places.identity == "new"
    assert places.beginning(b"run") is None
