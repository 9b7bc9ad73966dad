"""The stage worker under everything that a stream and a store can do to it."""

import asyncio
import logging
import random
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ParamSpec, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.swf import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import BusError
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import Record
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker import stage_worker
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.stage_worker import StageWorker
from shadowtime.shared.streaming.worker.time_limited_thread import WorkThread
from shadowtime.testing.examples import examples
from tests.support.memory_store import MemoryStore

SCHEDULER = next(stage for stage in STAGES if stage.name == "scheduler")
SETTINGS = Settings(snapshot_every=37, batch_size=16, max_message_bytes=5_000)


@dataclass
class Message:
    value: bytes | None
    offset: int
    key: bytes | None = None
    partition: int = 0
    topic: str = SCHEDULER.reads
    timestamp: float | None = None


class MemoryStream:
    """Keeps what was published; fails as told, before or after the effect."""

    def __init__(self, log: Sequence[Message], chance: random.Random, failures: float = 0.0) -> None:
        self.log = log
        self.published: list[bytes] = []
        self.times: list[float | None] = []
        self.buried: list[tuple[int, str]] = []
        self.read_again = 0
        self._chance = chance
        self._failures = failures

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        self.times += times
        for value, _ in zip(values, times, strict=True):
            if self._chance.random() < self._failures / 10:
                raise BusError("told to fail in the middle of a batch")
            self.published.append(value)
        if self._chance.random() < self._failures:
            raise BusError("told to fail after the batch")

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        self.buried += [(record.offset, reason) for record, reason in letters]

    async def replay(self, partition: int, start: int, stop: int | None) -> AsyncIterator[Sequence[Message]]:
        self.read_again += len(self.log[start:stop])
        for first in range(start, len(self.log) if stop is None else stop, 7):
            yield self.log[first : min(first + 7, len(self.log) if stop is None else stop)]


def events_of_a_run(seed: int, jobs: int) -> list[Event]:
    """Return the events of a closed replay that were published, `Decided` not among them."""
    header, table = generate(jobs, 16, seed)
    workload = prepare(Trace("test", header, table))
    opened = ClusterOpened(time=0, cluster="test", processors=16, policy="easy")
    stage = StageRun(SCHEDULER)
    machine = Machine(workload)
    told: list[Event] = []

    def tell(event: Event) -> None:
        answer = stage.push(Envelope(run="x", sequence=len(told), event=event))
        told.append(event)
        if answer is not None and isinstance(answer.event, Decided):
            for caused in machine.apply(answer.event):
                tell(caused)

    tell(opened)
    while events := machine.next_instant():
        for event in events:
            tell(event)
    tell(ClusterClosed(time=told[-1].time))
    return told


def interleaved(runs: dict[str, list[Event]], chance: random.Random, junk: float = 0.0) -> list[Message]:
    """Return one partition's log with the events of several runs, duplicates and rubbish between them."""
    queues = {
        run: [Envelope(run=run, sequence=number, event=event).model_dump_json().encode() for number, event in pairs]
        for run, pairs in ((run, list(enumerate(events))) for run, events in runs.items())
    }
    values: list[tuple[bytes | None, bytes]] = []
    seen: list[tuple[bytes, bytes]] = []
    while queues:
        run = chance.choice(sorted(queues))
        seen.append((queues[run].pop(0), run.encode()))
        values.append(seen[-1])
        if not queues[run]:
            del queues[run]
        if chance.random() < junk:
            junk_values: list[bytes | None] = [b"{", b"\xff\x00", None, b"x" * 9_000, b'{"run":"r"}']
            values.append(chance.choice([*((value, run.encode()) for value in junk_values), chance.choice(seen)]))
    return [Message(value, offset, key) for offset, (value, key) in enumerate(values)]


def expected_outputs(runs: dict[str, list[Event]]) -> dict[str, list[Envelope]]:
    outputs: dict[str, list[Envelope]] = {}
    for run, events in runs.items():
        stage = StageRun(SCHEDULER)
        answers = [stage.push(Envelope(run=run, sequence=number, event=event)) for number, event in enumerate(events)]
        outputs[run] = [answer for answer in answers if answer is not None]
    return outputs


