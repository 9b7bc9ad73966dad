"""Runs of jobs that wait, written to a store."""

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    Event,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.protocols import StateStore, Transaction

(SCHEDULER,) = (stage for stage in STAGES if stage.name == "scheduler")


def submitted(number: int, processors: int, time: int = 0) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=number, requested_processors=processors, requested_time=3600)


EVENTS: tuple[Event, ...] = (
    submitted(1, 6),
    SchedulingPoint(time=0),
    JobStarted(time=0, job_number=1, processors=6, limit=3600),
    submitted(2, 8, 60),
    submitted(3, 2, 120),
    SchedulingPoint(time=120),
)


async def write(store: StateStore, run: str, cluster: str, *events: Event, snapshot: bool = False) -> None:
    """Store a run as a worker of the stage does."""
    state = StageRun(SCHEDULER)
    opened = ClusterOpened(time=0, cluster=cluster, processors=8, mode="closed")
    inputs, outputs = [], []
    for sequence, event in enumerate((opened, *events)):
        envelope = Envelope(run=run, cluster=cluster, sequence=sequence, event=event)
        answer = state.push(envelope)
        assert answer is not None
        inputs.append(envelope.to_bytes())
        outputs.append(answer.to_bytes())
    saved = state.snapshot() if snapshot else None
    await store.commit(Transaction(run, -1, state.sequence, state.sequence, 0, saved, inputs, outputs, 0))
