"""What was handled is stored and delivered while the next is worked out, and never out of order."""

import asyncio
import random
from collections.abc import Callable, Sequence

import pytest

from shadowtime.shared.errors import BusError, MessageRejected, StoreError
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import Transaction
from shadowtime.shared.streaming.worker.stage_worker import StageWorker
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import MemoryStream, Message, take_partition
from tests.unit.shared.streaming.fragile_stage import Bench, told
from tests.unit.shared.streaming.worker_runs import (
    RUNS,
    after_deduplication,
    expected_outputs,
    hurried,
    interleaved,
    new_worker,
)

NAME = "run-0"


class GatedStore(MemoryStore):
    """Stores nothing while its gate is closed, and fails at those transactions that it is told."""

    def __init__(self, failing: Sequence[int] = ()) -> None:
        super().__init__()
        self.gate = asyncio.Event()
        self.failing, self.asked = failing, 0

    async def commit(self, transaction: Transaction) -> None:
        self.asked += 1
        at = self.asked
        await self.gate.wait()
        if at in self.failing:
            raise StoreError("told to fail")
        await super().commit(transaction)


def log_of(run: str) -> list[Message]:
    return interleaved({run: RUNS[run]}, random.Random(0))


def offsets(worker: StageWorker) -> list[int]:
    return [each.record.offset for each in worker.take_done()]


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not holds():
            await asyncio.sleep(0.001)


async def handle(worker: StageWorker, log: Sequence[Message]) -> None:
    await worker.handle([worker.receive(record) for record in log])