def after_deduplication(values: Sequence[bytes]) -> dict[str, list[Envelope]]:
    outputs: dict[str, list[Envelope]] = {}
    for value in values:
        envelope = Envelope.from_bytes(value)
        of_run = outputs.setdefault(envelope.run, [])
        if envelope.sequence == len(of_run):
            of_run.append(envelope)
    return outputs


async def no_sleep(_: float) -> None:
    await asyncio.sleep(0)


def new_worker(store: MemoryStore, stream: MemoryStream) -> StageWorker:
    metrics = WorkerMetrics("scheduler")
    return StageWorker(WorkerContext(SCHEDULER, store, stream, SETTINGS, metrics, 1, time.monotonic, no_sleep))


async def hand_over(worker: StageWorker, records: Sequence[Message], *, settle: bool = True) -> None:
    await worker.handle([worker.receive(record) for record in records])
    if settle:
        await worker.settle()


Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class AtOnce(WorkThread):
    """For an event loop with nothing to do meanwhile: handing over and back is all that a thread would add."""

    async def run(
        self, work: Callable[Arguments, Result], *arguments: Arguments.args, **named: Arguments.kwargs
    ) -> Result:
        return work(*arguments, **named)

    def begin(self) -> None:
        """Give it all the time there is."""


@contextmanager
def hurried() -> Iterator[None]:
    """Let thousands of failures take no longer than they must: on one thread, and none of them noted in the log."""
    log = logging.getLogger("shadowtime")
    level = log.level
    log.setLevel(logging.CRITICAL)
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(stage_worker, "WorkThread", AtOnce)
            yield
    finally:
        log.setLevel(level)


RUNS = {f"run-{seed}": events_of_a_run(seed, 25) for seed in range(3)}


@examples(25)
# With more failures a worker that reads again from any offset hardly gets beyond the 60th of 78 messages.
@given(seed=st.integers(0, 2**32), failures=st.sampled_from([0.0, 0.05, 0.15]), zombies=st.booleans())
def test_effectively_once_whatever_fails(seed: int, failures: float, zombies: bool) -> None:
    chance = random.Random(seed)
    log = interleaved(RUNS, chance, junk=0.05)
    store = MemoryStore(lambda: chance.random() < failures)
    stream = MemoryStream(log, chance, failures)

    async def work() -> None:
        worker, other = new_worker(store, stream), new_worker(store, stream)
        image, position, committed = store.image(), 0, 0
        while position < len(log):
            if chance.random() < failures:  # killed: a new worker begins at the committed offset, which is a hint
                worker.close()
                worker, position = new_worker(store, stream), chance.randint(0, committed)
                await worker.take(0)
            if chance.random() < failures / 4:  # Redis killed: it comes back without its last seconds
                store.kept = image
            if chance.random() < 0.2:
                image = store.image()
            if zombies and chance.random() < 0.2:  # the partition moves while the old owner still breathes
                worker, other = other, worker
                position = max(0, committed - chance.randint(0, 30))
            batch = log[position : position + chance.randint(1, 16)]
            position += len(batch)
            await hand_over(worker, batch, settle=position >= len(log) or chance.random() < 0.3)
            done = worker.take_done()
            if done and chance.random() < 0.5:
                committed = max(committed, done[-1].record.offset + 1)

    with hurried():
        asyncio.run(work())
    assert after_deduplication(stream.published) == expected_outputs(RUNS)


def test_outputs_bear_the_time_of_their_inputs() -> None:
    log = interleaved({"run-0": RUNS["run-0"][:20]}, random.Random(1))
    for message in log:
        message.timestamp = 1_000.5 + message.offset
    stream = MemoryStream(log, random.Random(1))
    asyncio.run(hand_over(new_worker(MemoryStore(lambda: False), stream), log))
    assert stream.times == [message.timestamp for message in log]


def test_outputs_of_a_worker_killed_before_it_published_leave_first() -> None:
    log = interleaved({"run-0": RUNS["run-0"]}, random.Random(0))
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    published = stream.published

    async def work() -> None:
        await hand_over(new_worker(store, stream), log[:10])
        kept = len(published)
        stream.published = []  # the process dies: what it published of the next batch never reached Kafka
        await hand_over(new_worker(store, stream), log[10:20])
        stream.published = published
        await new_worker(store, stream).take(0)
        assert len(published) == kept + 10

    asyncio.run(work())
    assert [Envelope.from_bytes(value).sequence for value in published] == list(range(20))


