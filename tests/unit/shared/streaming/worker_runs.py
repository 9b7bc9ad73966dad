"""Runs of a worker over a stream in memory, and what their outputs must be."""

import logging
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import ParamSpec, TypeVar

import pytest

from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.messages.envelope import ClusterClosed, ClusterOpened, Decided, Envelope, Event
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker import stage_worker
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.stage_worker import StageWorker
from shadowtime.shared.streaming.worker.time_limited_thread import TimeLimitedThread
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import SCHEDULER, MemoryStream, Message, no_sleep

SETTINGS = Settings(snapshot_every=37, batch_size=16, max_message_bytes=5_000)


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


def new_worker(store: MemoryStore, stream: MemoryStream) -> StageWorker:
    metrics = WorkerMetrics("scheduler")
    return StageWorker(WorkerContext(SCHEDULER, store, stream, SETTINGS, metrics, 1, time.monotonic, no_sleep))


Arguments = ParamSpec("Arguments")


Result = TypeVar("Result")


class AtOnce(TimeLimitedThread):
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
            patch.setattr(stage_worker, "TimeLimitedThread", AtOnce)
            yield
    finally:
        log.setLevel(level)


RUNS = {f"run-{seed}": events_of_a_run(seed, 25) for seed in range(3)}
