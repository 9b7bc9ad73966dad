"""A stage that fails as its messages say, and a worker of it on a bench."""

import asyncio
import random
import time
from collections.abc import Sequence

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobSubmitted, Rejected
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import Stage
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.stage_worker import StageWorker
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import MemoryStream, Message, hand_over, no_sleep

OPENED = ClusterOpened(time=0, cluster="c", processors=100)


class Panic(BaseException):
    """As a library in another language raises: no `Exception`."""


class Fragile(StageHandler):
    """Counts submissions; some users' jobs do to it what no job should be able to."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.submitted = 0
        self.unsaved: object = None

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        self.submitted += 1
        if job.user_id == 1:
            raise OverflowError("x" * 5_000)
        if job.user_id == 2:
            self.unsaved = 2**70
        if job.user_id == 3:
            while True:
                pass
        if job.user_id == 4:
            return envelope.model_copy(update={"cluster": "y" * 100_000})
        if job.user_id == 5:
            raise MemoryError
        if job.user_id == 6:
            raise KeyboardInterrupt  # nothing else that is raised ends the process
        if job.user_id == 7:
            raise Panic
        if job.user_id == 8:
            self.unsaved = "ends whoever restores it"
        return envelope.model_copy(update={"cluster": str(self.submitted)})

    def snapshot(self) -> dict[str, object]:
        return super().snapshot() | {"submitted": self.submitted, "unsaved": self.unsaved}

    def restore(self, state: dict[str, object]) -> None:
        super().restore(state)
        self.submitted = state["submitted"]  # type: ignore[assignment]
        if state["unsaved"]:
            raise KeyboardInterrupt


STAGE = Stage("fragile", "jobs", "out", Fragile)


SETTINGS = Settings(snapshot_every=7, batch_size=16, max_message_bytes=5_000, handler_seconds=0.3)


def told(run: str, users: Sequence[int | None], first: int = 0) -> list[bytes]:
    events: list[Event] = [OPENED]
    for number, user in enumerate(users):
        events.append(JobSubmitted(time=number, job_number=number, requested_processors=1, user_id=user))
    return [Envelope(run=run, sequence=first + at, event=event).to_bytes() for at, event in enumerate(events)]


def log_of(*runs: tuple[str, list[bytes]]) -> list[Message]:
    """Return a log in which the runs take turns."""
    queues = [(run.encode(), list(values)) for run, values in runs]
    found: list[tuple[bytes, bytes]] = []
    while any(values for _, values in queues):
        found += [(values.pop(0), key) for key, values in queues if values]
    return [Message(value, offset, key, topic="jobs") for offset, (value, key) in enumerate(found)]


HONEST = [None] * 12
ALONE = [str(number) for number in range(1, 13)]


class Bench:
    """A worker over a store and a stream in memory; `again` is the process that comes after it."""

    def __init__(self, log: Sequence[Message], stage: Stage = STAGE, settings: Settings = SETTINGS) -> None:
        self.store, self.stream = MemoryStore(), MemoryStream(log, random.Random(0))
        self.log, self.stage, self.settings = log, stage, settings
        self.again()

    def again(self) -> None:
        self.metrics = WorkerMetrics(self.stage.name)
        self.worker = self.worker_of(partitions=1)

    def worker_of(self, partitions: int) -> StageWorker:
        """Return a worker of topics of so many partitions."""
        with_these = (self.stage, self.store, self.stream, self.settings, self.metrics)
        return StageWorker(WorkerContext(*with_these, partitions, time.monotonic, no_sleep))

    def handle(self, batch: int = 5) -> None:
        async def work() -> None:
            for first in range(0, len(self.log), batch):
                await hand_over(self.worker, self.log[first : first + batch], settle=False)
            await self.worker.commit_all()

        asyncio.run(work())

    def outputs(self, run: str) -> list[Envelope]:
        """Return what a receiver keeps of a run's outputs: each sequence once."""
        found = {each.sequence: each for each in map(Envelope.from_bytes, self.stream.published) if each.run == run}
        return [found[sequence] for sequence in sorted(found)]

    def counts(self, run: str) -> list[str]:
        """Return what the stage said of each submission: how many there had been, or why it said nothing."""
        return [
            each.event.code or "contradiction" if isinstance(each.event, Rejected) else each.cluster
            for each in self.outputs(run)[1:]
        ]