@pytest.mark.parametrize("read", [5, 12], ids=["is read on", "is followed up"])
def test_a_run_that_the_store_forgot_is_whole_also_if_a_duplicate_of_its_opening_comes_first(read: int) -> None:
    events = RUNS["run-0"]
    values = [message.value for message in interleaved({"run-0": events}, random.Random(0))]
    log = [Message(value, offset, b"run-0") for offset, value in enumerate([*values[:4], values[0], *values[4:]])]
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    empty, worker = store.image(), new_worker(store, stream)
    asyncio.run(hand_over(worker, log[:4]))
    store.kept = empty
    asyncio.run(worker.give_up())
    asyncio.run(hand_over(worker, log[4:5]))
    asyncio.run(hand_over(worker, log[read:]))
    assert after_deduplication(stream.published) == expected_outputs({"run-0": events})
    assert stream.buried == []


def test_a_forged_sequence_far_ahead_is_a_dead_letter_and_the_run_goes_on() -> None:
    events = RUNS["run-0"]
    forged = Envelope(run="run-0", sequence=10_000, event=events[3]).model_dump_json().encode()
    values = [message.value for message in interleaved({"run-0": events}, random.Random(0))]
    log = [Message(value, offset, b"run-0") for offset, value in enumerate([*values[:5], forged, *values[5:]])]
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    asyncio.run(hand_over(new_worker(store, stream), log))
    assert after_deduplication(stream.published) == expected_outputs({"run-0": events})
    ((offset, reason),) = stream.buried
    assert offset == 5
    assert "sequence 10000 of run 'run-0' follows 4: 9995 events are missing" in reason


def test_a_broken_rule_is_buried_and_forwarded_as_rejected() -> None:
    opened = RUNS["run-0"][0]
    events: list[Event] = [opened, JobSubmitted(time=5, job_number=1, requested_processors=999)]
    log = interleaved({"r": events}, random.Random(0))
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    asyncio.run(hand_over(new_worker(store, stream), log))
    last = Envelope.from_bytes(stream.published[-1])
    assert last.event.kind == "Rejected"
    assert stream.buried == [(1, "job 1 requests 999 processors; the machine has 16")]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "the message is empty"),
        (b"x" * 41_000, "41000 bytes; at most 40000 are taken"),
        (b"{", "not an envelope of this schema"),
        (b'{"schema_version": 3}', "schema_version"),
        (b"\xff\xfe", "not an envelope of this schema"),
    ],
)
def test_what_cannot_be_read_is_buried(value: bytes | None, reason: str) -> None:
    log = [Message(value, 0)]
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    asyncio.run(hand_over(new_worker(store, stream), log))
    assert stream.published == []
    assert reason in stream.buried[0][1]


def test_the_read_model_holds_live_jobs_only() -> None:
    log = interleaved({"run-0": RUNS["run-0"]}, random.Random(0))
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))

    async def work() -> list[int]:
        worker = new_worker(store, stream)
        sizes = []
        for message in log:
            await hand_over(worker, [message])
            sizes.append(len(await store.read_model("run-0")))
        return sizes

    sizes = asyncio.run(work())
    assert 0 < max(sizes) <= 25
    assert sizes[-1] == 0


def test_the_read_model_forgets_a_job_that_left_the_queue() -> None:
    events: list[Event] = [ClusterOpened(time=0, cluster="c", processors=8)]
    events += [JobSubmitted(time=0, job_number=number, requested_processors=1) for number in (1, 2)]
    events.append(JobWithdrawn(time=5, job_number=1))
    log = [Message(Envelope(run="r", sequence=at, event=each).to_bytes(), at, b"r") for at, each in enumerate(events)]
    store, stream = MemoryStore(), MemoryStream(log, random.Random(0))
    asyncio.run(hand_over(new_worker(store, stream), log))
    assert list(asyncio.run(store.read_model("r"))) == ["job:2"]
