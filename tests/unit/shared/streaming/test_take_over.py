"""Taking over the runs of a partition: in pieces beside records, and without reading runs that left nothing."""

import asyncio
import random
from collections.abc import Sequence

from shadowtime.shared.messages import ClusterOpened, Envelope
from shadowtime.shared.streaming.protocols import RunState, RunSummary, Transaction
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.stage_worker import SUMMARIES_AT_ONCE, StageWorker
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import SCHEDULER, MemoryStream, Message, hand_over, no_sleep
from tests.unit.shared.streaming.worker_runs import SETTINGS


class CountingStore(MemoryStore):
    """Counts the requests that a take-over makes."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.asked: list[int] = []

    async def load(self, run: str) -> RunState | None:
        self.loads.append(run)
        return await super().load(run)

    async def summaries(self, runs: Sequence[str]) -> list[RunSummary | None]:
        self.asked.append(len(runs))
        return await super().summaries(runs)


class SlowStream(MemoryStream):
    """Each delivery takes 20 ms by the clock that it keeps."""

    seconds = 0.0

    def clock(self) -> float:
        return self.seconds

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        self.seconds += 0.02
        await super().publish(partition, run, values, times)


def opened(run: str, sequence: int = 0) -> bytes:
    return Envelope(run=run, sequence=sequence, event=ClusterOpened(time=0, cluster="c", processors=4)).to_bytes()


def bench(names: Sequence[str], outputs: Sequence[bytes]) -> tuple[CountingStore, SlowStream, StageWorker]:
    """Return a store with these runs, whose last owner delivered none of these outputs; and a new worker."""
    store = CountingStore()
    for name in names:
        left = [b"%s %s" % (name.encode(), output) for output in outputs]
        asyncio.run(store.commit(Transaction(name, -1, 0, 7, 0, None, [opened(name)], left, 0)))
    stream = SlowStream([], random.Random(0))
    context = WorkerContext(SCHEDULER, store, stream, SETTINGS, WorkerMetrics("scheduler"), 1, stream.clock, no_sleep)
    return store, stream, StageWorker(context)


def test_records_are_handled_between_the_pieces_of_a_take_over() -> None:
    names = [f"run-{number:02}" for number in range(30)]
    _, stream, worker = bench(names, [b"a", b"b"])

    async def work() -> None:
        await worker.take(0)
        assert worker.untaken == 30
        await worker.take_over()
        assert worker.untaken == 27  # three deliveries of 20 ms
        await hand_over(worker, [Message(opened("run-29", 0), 7, b"run-29")])
        assert stream.published[-2:] == [b"run-29 a", b"run-29 b"]
        while worker.untaken:
            left = worker.untaken
            await worker.take_over()
            assert worker.untaken < left

    asyncio.run(work())
    assert sorted(stream.published) == sorted(b"%s %s" % (name.encode(), end) for name in names for end in (b"a", b"b"))


def test_runs_that_left_nothing_are_not_read() -> None:
    store, stream, worker = bench([f"run-{number}" for number in range(3_000)], [])

    async def work() -> None:
        await worker.take(0)
        await worker.take_over()

    asyncio.run(work())
    assert worker.untaken == 0
    assert store.loads == []
    assert store.asked == [SUMMARIES_AT_ONCE] * (2 * 3_000 // SUMMARIES_AT_ONCE)  # at the assignment, and then
    assert stream.published == []


def test_a_record_counts_as_handled_only_if_the_stored_state_surely_includes_it() -> None:
    store, _, worker = bench(["a"], [])

    def record(offset: int, sequence: int | str, run: str = "a") -> Message:
        value = opened(run).replace(b'"sequence":0', f'"sequence":{sequence}'.encode())
        return Message(value, offset, run.encode())

    assert not worker.was_handled(record(7, 0))  # nobody took the partition yet
    asyncio.run(worker.identify(0))
    store.kept["a"].log = store.logs[0]
    asyncio.run(worker.take(0))
    assert worker.was_handled(record(7, 0))
    assert worker.was_handled(record(3, 0))
    assert not worker.was_handled(record(8, 0))
    assert not worker.was_handled(record(7, 1))  # another log may have taken the place of this one
    assert not worker.was_handled(record(7, 0, "b"))
    assert not worker.was_handled(record(7, '"0"'))
    assert not worker.was_handled(Message(b"{", 7, b"a"))
    assert not worker.was_handled(Message(None, 7, b"a"))
    store.kept["a"].log = "another/0"
    asyncio.run(worker.take(0))
    assert not worker.was_handled(record(7, 0))
    worker.close()
