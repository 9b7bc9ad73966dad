"""The workers of all stages in a row over topics in memory, killed and begun anew at random places."""

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from random import Random

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import BusError
from shadowtime.shared.messages.envelope import Envelope, Rejected
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.shared.stages.topics import FLOW, JOBS
from shadowtime.shared.streaming.protocols import Record, Transaction
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
from shadowtime.shared.streaming.worker.fair_queue import FairQueue
from shadowtime.shared.streaming.worker.slices import SLICE_BYTES
from shadowtime.shared.streaming.worker.stage_worker import AdmissionError, Received, StageWorker, admitted
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import MemoryStream, Message, no_sleep

SETTINGS = Settings(snapshot_every=13, batch_size=16, max_message_bytes=20_000, handler_seconds=30)

MAX_REASON_LENGTH = 1_100
MAX_KILLS = 4
"""Of each stage, whatever it is at: with five, a run that none of them committed is taken for what ends processes."""

Sent = tuple[bytes | None, bytes | None]
"""Key and value of a message."""


class Killed(BaseException):
    """The process is gone; nothing in it hears of that."""


class Deaths:
    """The processes of a stage that end in mid-work."""

    def __init__(self, chance: Random) -> None:
        self._chance, self._left = chance, MAX_KILLS

    def comes(self, probability: float) -> bool:
        """Return whether a process ends now; never more than `MAX_KILLS` times."""
        now = bool(self._left) and self._chance.random() < probability
        self._left -= now
        return now


class Store(MemoryStore):
    """A store whose worker is killed before or after some transactions."""

    def __init__(self, chance: Random, kills: float, deaths: Deaths) -> None:
        super().__init__(lambda: self.chance.random() < self.kills / 4)
        self.chance, self.kills, self.deaths = chance, kills, deaths

    async def commit(self, transaction: Transaction) -> None:
        self._kill()
        await super().commit(transaction)
        self._kill()

    def _kill(self) -> None:
        if self.deaths.comes(self.kills):
            raise Killed


class Stream(MemoryStream):
    """Appends what a stage says to its own topic; fails, and its worker is killed, in the middle of that."""

    def __init__(
        self, stage: Stage, topics: dict[str, list[Message]], chance: Random, kills: float, deaths: Deaths
    ) -> None:
        super().__init__(topics[stage.reads], chance, 0.0)
        self.topic, self.writes, self.kills, self.deaths = topics[stage.writes], stage.writes, kills, deaths
        self.said: list[tuple[str, bytes]] = []
        self.offsets: set[int] = set()
        """Where on its own topic the stage's own messages lie."""

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        for value, _ in zip(values, times, strict=True):
            self.offsets.add(len(self.topic))
            self.topic.append(Message(value, len(self.topic), run.encode(), topic=self.writes))
            self.said.append((run, value))
            if self._chance.random() < self.kills / 20:
                raise BusError("told to fail in the middle of a batch")
        if self.deaths.comes(self.kills / 4):
            raise Killed

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        await super().dead_letter(letters)
        if self._chance.random() < self.kills / 4:
            raise BusError("told to fail after dead letters")


