"""Several runs in one call: beside each other, each effectively once, and nothing of one in the place of another's."""

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.streaming.protocols import Record, RunState, Transaction
from shadowtime.shared.streaming.worker.slices import Effort, EffortMeter
from shadowtime.shared.streaming.worker.stage_worker import LOADED_AT_ONCE
from shadowtime.testing.examples import examples
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import MemoryStream, Message, hand_over, take_partition
from tests.unit.shared.streaming.fragile_stage import ALONE, HONEST, Bench, log_of, told
from tests.unit.shared.streaming.worker_runs import (
    RUNS,
    after_deduplication,
    expected_outputs,
    hurried,
    interleaved,
    new_worker,
)


class SlowStore(MemoryStore):
    """Gives way to others before and after each answer."""

    def __init__(self, chance: random.Random, failures: float) -> None:
        super().__init__(lambda: chance.random() < failures)
        self.chance = chance
        self.under_way = self.most = 0

    async def give_way(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            await asyncio.sleep(0)

    async def load(self, run: str) -> RunState | None:
        await self.give_way()
        return await super().load(run)

    async def commit(self, transaction: Transaction) -> None:
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        try:
            await self.give_way()
            await super().commit(transaction)
            await self.give_way()
        finally:
            self.under_way -= 1


class SlowStream(MemoryStream):
    """Gives way to others; two never read the log at the same time."""

    reading = False

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        await asyncio.sleep(0)
        await super().publish(partition, run, values, times)
        await asyncio.sleep(0)

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        await asyncio.sleep(0)
        await super().dead_letter(letters)
        await asyncio.sleep(0)

    async def replay(self, partition: int, start: int, stop: int | None) -> AsyncGenerator[Sequence[Message], None]:
        assert not self.reading
        self.reading = True
        try:
            async for part in super().replay(partition, start, stop):
                await asyncio.sleep(0)
                yield part
        finally:
            self.reading = False


@examples(15)
@given(seed=st.integers(0, 2**32), failures=st.sampled_from([0.0, 0.02, 0.1]))
def test_effectively_once_while_runs_are_at_work_beside_each_other(seed: int, failures: float) -> None:
    chance = random.Random(seed)
    log = interleaved(RUNS, chance, junk=0.05)
    store, stream = SlowStore(chance, failures), SlowStream(log, chance, failures)

    async def work() -> None:
        worker = new_worker(store, stream)
        position = committed = 0
        while position < len(log):
            if chance.random() < failures:
                worker.close()
                worker, position = new_worker(store, stream), chance.randint(0, committed)
            batch = log[position : position + chance.randint(1, 40)]
            position += len(batch)
            await hand_over(worker, batch, settle=position >= len(log) or chance.random() < 0.3)
            committed = max([committed, *(each.record.offset + 1 for each in worker.take_done())])

    with hurried():
        asyncio.run(work())
    assert after_deduplication(stream.published) == expected_outputs(RUNS)
    assert store.most > 1
    if not failures:
        places = [place for place, _ in stream.buried]
        assert len(places) == len(set(places))  # each dead letter is delivered once


def test_what_each_run_has_cost_is_told() -> None:
    opened = ClusterOpened(time=0, cluster="test", processors=16, policy="easy")
    events: list[Event] = [opened, SchedulingPoint(time=1)]
    values = [
        (run, Envelope(run=run, sequence=number, event=event).to_bytes())
        for run in ("a", "b")
        for number, event in enumerate(events)
    ]
    log = [Message(value, offset, run.encode()) for offset, (run, value) in enumerate(values)]

    async def work() -> None:
        chance = random.Random(1)
        worker = new_worker(SlowStore(chance, 0.0), SlowStream(log, chance))
        spent = await worker.handle([worker.receive(record) for record in log])
        assert set(spent) == {"a", "b"}
        assert all(0 < effort.longest <= effort.busy <= effort.seconds for effort in spent.values())
        worker.thread.close()

    asyncio.run(work())


def test_an_event_that_only_waited_has_not_worked_for_long() -> None:
    effort = Effort()
    meter = EffortMeter(time.monotonic, effort)
    time.sleep(0.05)
    meter.lap()
    assert effort.longest < 0.02 < effort.seconds
    until = time.thread_time() + 0.03
    while time.thread_time() < until:
        pass
    meter.lap()
    meter.lap()
    meter.stop()
    assert 0.03 <= effort.longest <= effort.busy < effort.seconds


@pytest.mark.parametrize("stored", [False, True])
def test_work_beyond_the_time_of_a_turn_is_put_off_and_nothing_of_it_is_begun(*, stored: bool) -> None:
    """Neither are runs restored then, nor is a run charged with the death of a process that did not work on it."""
    names = [f"run-{number}" for number in range(LOADED_AT_ONCE + 5)]
    bench = Bench(log_of(*((name, told(name, HONEST)) for name in names)))
    half = len(bench.log) // 2
    first, rest = (bench.log[:half], bench.log[half:]) if stored else ([], bench.log)

    async def work() -> int:
        await hand_over(bench.worker, first)
        bench.worker.close()
        bench.again()
        waiting = [bench.worker.receive(record) for record in rest]
        turns = 0
        while waiting:
            await bench.worker.handle(waiting, 1e-9)  # the first slice, or the first run's restored state
            await bench.worker.commit_all()
            left = list(bench.worker.take_put_off())
            assert left == [received for received in waiting if received in left]
            assert len(left) < len(waiting) or turns % 2 == 0
            waiting, turns = left, turns + 1
            assert sum(bench.store.begun.values()) == 0
        assert {received.record.offset for received in bench.worker.take_done()} == {record.offset for record in rest}
        bench.worker.close()
        return turns

    assert asyncio.run(work()) >= len(names)
    assert [bench.counts(name) for name in names] == [ALONE] * len(names)


def test_a_run_whose_records_were_all_handled_is_not_loaded_for_them() -> None:
    """After a restart, the records behind the first unhandled one are read again, mostly of other runs."""
    bench = Bench(log_of(*((name, told(name, HONEST)) for name in ("a", "b"))))
    loaded: list[str] = []

    class Watched(MemoryStore):
        async def load(self, run: str) -> RunState | None:
            loaded.append(run)
            return await super().load(run)

    bench.store = Watched()
    bench.again()
    log, last = bench.log[:-1], bench.log[-1:]  # the last record is of "b"

    async def work() -> None:
        await hand_over(bench.worker, log)
        bench.worker.close()
        bench.again()
        await take_partition(bench.worker)  # delivers what the outboxes have
        loaded.clear()
        await hand_over(bench.worker, log)
        assert (loaded, len(bench.worker.take_done())) == ([], len(log))
        await hand_over(bench.worker, [*log[-1:], *last])
        assert loaded == ["b"]
        bench.worker.close()

    asyncio.run(work())
    assert [bench.counts(name) for name in ("a", "b")] == [ALONE, ALONE]
    duplicates = bench.metrics.registry.get_sample_value("shadowtime_worker_duplicates_total", {"stage": "fragile"})
    assert duplicates == len(log) + 1
