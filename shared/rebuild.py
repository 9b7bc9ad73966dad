"""Make the state of a stage anew from the beginning of its topic."""

from shared import bus
from shared.events import Envelope
from shared.redis_store import RedisStore, connect
from shared.settings import Settings
from shared.stage import Stage, StageRun
from shared.state_store import Transaction


async def rebuild(stage: Stage, settings: Settings, only: str | None = None) -> dict[str, int]:
    """Replay a stage's input from the beginning, outputs dropped, and store each run's state.

    For when Redis has lost it, or a snapshot is of an older schema. No worker of the stage may run meanwhile. What the
    stage had not yet taken from its topic it takes when it starts again.

    Returns
    -------
    dict
        The sequence up to which each run was rebuilt.
    """
    client = connect(settings)
    store = RedisStore(client, stage.name)
    try:
        partitions = await bus.prepare_topics(settings)
        rebuilt: dict[str, int] = {}
        for partition in range(partitions):
            delivered = await _delivered(stage, settings, partition)
            runs: dict[str, tuple[StageRun, int]] = {}
            for record in await bus.read_log(settings, stage.reads, partition):
                envelope = Envelope.read(record.value)
                if (
                    envelope is None
                    or only not in (None, envelope.run)
                    or envelope.sequence > delivered.get(envelope.run, -1)
                ):
                    continue
                state, _ = runs.get(envelope.run) or (StageRun(stage), -1)
                if envelope.sequence == state.sequence + 1:
                    state.push(envelope)
                    runs[envelope.run] = state, record.offset
            for name, (state, offset) in runs.items():
                await store.forget(name)
                await store.commit(
                    Transaction(name, -1, state.sequence, offset, partition, state.snapshot(), (), (), 0)
                )
                rebuilt[name] = state.sequence
        return rebuilt
    finally:
        await client.aclose()


async def _delivered(stage: Stage, settings: Settings, partition: int) -> dict[str, int]:
    """Return the last sequence of each run that the stage has put on its own topic."""
    delivered: dict[str, int] = {}
    for record in await bus.read_log(settings, stage.writes, partition):
        envelope = Envelope.read(record.value)
        if envelope is not None and envelope.sequence == delivered.get(envelope.run, -1) + 1:
            delivered[envelope.run] = envelope.sequence
    return delivered