@dataclass
class Place:
    """A stage, its worker of the moment, and how far that is."""

    stage: Stage
    store: Store
    stream: Stream
    log: list[Message]
    worker: StageWorker = field(init=False)
    turns: FairQueue[Received] = field(init=False)
    position: int = 0
    acknowledged: set[int] = field(default_factory=set)
    begun: int = 0

    def begin(self) -> None:
        """Let a new process take over."""
        if self.begun:
            self.end()
        self.metrics = WorkerMetrics(self.stage.name)
        context = WorkerContext(self.stage, self.store, self.stream, SETTINGS, self.metrics, 1, _still, no_sleep)
        self.worker = StageWorker(context)
        self.turns = FairQueue(200, 10**7)
        self.begun += 1

    def end(self) -> None:
        self.worker.close()

    def letters(self) -> dict[int, list[str]]:
        """Return the reasons of dead letters, by the offset of what was buried."""
        found: dict[int, list[str]] = defaultdict(list)
        for offset, reason in self.stream.buried:
            found[offset].append(reason)
        return found

    def outputs(self, run: str) -> list[bytes]:
        """Return what a receiver keeps of a run's outputs; one that is said again is the same."""
        kept: list[bytes] = []
        for name, value in self.stream.said:
            if name == run:
                sequence = Envelope.from_bytes(value).sequence
                assert sequence <= len(kept), f"{self.stage.name}: {run} lacks what is before {sequence}"
                if sequence == len(kept):
                    kept.append(value)
                else:
                    assert kept[sequence] == value, f"{self.stage.name}: {run} says something else at {sequence}"
        return kept

    def runs(self) -> list[str]:
        return sorted({name for name, _ in self.stream.said} | set(self.store.kept))


class Chain:
    """All stages; messages are appended to their topics while they work.

    Parameters
    ----------
    sent
        Of each topic, what is published there from outside, in order.
    kills
        How often processes are killed and Kafka and Redis fail.
    """

    def __init__(self, sent: dict[str, list[Sent]], seed: int, kills: float = 0.0) -> None:
        self.chance = Random(seed)
        self.kills = kills
        self.topics: dict[str, list[Message]] = {topic: [] for topic in FLOW}
        self.outside = {topic: list(reversed(messages)) for topic, messages in sent.items()}
        self.places = []
        for stage in STAGES:
            deaths = Deaths(self.chance)
            stream = Stream(stage, self.topics, self.chance, kills, deaths)
            self.places.append(Place(stage, Store(self.chance, kills, deaths), stream, self.topics[stage.reads]))
        for place in self.places:
            place.begin()

    def run(self) -> None:
        """Work until nothing is left, then let each stage begin once more."""
        try:
            asyncio.run(self._run())
            for place in self.places:
                place.store.kills = place.stream.kills = 0.0
            asyncio.run(self._again())
        finally:
            for place in self.places:
                place.end()

    async def _run(self) -> None:
        while True:
            waiting = [topic for topic, messages in self.outside.items() if messages]
            ready = [place for place in self.places if len(place.turns) or place.position < len(place.log)]
            if not waiting and not ready:
                return
            if waiting and (not ready or self.chance.random() < 0.5):
                topic = self.chance.choice(waiting)
                for _ in range(min(self.chance.choice((1, 8, 30)), len(self.outside[topic]))):
                    key, value = self.outside[topic].pop()
                    self.topics[topic].append(Message(value, len(self.topics[topic]), key, topic=topic))
            else:
                await self._work(self.chance.choice(ready))

    async def _work(self, place: Place) -> None:
        """Hand some records over, and handle those of the runs whose turns are next, as a worker's loop does."""
        if place.store.deaths.comes(self.kills / 10):
            await self._restart(place)
        batch = place.log[place.position : place.position + self.chance.randint(1, 40)]
        place.position += len(batch)
        for message in batch:
            place.turns.put(message.key or b"", place.worker.receive(message), len(message.value or b""))
        turns: list[tuple[bytes | None, Sequence[Received]]] = []
        while len(place.turns) and (
            not turns or (place.turns.next_within(inf) and self.chance.random() < 0.9)
        ):  # of each run as many as come
            turns.append(place.turns.take(SETTINGS.batch_size, SLICE_BYTES))
        try:
            seconds = self.chance.choice((inf, 1e-9))  # all, or one slice
            await place.worker.handle([received for _, its in turns for received in its], seconds)
            put_off = {id(received) for received in place.worker.take_put_off()}
            for key, its in turns:
                for received in reversed(its):
                    if id(received) in put_off:
                        record = received.record
                        place.turns.put_back(key, record.key or b"", received, len(record.value or b""))
                place.turns.charge(key, self.chance.random())
            if not len(place.turns) or self.chance.random() < 0.2:
                await place.worker.commit_all()
        except Killed:
            await self._restart(place)
            return
        place.acknowledged |= {each.record.offset for each in place.worker.take_done()}

    async def _restart(self, place: Place) -> None:
        """Begin anew where records were acknowledged without a hole, or a little before it."""
        committed = next((at for at in range(len(place.log)) if at not in place.acknowledged), len(place.log))
        place.position = self.chance.randint(max(0, committed - 20), committed)
        while True:
            place.begin()
            try:
                await place.worker.take(0)
                return
            except Killed:
                continue

    async def _again(self) -> None:
        for place in self.places:
            place.begin()
            await place.worker.take(0)


