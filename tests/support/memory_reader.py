"""A reader of runs whose store is in memory."""

import asyncio
from collections import Counter
from collections.abc import Sequence

from shadowtime.shared.streaming.protocols import RunState
from shadowtime.shared.streaming.state.run_follower import JournalEnd, Position
from tests.support.memory_store import MemoryStore


class MemoryReader(MemoryStore):
    """Reads what it has as Redis does, and counts how often it was asked for what."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()

    async def names(self) -> Sequence[str]:
        return sorted(self.kept)

    async def positions(self, runs: Sequence[str]) -> Sequence[Position | None]:
        known = [self.kept.get(run) for run in runs]
        return [
            None if kept is None else Position(kept.sequence, kept.offset, kept.outbox[-1] if kept.outbox else None)
            for kept in known
        ]

    async def journal_from(self, run: str, first: int) -> JournalEnd | None:
        self.asked["journal"] += 1
        await asyncio.sleep(0)
        kept = self.kept.get(run)
        if kept is None:
            return None
        return JournalEnd(kept.sequence, kept.offset, kept.sequence - len(kept.journal), kept.journal[first:])

    async def load(self, run: str) -> RunState | None:
        self.asked["load"] += 1
        await asyncio.sleep(0)
        return await super().load(run)
