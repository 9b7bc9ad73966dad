"""The stage worker under everything that a stream and a store can do to it."""

import asyncio
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobSubmitted, JobWithdrawn
from shadowtime.testing.examples import examples
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import MemoryStream, Message, hand_over, take_partition
from tests.unit.shared.streaming.worker_runs import (
    RUNS,
    after_deduplication,
    expected_outputs,
    hurried,
    interleaved,
    new_worker,
)


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
                await take_partition(worker)
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
        await take_partition(new_worker(store, stream))
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
        (b"x" * 41_000, "41000 bytes; the limit is 40000"),
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