def _still() -> float:
    """Return the time of a clock that stands: nothing in a test depends on how busy the machine is."""
    return 0.0


def check(chain: Chain) -> None:
    """Raise unless every stage has kept what all of them promise, whatever came."""
    said: set[int] = set()
    for place in chain.places:
        _check_letters(place, exactly=not chain.kills)
        for run in place.runs():
            _check_run(place, run)
        _check_nothing_is_lost(place, said)
        said = place.stream.offsets


def _check_letters(place: Place, *, exactly: bool) -> None:
    for reasons in place.letters().values():
        assert all(len(reason) <= MAX_REASON_LENGTH for reason in reasons)
        if exactly:
            assert len(reasons) == 1, reasons


def _check_run(place: Place, run: str) -> None:
    """A run is carried on, or quarantined with a letter that says so; a process after this one takes it up as it is."""
    name = place.stage.name
    envelopes = [Envelope.from_bytes(value) for value in place.outputs(run)]
    assert [each.sequence for each in envelopes] == list(range(len(envelopes)))
    assert {each.run for each in envelopes} <= {run}
    ended = [each.event.reason for each in envelopes if _code(each) == "quarantined" and name in each.event.reason]  # type: ignore[union-attr]
    letters = {reason for _, reason in place.stream.buried if f"run {run!r} is quarantined by stage {name}" in reason}
    failed = [each.event for each in envelopes if _code(each) == "failed" and f"{name} failed" in each.event.reason]  # type: ignore[union-attr]
    assert not failed, failed  # it would be undone, but nothing that is admitted should be beyond a stage
    saved = place.store.kept.get(run)
    assert saved is not None
    assert saved.sequence == len(envelopes) - 1
    if saved.quarantined is not None:
        assert ended == [saved.quarantined]
        assert _code(envelopes[-1]) == "quarantined"
        assert letters == {saved.quarantined}
        assert place.worker.quarantined[run] == saved.quarantined
        return
    assert not ended
    assert not letters
    assert run not in place.worker.quarantined
    state, taken_up = StageRun(place.stage), StageRun(place.stage)
    state.replay(saved.snapshot, saved.journal)
    if state.handler is not None:
        taken_up.restore(state.snapshot())
        assert taken_up.snapshot() == state.snapshot()


def _check_nothing_is_lost(place: Place, said: set[int]) -> None:
    """Each record is answered, buried, or of a run that is quarantined; what one stage says another understands."""
    letters = place.letters()
    for record in place.log:
        envelope: Envelope | None
        try:
            most = SETTINGS.max_message_bytes if place.stage.reads == JOBS else SETTINGS.max_output_bytes
            envelope = admitted(record, place.stage, 1, most)
        except AdmissionError as refusal:
            envelope, why = None, str(refusal)
        if envelope is None:
            assert letters[record.offset], f"{place.stage.name}: nobody heard that {why}"
            assert record.offset not in said, f"{place.stage.name}: the stage before it said what is refused: {why}"
            continue
        saved = place.store.kept.get(envelope.run)
        assert record.offset in letters or (
            saved is not None and (saved.quarantined is not None or envelope.sequence <= saved.sequence)
        ), f"{place.stage.name}: {record.offset} is lost"


def _code(envelope: Envelope) -> str | None:
    return envelope.event.code if isinstance(envelope.event, Rejected) else None