@pytest.fixture
def compute(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the sequences of the events that a stage has worked out, as they come."""
    push, done = StageRun.push, list[int]()

    def noted(run: StageRun, envelope: Envelope) -> Envelope | None:
        answer = push(run, envelope)
        done.append(envelope.sequence)
        return answer

    monkeypatch.setattr(StageRun, "push", noted)
    return done


def test_the_next_events_are_worked_out_while_the_last_are_stored(compute: list[int]) -> None:
    log = log_of(NAME)

    async def work() -> None:
        store = GatedStore()
        stream = MemoryStream(log, random.Random(0))
        worker = new_worker(store, stream)
        await asyncio.wait_for(handle(worker, log[:10]), 10)
        later = asyncio.create_task(handle(worker, log[10:20]))
        await until(lambda: 19 in compute)
        assert store.asked == 1  # the next transaction is not begun with
        assert store.kept == {}
        assert stream.published == []
        assert not later.done()
        assert offsets(worker) == []
        store.gate.set()
        await later
        assert offsets(worker) == list(range(10))
        assert store.kept[NAME].sequence >= 9
        await worker.commit_all()
        assert offsets(worker) == list(range(10, 20))
        assert store.kept[NAME].sequence == 19
        assert after_deduplication(stream.published) == expected_outputs({NAME: RUNS[NAME][:20]})
        worker.close()

    asyncio.run(work())


@pytest.mark.parametrize("failing", [(1,), (2,), (1, 2), (2, 3)])
def test_what_could_not_be_stored_is_handled_again_before_what_came_after_it(failing: Sequence[int]) -> None:
    log = log_of(NAME)

    async def work() -> None:
        store = GatedStore(failing)
        store.gate.set()
        stream = MemoryStream(log, random.Random(0))
        worker = new_worker(store, stream)
        done: list[int] = []
        for first in range(0, len(log), 10):
            await handle(worker, log[first : first + 10])
            done += offsets(worker)
            assert all(offset <= store.kept[NAME].offset for offset in done)
        await worker.commit_all()
        assert done + offsets(worker) == list(range(len(log)))
        assert [*map(len, after_deduplication(stream.published).values())] == [len(RUNS[NAME])]
        assert after_deduplication(stream.published) == expected_outputs({NAME: RUNS[NAME]})
        worker.close()

    with hurried():
        asyncio.run(work())


def test_a_run_of_which_an_output_is_refused_ends_there_also_if_more_was_worked_out(compute: list[int]) -> None:
    log = log_of(NAME)

    class Refusing(MemoryStream):
        async def publish(
            self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]
        ) -> None:
            if any(b'"sequence":5' in value and b"quarantined" not in value for value in values):
                raise MessageRejected("Kafka never takes it")
            await super().publish(partition, run, values, times)

    async def work() -> None:
        store = GatedStore()
        stream = Refusing(log, random.Random(0))
        worker = new_worker(store, stream)
        await handle(worker, log[:10])
        later = asyncio.create_task(handle(worker, log[10:20]))
        await until(lambda: 19 in compute)
        store.gate.set()
        await later
        await worker.commit_all()
        assert "Kafka never takes it" in worker.quarantined[NAME]
        assert store.kept[NAME].sequence == 9
        assert store.kept[NAME].quarantined == worker.quarantined[NAME]
        assert [place for place, _ in stream.buried] == [9]
        assert offsets(worker) == list(range(20))
        said = after_deduplication(stream.published)[NAME]
        assert len(said) == 6
        worker.close()

    asyncio.run(work())


def test_records_that_are_given_up_are_looked_for_when_the_next_one_comes() -> None:
    log = log_of(NAME)

    async def work() -> None:
        store = GatedStore((1,))
        store.gate.set()
        stream = MemoryStream(log, random.Random(0))
        worker = new_worker(store, stream)
        await handle(worker, log[:10])
        assert [each.record.offset for each in await worker.give_up()] == list(range(10))
        await handle(worker, log[10:])
        await worker.commit_all()
        assert after_deduplication(stream.published) == expected_outputs({NAME: RUNS[NAME]})
        worker.close()

    asyncio.run(work())


def test_a_slice_is_waited_for_also_where_only_duplicates_come_after_it() -> None:
    log = log_of(NAME)[:10]
    again = Message(log[2].value, 10, log[2].key)

    async def work() -> None:
        store = GatedStore((1,))
        stream = MemoryStream([*log, again], random.Random(0))
        worker = new_worker(store, stream)
        await handle(worker, log)
        later = asyncio.create_task(handle(worker, [again]))
        await asyncio.sleep(0.2)
        assert not later.done()
        assert offsets(worker) == []
        store.gate.set()
        await later
        await worker.commit_all()
        assert store.kept[NAME].sequence == 9
        assert offsets(worker) == list(range(11))
        worker.close()

    with hurried():
        asyncio.run(work())


@pytest.mark.parametrize(("where", "stored"), [("commit", -1), ("publish", 9)])
def test_what_nobody_has_thought_of_quarantines_the_run_where_it_is_stored(where: str, stored: int) -> None:
    log = log_of(NAME)

    class Store(MemoryStore):
        async def commit(self, transaction: Transaction) -> None:
            if where == "commit" and transaction.outputs:
                raise ValueError("nobody thought of it")
            await super().commit(transaction)

    class Stream(MemoryStream):
        async def publish(
            self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]
        ) -> None:
            if where == "publish" and values:
                raise ValueError("nobody thought of it")
            await super().publish(partition, run, values, times)

    async def work() -> None:
        store, stream = Store(), Stream(log, random.Random(0))
        worker = new_worker(store, stream)
        for first in range(0, 30, 10):
            await handle(worker, log[first : first + 10])
        await worker.commit_all()
        assert "nobody thought of it" in worker.quarantined[NAME]
        assert store.kept[NAME].sequence == stored
        assert store.kept[NAME].quarantined is not None
        assert [place for place, _ in stream.buried] == [9]
        assert offsets(worker) == list(range(30))
        worker.close()
        after = new_worker(store, stream)
        await take_partition(after)
        assert set(after.quarantined) == {NAME}
        after.close()

    asyncio.run(work())


def test_the_last_words_of_a_quarantined_run_are_delivered_by_whoever_comes_next() -> None:
    bench = Bench([Message(value, at, b"evil") for at, value in enumerate(told("evil", [None, 2, *[None] * 8]))])
    publish, calls = bench.stream.publish, 0

    async def fails_once(partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise BusError("told to fail")
        await publish(partition, run, values, times)

    bench.stream.publish = fails_once  # type: ignore[method-assign]
    bench.handle(batch=20)
    bench.again()
    asyncio.run(take_partition(bench.worker))
    assert [each.sequence for each in bench.outputs("evil")] == list(range(11))
    assert bench.outputs("evil")[-1].event.kind == "Rejected"
    said = len(bench.stream.published)
    bench.handle(batch=20)
    asyncio.run(take_partition(bench.worker))
    assert len(bench.stream.published) == said


def test_a_run_ends_with_the_event_that_spoils_it_also_if_a_duplicate_follows() -> None:
    values = told("evil", [None, 2, *[None] * 6])[:8]
    bench = Bench([Message(value, at, b"evil") for at, value in enumerate([*values, values[-1]])])
    bench.handle(batch=20)
    assert bench.store.kept["evil"].sequence == 7
    assert [each.sequence for each in bench.outputs("evil")] == list(range(8))
    assert bench.outputs("evil")[-1].event.kind == "Rejected"
