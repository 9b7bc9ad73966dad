"""The interfaces of a worker: to its stream (records, outputs, dead letters), and to its store."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Record(Protocol):
    """A message as it was read from a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float | None
    """Unix time in seconds at which its event entered the first topic. Outputs inherit the time of their input."""


@dataclass(slots=True)
class OwnRecord:
    """A `Record` that this process makes: one that was read again, or the subject of a dead letter.

    A subject that is a run or a whole partition has the offset -1.
    """

    topic: str
    partition: int
    key: bytes | None = None
    offset: int = -1
    value: bytes | None = None
    timestamp: float | None = None


class Stream(Protocol):
    """The worker's interface to Kafka."""

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs to the stage's own topic, in order.

        `times` has the time of each output's input as Unix seconds, None if it is unknown.

        Raises
        ------
        MessageRejected
            If Kafka will never accept one of the outputs.
        BusError
            If delivery is not certain.
        """
        ...

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        """Deliver records to the dead letters, each with its reason; raise `BusError` if delivery is not certain."""
        ...

    def replay(self, partition: int, start: int, stop: int | None) -> AsyncGenerator[Sequence[Record], None]:
        """Yield the records of the stage's input from offset `start` up to `stop` (the present end if None), in parts.

        Raise `BusError` if Kafka cannot deliver them.
        """
        ...

    async def topic_id(self) -> str:
        """Return the id that Kafka gave the stage's input topic when the topic was made.

        Raise `BusError` if Kafka does not answer, or has no such topic.
        """
        ...

    async def end(self, partition: int) -> int:
        """Return the offset behind the last record of a partition of the stage's input.

        Raise `BusError` if Kafka does not answer.
        """
        ...


# The interface between a worker and its store: state, position and outputs change in one transaction.


@dataclass(frozen=True)
class RunState:
    """The stored state of one run in one stage.

    `snapshot`, followed by the inputs of `journal`, gives the state after `sequence`. The input with this sequence is
    at `offset` of `partition`. `outbox` has outputs that may not have been delivered. `quarantined` is the reason if
    the run is quarantined; then `snapshot` and `journal` are not valid. `catching_up` and `log` are as in
    `Transaction`.
    """

    sequence: int
    offset: int
    partition: int
    snapshot: bytes | None
    journal: Sequence[bytes]
    outbox: Sequence[bytes]
    quarantined: str | None = None
    catching_up: bool = False
    log: str = ""


class RunSummary(NamedTuple):
    """The part of a stored run that shows whether its next owner has work to do before the run's next event.

    `outbox` is the number of its outputs; the other fields are those of `RunState`.
    """

    sequence: int
    outbox: int
    quarantined: str | None
    catching_up: bool
    offset: int = -1
    log: str = ""

    def includes(self, offset: int, sequence: int, log: str) -> bool:
        """Return whether the run has handled an event: its record is at `offset` of a log with the identity `log`.

        A new sequence at an old offset is not included: another log may have taken the place of the run's log.
        """
        return offset <= self.offset and sequence <= self.sequence and log == self.log


@dataclass(frozen=True)
class Transaction:
    """The changes of one batch in one run.

    Parameters
    ----------
    expected
        The sequence that the worker started from: the fence. -1 for a new run.
    sequence, offset, partition
        The sequence of the last event of the batch, and its offset and partition.
    snapshot
        The state after the batch, which replaces the journal; None to add `inputs` to the journal.
    inputs, outputs
        The batch's events as received, and as emitted.
    delivered
        The number of outputs of the outbox that are known to be delivered, since the last transaction.
    read_model, forgotten
        Fields of the read model to set, and to delete.
    closed
        Whether the run is over: its state may expire soon.
    quarantined
        The reason if the run is quarantined, else None.
    catching_up
        Whether the topic may hold later events of the run that Kafka will not hand to a worker, as after a rebuild. The
        next owner reads them from the log.
    log
        The identity of the log in which `offset` counts; see `Stream.topic_id`.
    """

    run: str
    expected: int
    sequence: int
    offset: int
    partition: int
    snapshot: bytes | None
    inputs: Sequence[bytes]
    outputs: Sequence[bytes]
    delivered: int
    read_model: Mapping[str, bytes] = field(default_factory=dict)
    forgotten: Sequence[str] = ()
    closed: bool = False
    quarantined: str | None = None
    catching_up: bool = False
    log: str = ""


class StateStore(Protocol):
    """The store of a stage's runs."""

    async def runs(self, partition: int) -> Sequence[str]:
        """Return the names of the runs that have been stored for a partition."""
        ...

    async def summaries(self, runs: Sequence[str]) -> Sequence[RunSummary | None]:
        """Return the summary of each run, in O(1) a run; None if nothing is stored of it."""
        ...

    async def attempt(self, run: str, below: int | None = None) -> int | None:
        """Count a process that begins to work on a run. Return the count since the run's last transaction.

        If `below` is given and the count has reached it, count nothing and return None.
        """
        ...

    async def withdraw_attempt(self, run: str) -> None:
        """Decrease the count of processes that work on a run by one."""
        ...

    async def log_of(self, partition: int) -> str | None:
        """Return the identity of the log whose offsets are stored for a partition; None if none is known."""
        ...

    async def set_log(self, partition: int, log: str) -> None:
        """Store the identity of the log of a partition."""
        ...

    async def unhandled_of(self, partition: int) -> bytes | None:
        """Return what was stored of the unhandled records of a partition; None if there is nothing of this stage."""
        ...

    async def set_unhandled(self, partition: int, content: bytes) -> None:
        """Store the unhandled records of a partition."""
        ...

    async def load(self, run: str) -> RunState | None:
        """Return the stored state of a run; None if there is none.

        Raise `StateAltered` if the state was not written by this stage, or not as a whole.
        """
        ...

    async def commit(self, transaction: Transaction) -> None:
        """Apply a transaction as a whole. The store may count it as an attempt at the run's next event.

        Raises
        ------
        FencedError
            If the run is not at `expected`; nothing has changed then.
        StoreError
            If the store cannot be used; whether the transaction was applied is unknown then.
        """
        ...

    async def forget(self, run: str) -> None:
        """Delete everything that is stored of a run."""
        ...
