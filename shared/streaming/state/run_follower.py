"""Followers of runs outside the pipeline: they read the state that a stage keeps in Redis, and never write it.

The state of a run is its snapshot and the journal of the inputs after it, both of one transaction. So a follower that
restores the snapshot and pushes the journal has the worker's state after its last batch. The state is current at each
question. No worker need be running.

The rules of a follower:

1. The entries of the journal are the envelopes up to the stored sequence, one each. New entries are read together with
   the stored position. They are applied only if they fit: the entry before them is the last one that was applied.
2. If they do not fit (there is a newer snapshot, Redis lost its last second, another run has the name), the run is
   loaded again.
3. A follower does not keep a run while it changes the run: after an error or a cancellation in between, the run is
   loaded again.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from shadowtime.shared.errors import SnapshotMismatch, StateAltered, StoreError
from shadowtime.shared.messages import Envelope
from shadowtime.shared.quoting import quote
from shadowtime.shared.stages import Stage, StageRun
from shadowtime.shared.streaming.protocols import RunState
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore, error_of, names_in

Result = TypeVar("Result")


@dataclass(frozen=True)
class Position:
    """The position of a stage in a run. `output` is its last output, at `sequence`; None if it is no longer stored."""

    sequence: int
    offset: int
    output: bytes | None = None


ALTERED = Position(-1, -1)
"""The position of a run whose state cannot be read: it is not as its stage wrote it."""


@dataclass(frozen=True)
class JournalEnd:
    """A run's position and the last entries of its journal; `start` is the sequence of the snapshot before it."""

    sequence: int
    offset: int
    start: int
    entries: Sequence[bytes]


class RunReader(Protocol):
    """A follower's interface to a store; it only reads."""

    async def names(self) -> Sequence[str]:
        """Return the names of all stored runs, in order."""
        ...

    async def positions(self, runs: Sequence[str]) -> Sequence[Position | None]:
        """Return the stage's position in each of these runs; None for a run that is not known."""
        ...

    async def journal_from(self, run: str, first: int) -> JournalEnd | None:
        """Return the journal from its entry `first` on, read in one transaction; None for a run that is not known.

        Raise `StateAltered` if the state is not as the stage has written it.
        """
        ...

    async def load(self, run: str) -> RunState | None:
        """Return the stored state of a run; None if there is none."""
        ...


class RedisReader(RedisStore):
    """A reader of the runs of one stage in Redis; it implements `RunReader`.

    It does not have the secret of the stage, so it cannot check seals: it shows what Redis has.
    """

    async def load(self, run: str) -> RunState | None:
        """Return the stored state of a run; None if there is none. Raise `StateAltered` if it cannot be read."""
        state, journal, outbox = await self._stored(run)
        return self._state_of(run, state, journal, outbox) if state else None

    async def names(self) -> Sequence[str]:
        """Return the names of all stored runs, in order.

        They are taken from the keys, not from the sets of the partitions: only Kafka knows the number of partitions.
        """
        prefix = self._key("", "state").encode()

        async def scan() -> set[bytes]:
            return {key async for key in self._client.scan_iter(match=prefix + b"*", count=1_000)}

        return names_in(key.removeprefix(prefix) for key in await self._ask(scan()))

    async def read_words(self, run: str) -> dict[str, bytes]:
        """Return the read model of a run without the fields of jobs, of which there may be a million."""

        async def scan() -> dict[str, bytes]:
            key = self._key(run, "read-model")
            return {
                name.decode(errors="replace"): value
                async for name, value in self._client.hscan_iter(key, match="[^j]*", count=10_000)
            }

        words: dict[str, bytes] = await self._ask(scan())
        return words

    async def positions(self, runs: Sequence[str]) -> Sequence[Position | None]:
        """Return the stage's position in each of these runs; None for a run that is not known.

        The position of a run whose state was altered is `ALTERED`. Only the methods that read this run raise an error.
        """
        if not runs:
            return []
        pipeline = self._client.pipeline(transaction=False)
        for run in runs:
            pipeline.hmget(self._key(run, "state"), ["sequence", "offset"])
            pipeline.lindex(self._key(run, "outbox"), -1)
        answers = await self._ask(pipeline.execute(raise_on_error=False))
        return [_position(state, output) for state, output in zip(answers[::2], answers[1::2], strict=True)]

    async def journal_from(self, run: str, first: int) -> JournalEnd | None:
        """Return the journal from its entry `first` on, read in one transaction; None for a run that is not known.

        Raise `StateAltered` if the state is not as the stage has written it.
        """
        (sequence, offset), length, entries = await self._at_once(
            ("HMGET", self._key(run, "state"), "sequence", "offset"),
            ("LLEN", self._key(run, "journal")),
            ("LRANGE", self._key(run, "journal"), first, -1),
        )
        position = _position((sequence, offset), None)
        if position is None:
            return None
        if position is ALTERED:
            raise self._altered(run, "it has no valid position")
        return JournalEnd(position.sequence, position.offset, position.sequence - length, entries)


