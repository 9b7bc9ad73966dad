"""The comparisons of a cluster's shadows, from the state that their processes keep in Redis."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import orjson

from shadowtime.services.shadows.comparison.schema import Comparison
from shadowtime.services.shadows.comparison.side_by_side import SideBySide
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.messages import SHADOW, current_run, run_name
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.streaming import Position, RunReader

STORE = "shadow"
"""Prefix of the keys of shadows in Redis."""


class StoredShadow(NamedTuple):
    """A stored shadow: its run, the cluster, the real run, the policy's name, and the comparison.

    `unix_start` is the Unix second of the log's second 0.
    """

    run: str
    cluster: str
    real: str
    name: str
    unix_start: int
    compared: Comparison

    def of(self, cluster: str) -> bool:
        """Return whether this is a shadow of `cluster`, which is the name of a cluster or of a real run."""
        return cluster in (self.cluster, self.real)


def shadows_beside(cluster: str, every: Sequence[StoredShadow]) -> list[StoredShadow]:
    """Return the shadows of `cluster`, which is the name of a cluster or of a real run.

    If a cluster has shadows of several real runs, only those of the run that follows it now are returned: the numbers
    of users and the times of two runs differ. If shadows have one name, as those of one policy, only the usual one
    keeps it. The others get the names of their runs.
    """
    chosen = [shadow for shadow in every if shadow.of(cluster)]
    ends = {shadow.real: 0 for shadow in chosen}
    for shadow in chosen:
        ends[shadow.real] = max(ends[shadow.real], shadow.unix_start + (shadow.compared.horizon or 0))
    real = cluster if cluster in ends else current_run(cluster, ends)
    chosen = [shadow for shadow in chosen if shadow.real == real]
    names = Counter(shadow.name for shadow in chosen)
    return [
        shadow
        if names[shadow.name] == 1 or shadow.run.startswith(run_name(shadow.cluster, SHADOW, ""))
        else shadow._replace(name=shadow.run.removeprefix(f"{shadow.cluster}/"))
        for shadow in chosen
    ]


def none_of(cluster: str, every: Sequence[StoredShadow]) -> str:
    """Return the error message for a cluster without shadows. It names the clusters that have shadows."""
    known = truncate(", ".join(sorted({shadow.cluster for shadow in every}))) if every else "none"
    return f"cluster {quote(cluster)} has no shadow; clusters with shadows: {known}; start one with shadowtime shadow"


def read(run: str, snapshot: bytes | None) -> StoredShadow:
    """Return the stored shadow of a run from its snapshot.

    Raise `SnapshotMismatch` if the snapshot is damaged, or of another version.
    """
    try:
        state: Mapping[str, Any] = orjson.loads(snapshot or b"")
        opened, source = state["opened"], state["source"]
        both = SideBySide()
        both.restore(source["side_by_side"])
        real, cluster, unix_start = source["real"], opened["cluster"], opened.get("unix_start") or 0
        name = opened.get("name") or opened["policy"]
        summary = both.report(both.horizon or 0, key_of(0, run))
        summary = summary.replaced(by_predictions=not source.get("exact", True))
    except (KeyError, IndexError, TypeError, ValueError, AttributeError) as error:
        raise SnapshotMismatch(
            f"the stored state of shadow {quote(run)} is damaged, or of another version: {error!r:.200}; "
            "start it again with shadowtime shadow"
        ) from None

    return StoredShadow(run, cluster, real, name.removeprefix("shadow/"), unix_start, summary)


# A cache of the shadows of all clusters, shared by all clients. Redis is read rarely.

log = logging.getLogger("shadowtime.live")

REST_SECONDS = 10.0
"""Seconds between two reads of Redis. Meanwhile callers get the result of the last read, even if it was an error."""


class _Seen(NamedTuple):
    """The result of the last read of a shadow: its position and its state. `shadow` is None for unreadable state."""

    position: Position
    shadow: StoredShadow | None


class StoredShadowCache:
    """A cache of the stored shadows. A shadow whose position has not changed is not read again."""

    def __init__(self, reader: RunReader) -> None:
        self._reader = reader
        self._seen: dict[str, _Seen] = {}
        self._looking: asyncio.Task[None] | None = None
        self._rested = 0.0

    async def shadows(self) -> Sequence[StoredShadow]:
        """Return the readable shadows, in the order of `RunReader.names`.

        Raise `StoreError` if Redis could not be used at the last read.
        """
        if self._looking is None or (self._looking.done() and asyncio.get_running_loop().time() >= self._rested):
            self._looking = asyncio.create_task(self._look())
        await asyncio.shield(self._looking)  # a caller that is cancelled must not cancel the read of the others
        return [entry.shadow for entry in self._seen.values() if entry.shadow is not None]

    async def _look(self) -> None:
        try:
            names = await self._reader.names()
            positions = await self._reader.positions(names)
            reports = {}
            for run, position in zip(names, positions, strict=True):
                if position is not None:
                    before = self._seen.get(run)
                    same = before is not None and before.position == position
                    reports[run] = before if before is not None and same else await self._read(run, position)

            self._seen = reports
        finally:
            self._rested = asyncio.get_running_loop().time() + REST_SECONDS

    async def _read(self, run: str, position: Position) -> _Seen:
        try:
            state = await self._reader.load(run)
            stored = await asyncio.to_thread(read, run, None if state is None else state.snapshot)
        except SnapshotMismatch as error:
            log.warning("skipped a shadow: %s", error, extra={"run": run})
            stored = None
        return _Seen(position, stored)
