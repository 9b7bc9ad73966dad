"""A state store in memory, with the rules of the real one; it can be told to fail, or to lose its last seconds."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from shadowtime.shared.errors import FencedError, StoreError
from shadowtime.shared.streaming.protocols import RunState, RunSummary, Transaction


@dataclass
class _Kept:
    sequence: int = -1
    offset: int = -1
    partition: int = 0
    snapshot: bytes | None = None
    journal: list[bytes] = field(default_factory=list)
    outbox: list[bytes] = field(default_factory=list)
    read_model: dict[str, bytes] = field(default_factory=dict)
    quarantined: str | None = None
    catching_up: bool = False
    log: str = ""


class MemoryStore:
    """Implements `StateStore`; `fails()` is asked before and after each transaction."""

    def __init__(self, fails: Callable[[], bool] = lambda: False) -> None:
        self.kept: dict[str, _Kept] = {}
        self.begun: dict[str, int] = {}
        self.logs: dict[int, str] = {}
        self.unhandled: dict[int, bytes] = {}
        self._fails = fails

    def image(self) -> dict[str, _Kept]:
        """Return a copy of everything, as an append-only file would have it."""
        return copy.deepcopy(self.kept)

    async def runs(self, partition: int) -> list[str]:
        return sorted(name for name, kept in self.kept.items() if kept.partition == partition)

    async def summaries(self, runs: Sequence[str]) -> list[RunSummary | None]:
        if self._fails():
            raise StoreError("told to fail")
        every = [self.kept.get(run) for run in runs]
        return [
            None
            if kept is None
            else RunSummary(kept.sequence, len(kept.outbox), kept.quarantined, kept.catching_up, kept.offset, kept.log)
            for kept in every
        ]

    async def load(self, run: str) -> RunState | None:
        if self._fails():
            raise StoreError("told to fail")
        kept = self.kept.get(run)
        if kept is None:
            return None
        return RunState(
            kept.sequence,
            kept.offset,
            kept.partition,
            kept.snapshot,
            list(kept.journal),
            list(kept.outbox),
            kept.quarantined,
            kept.catching_up,
            kept.log,
        )

    async def log_of(self, partition: int) -> str | None:
        return self.logs.get(partition)

    async def set_log(self, partition: int, identity: str) -> None:
        self.logs[partition] = identity

    async def unhandled_of(self, partition: int) -> bytes | None:
        return self.unhandled.get(partition)

    async def set_unhandled(self, partition: int, content: bytes) -> None:
        self.unhandled[partition] = content

    async def attempt(self, run: str, below: int | None = None) -> int | None:
        if self._fails():
            raise StoreError("told to fail")
        if below is not None and self.begun.get(run, 0) >= below:
            return None
        self.begun[run] = self.begun.get(run, 0) + 1
        return self.begun[run]

    async def withdraw_attempt(self, run: str) -> None:
        if self._fails():
            raise StoreError("told to fail")
        self.begun[run] = self.begun.get(run, 0) - 1

    async def commit(self, transaction: Transaction) -> None:
        if self._fails():
            raise StoreError("told to fail before the transaction")
        kept = self.kept.get(transaction.run, _Kept())
        if kept.sequence != transaction.expected:
            raise FencedError(f"at {kept.sequence}, not {transaction.expected}")
        self.kept[transaction.run] = kept
        kept.sequence, kept.offset = transaction.sequence, transaction.offset
        kept.partition = transaction.partition
        kept.quarantined, kept.catching_up = transaction.quarantined, transaction.catching_up
        kept.log = transaction.log
        self.begun.pop(transaction.run, None)
        del kept.outbox[: transaction.delivered]
        if transaction.snapshot is None:
            kept.journal += transaction.inputs
        else:
            kept.snapshot, kept.journal = transaction.snapshot, []
        kept.outbox += transaction.outputs
        kept.read_model.update(transaction.read_model)
        for name in transaction.forgotten:
            kept.read_model.pop(name, None)
        if self._fails():
            raise StoreError("told to fail after the transaction")

    async def forget(self, run: str) -> None:
        self.kept.pop(run, None)

    async def read_model(self, run: str) -> dict[str, bytes]:
        return dict(self.kept[run].read_model) if run in self.kept else {}
