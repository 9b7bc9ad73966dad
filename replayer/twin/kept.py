"""The shadows of all clusters as Redis keeps them, looked at seldom, for however many ask."""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from shadowtime.replayer.twin.stored import Shadow, read
from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.streaming.run_follower import Position, RunReader

log = logging.getLogger("shadowtime.live")

REST_SECONDS = 10.0
"""Between two looks; who asks meanwhile is told what the last one found, also if that was an error."""


class _Seen(NamedTuple):
    """A run as it was at a position; no shadow where what is stored cannot be read."""

    position: Position
    shadow: Shadow | None


class Kept:
    """What is stored of shadows; one that has not moved on is not read again."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._seen: dict[str, _Seen] = {}
        self._looking: asyncio.Task[None] | None = None
        self._rested = 0.0

    async def shadows(self) -> Sequence[Shadow]:
        """Return the shadows that can be read, in order of their runs.

        Raises
        ------
        StoreError
            If Redis cannot be used.
        """
        if self._looking is None or (self._looking.done() and asyncio.get_running_loop().time() >= self._rested):
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)  # whoever leaves, the others wait for it
        return [each.shadow for each in self._seen.values() if each.shadow is not None]

    async def _look(self) -> None:
        try:
            names = await self._reader.names()
            positions = await self._reader.positions(names)
            found = {}
            for run, position in zip(names, positions, strict=True):
                if position is not None:
                    before = self._seen.get(run)
                    same = before is not None and before.position == position
                    found[run] = before if before is not None and same else await self._read(run, position)
            self._seen = found
        finally:
            self._rested = asyncio.get_running_loop().time() + REST_SECONDS

    async def _read(self, run: str, position: Position) -> _Seen:
        state = await self._reader.load(run)
        try:
            found = await asyncio.to_thread(read, run, None if state is None else state.snapshot)
        except SnapshotMismatch as error:
            log.warning("passed over a shadow: %s", error, extra={"run": run})
            found = None
        return _Seen(position, found)
