"""The seam between a worker and its stream: records, outputs, dead letters."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol


class Record(Protocol):
    """A message as it came from a topic."""

    topic: str
    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    timestamp: float | None
    """Unix time in seconds at which its event entered the first topic: outputs inherit that of their input."""


class Stream(Protocol):
    """The worker's interface to Kafka."""

    async def publish(self, partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        """Deliver outputs to the stage's own topic, in order.

        `times` are those of their inputs, None where they are not known. Raises `MessageRejected` if Kafka never takes
        one of them, `BusError` if delivery is not certain.
        """
        ...

    async def dead_letter(self, letters: Sequence[tuple[Record, str]]) -> None:
        """Deliver records to the dead letters, each with its reason; raise `BusError` if that is not certain."""
        ...

    def replay(self, partition: int, start: int, stop: int | None) -> AsyncIterator[Sequence[Record]]:
        """Yield the records of the stage's input from offset `start` up to `stop`, what there is now if None, in parts.

        Raises `BusError` if Kafka does not give them.
        """
        ...


# The seam between a worker and its store: state, position and outputs change in one transaction.


@dataclass(frozen=True)
class RunState:
    """The stored state of one run in one stage.

    `snapshot` and then the inputs of `journal` give the state after `sequence`, whose input lay at `offset` of
    `partition`. `outbox` holds outputs that may not have been delivered. `quarantined` says why the run is not carried
    on, if it is not; nothing else is true of it then but its position.
    """

    sequence: int
    offset: int
    partition: int
    snapshot: bytes | None
    journal: Sequence[bytes]
    outbox: Sequence[bytes]
    quarantined: str | None = None
    catching_up: bool = False


@dataclass(frozen=True)
class Transaction:
    """The changes of one batch in one run.

    Parameters
    ----------
    expected
        The sequence that the worker started from: the fence. -1 for a new run.
    sequence, offset, partition
        The last event of the batch, and where it lay.
    snapshot
        The state after the batch, in place of the journal; None to add `inputs` to it.
    inputs, outputs
        The batch's events as they came in, and as they go out.
    delivered
        How many outputs of the outbox are known to have arrived since the last transaction.
    read_model, forgotten
        Fields of the read model to set, and to delete.
    closed
        The run is over: its state may expire soon.
    quarantined
        Why the run is not to be carried on.
    behind
        Whether its topic holds more of it that no worker will be handed: what a rebuilt run lacks.
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


class StateStore(Protocol):
    """Where a stage keeps its runs."""

    async def runs(self, partition: int) -> Sequence[str]:
        """Return the runs that have been seen on a partition."""
        ...

    async def attempt(self, run: str, below: int | None = None) -> int | None:
        """Count a process that begins to work on a run, and return how many have since its last transaction.

        None, and nothing is counted, if `below` is given and so many had before.
        """
        ...

    async def load(self, run: str) -> RunState | None:
        """Return what is known of a run; None for nothing."""
        ...

    async def commit(self, transaction: Transaction) -> None:
        """Apply a transaction as a whole; who commits may be counted as one that works on the next event.

        Raises
        ------
        FencedError
            If the run is not at `expected`; nothing has changed then.
        StoreError
            If the store cannot be used; whether the transaction was applied is unknown then.
        """
        ...

    async def forget(self, run: str) -> None:
        """Delete everything that is known of a run."""
        ...
