"""Rebuilding of a stage's state from the beginning of its topic."""

import time
from collections.abc import AsyncGenerator, Sequence
from dataclasses import replace
from typing import NamedTuple

from shadowtime.shared.messages import ClusterOpened, Envelope, Rejected
from shadowtime.shared.stages import Stage
from shadowtime.shared.streaming.kafka import LogReader, read_log, topic_admin
from shadowtime.shared.streaming.protocols import Record
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state import RedisStore, connect
from shadowtime.shared.streaming.worker import StageWorker, WorkerContext, WorkerMetrics


class _Silent:
    """A stream that drops everything: all of it was emitted before."""

    def __init__(self, topic: str) -> None:
        self._topic = topic

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Drop outputs."""

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        """Drop dead letters."""

    async def replay(self, partition: int, start: int, stop: int | None) -> AsyncGenerator[Sequence[Record], None]:
        """Yield nothing: the rebuild hands over the whole log in order."""
        if stop == 0:
            yield ()  # this makes the function a generator

    async def topic_id(self) -> str:
        """Return the id of the topic that is replayed."""
        return self._topic

    async def end(self, partition: int) -> int:
        """Return 0: nobody asks, since all of the log is handed over."""
        return 0


class Rebuilt(NamedTuple):
    """The result for a run: the last sequence of its new state, and the last one that the stage has answered.

    `sequence` is None if the topic no longer has the beginning of the run. Then its stored state stays as it is.
    """

    sequence: int | None
    answered: int


async def rebuild(stage: Stage, settings: Settings, only: str | None = None) -> dict[str, Rebuilt]:
    """Replay a stage's input from the beginning, drop the outputs, and store the state of each run.

    Call this if Redis has lost the state, a snapshot is of an older schema, or a run is quarantined. No worker of the
    stage may run meanwhile. An event that the stage had failed to handle stays rejected: its answer is replayed instead
    of it. Events that the stage had not answered yet, or had left aside, are handled when it starts again.

    Parameters
    ----------
    only
        The name of the run to rebuild; None for all runs.

    Returns
    -------
    dict
        The result for each of these runs that the stage has answered, by name.
    """
    client = connect(settings)
    store = RedisStore(client, stage.name, settings.run_retention_seconds, settings.state_key)
    reading = LogReader(settings)
    rebuilt: dict[str, Rebuilt] = {}
    try:
        partitions = await topic_admin.prepare_topics(settings)
        topic = await topic_admin.identity_of(settings, stage.reads)
        for partition in range(partitions):
            answers = await _read_answers(stage, settings, partition)
            begun: set[str] = set()
            anyone = replace(stage, later_fields=())  # its own rejections are handed back to it as inputs
            metrics = WorkerMetrics(stage.name)
            context = WorkerContext(anyone, store, _Silent(topic), settings, metrics, partitions, time.monotonic)
            worker = StageWorker(context, catching_up=True)
            try:
                await worker.identify(partition)
                async for part in reading.parts(stage.reads, partition):
                    records: list[Record] = []
                    for record in part:
                        envelope = Envelope.read(record.value)
                        if envelope is None or only not in (None, envelope.run) or envelope.run not in answers:
                            continue
                        opens = isinstance(envelope.event, ClusterOpened) and record.key == envelope.run.encode()
                        if opens and envelope.run not in begun:
                            begun.add(envelope.run)  # its whole log is there, so its old state is not needed
                            await store.forget(envelope.run)
                        last, refused = answers[envelope.run]
                        if envelope.run in begun and envelope.sequence <= last:
                            value = refused.get(envelope.sequence, record.value)
                            records.append(replace(record, value=value))
                    await worker.handle([worker.receive(record) for record in records])
                    worker.take_done()

                await worker.commit_all()
                if only is None:
                    await worker.keep_log(partition)
            finally:
                worker.close()

            names = [name for name in answers if only in (None, name)]
            for name, summary in zip(names, await store.summaries(names), strict=True):
                sequence = -1 if summary is None else summary.sequence
                rebuilt[name] = Rebuilt(sequence if name in begun else None, answers[name][0])

        return rebuilt
    finally:
        await reading.stop()
        await client.aclose()


Answers = dict[str, tuple[int, dict[int, bytes]]]
"""For each run: the last sequence that the stage has answered, and its answers to events that it failed to handle."""


async def _read_answers(stage: Stage, settings: Settings, partition: int) -> Answers:
    """Return the answers of a stage on its own topic."""
    answers: Answers = {}
    async for record in read_log(settings, stage.writes, partition):
        envelope = Envelope.read(record.value)
        if envelope is None:
            continue
        last, refused = answers.get(envelope.run, (-1, {}))
        if envelope.sequence == last + 1:
            if isinstance(envelope.event, Rejected) and envelope.event.code is not None:
                refused[envelope.sequence] = record.value
            answers[envelope.run] = envelope.sequence, refused

    return answers