def _position(state: Any, output: Any) -> Position | None:
    """Return the position in Redis' answers about a run, which may be errors."""
    for answer in (state, output):
        if isinstance(answer, Exception):
            error = error_of(answer)
            if isinstance(error, StateAltered):
                return ALTERED
            raise error from answer
    sequence, offset = state
    if sequence is None:
        return None
    try:
        return Position(int(sequence), int(offset), output)
    except (TypeError, ValueError):
        return ALTERED


@asynccontextmanager
async def reading(settings: Settings, stage: str) -> AsyncIterator[RedisReader]:
    """Yield a reader of a stage's runs. Raise `StoreError` unless Redis answers within `connect_seconds`."""
    async with reading_later(settings, stage) as reader:
        try:
            async with asyncio.timeout(settings.connect_seconds):
                await reader.wait_for(settings.connect_seconds)
        except TimeoutError:
            raise StoreError(f"Redis cannot be used: no answer within {settings.connect_seconds:g} s") from None
        yield reader


@asynccontextmanager
async def reading_later(settings: Settings, stage: str) -> AsyncIterator[RedisReader]:
    """Yield a reader of a stage's runs without waiting for Redis. Its methods raise `StoreError` if Redis fails."""
    client = connect(settings, retries=1)
    try:
        yield RedisReader(client, stage)
    finally:
        await client.aclose()


@dataclass
class _Taken:
    """A follower's position in a run; `last` is the newest entry of the journal that it has applied."""

    state: StageRun
    start: int
    offset: int
    last: bytes | None


class RunFollower:
    """One run in one stage, as it is stored. Questions are answered one at a time."""

    def __init__(self, stage: Stage, reader: RunReader, run: str) -> None:
        self.stage = stage
        self.run = run
        self._reader = reader
        self._lock = asyncio.Lock()
        self._taken: _Taken | None = None

    async def ask(self, question: Callable[[StageRun], Result]) -> Result | None:
        """Return the result of `question`, called with the run as stored now; None if the store does not know the run.

        `question` is called in a thread and must not change the run.

        Raises
        ------
        StoreError
            If Redis cannot be used.
        SnapshotMismatch
            If the run is quarantined, or its stored state is damaged or of another schema. If the state was altered,
            the error is a `StateAltered`.
        """
        async with self._lock:
            taken, self._taken = self._taken, None
            taken = await self._brought_up(taken) or await self._loaded()
            if taken is None:
                return None
            self._taken = taken
            try:
                return await asyncio.to_thread(question, taken.state)
            except asyncio.CancelledError:
                self._taken = None  # the thread may still be reading
                raise

    async def _brought_up(self, taken: _Taken | None) -> _Taken | None:
        """Apply the new entries of the journal. Return None if they do not follow the last applied one."""
        if taken is None:
            return None
        sequence = taken.state.sequence
        known = 1 if sequence > taken.start else 0
        end = await self._reader.journal_from(self.run, sequence - taken.start - known)
        if end is None or end.start != taken.start or list(end.entries[:known]) != [taken.last] * known:
            return None
        entries = end.entries[known:]
        if end.sequence != sequence + len(entries) or (not entries and end.offset != taken.offset):
            return None
        if entries:
            await asyncio.to_thread(self._push, taken.state, entries)
            taken.offset, taken.last = end.offset, entries[-1]
        return taken

    async def _loaded(self) -> _Taken | None:
        saved = await self._reader.load(self.run)
        if saved is None:
            return None
        state = await asyncio.to_thread(self._restored, saved)
        last = saved.journal[-1] if saved.journal else None
        return _Taken(state, saved.sequence - len(saved.journal), saved.offset, last)

    def _restored(self, saved: RunState) -> StageRun:
        state = StageRun(self.stage)
        if saved.quarantined is not None:
            raise SnapshotMismatch(saved.quarantined)
        try:
            state.replay(saved.snapshot, saved.journal)
        except SnapshotMismatch as error:
            raise SnapshotMismatch(f"{error}; {self._remedy()}") from None

        if state.sequence != saved.sequence:
            raise self._damaged(
                f"its journal ends at sequence {state.sequence}; expected {saved.sequence}, its stored position"
            )
        return state

    def _push(self, state: StageRun, entries: Sequence[bytes]) -> None:
        for value in entries:
            envelope = Envelope.read(value)
            if envelope is None or envelope.sequence != state.sequence + 1 or state.spoiled:
                raise self._damaged(f"its journal is of another schema, or has a gap, after sequence {state.sequence}")
            state.push(envelope)

    def _damaged(self, why: str) -> SnapshotMismatch:
        return SnapshotMismatch(f"{self.stage.name}: run {quote(self.run)}: {why}; {self._remedy()}")

    def _remedy(self) -> str:
        return f"rebuild it: shadowtime rebuild {self.stage.name} --run {quote(self.run)}"
