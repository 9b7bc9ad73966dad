"""Runs of the stage that answers with what it was asked, written to a store."""

from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import Transaction
from tests.support.echo_stage import STAGE
from tests.support.memory_reader import MemoryReader


async def write(
    reader: MemoryReader,
    run: str,
    cluster: str,
    time: int,
    *more: Event,
    wait_bound: str = "bmbp",
    outputs: bool = True,
    unix_start: int = 0,
) -> None:
    """Store a run whose last event is at `time`, or those of `more`."""
    opened = ClusterOpened(time=0, cluster=cluster, processors=10, wait_bound=wait_bound, unix_start=unix_start)
    state = StageRun(STAGE)
    inputs, answers = [], []
    for sequence, event in enumerate([opened, SchedulingPoint(time=time), *more]):
        envelope = Envelope(run=run, cluster=cluster, sequence=sequence, event=event)
        answer = state.push(envelope)
        assert answer is not None
        inputs.append(envelope.to_bytes())
        answers.append(answer.to_bytes())
    snapshot = None if outputs else state.snapshot()  # a rebuilt run has nothing in its outbox
    kept = answers if outputs else []
    await reader.commit(Transaction(run, -1, state.sequence, state.sequence, 0, snapshot, inputs, kept, 0))
