"""How the run began whose shadows are played."""

from collections.abc import Mapping

from aiokafka import AIOKafkaConsumer, TopicPartition

from shadowtime.shared.errors import FollowError
from shadowtime.shared.events import ClusterOpened, Envelope
from shadowtime.shared.topics import JOBS
from shadowtime.shared.wording import quoted

PART, PATIENCE = 500, 1_000
"""Records that are read at once, and milliseconds to wait for one."""


async def beginning_of(
    consumer: AIOKafkaConsumer, partition: int, run: str, *, to_the_end: bool
) -> tuple[ClusterOpened, int, int]:
    """Return the first event of a run, the time of its last one so far, in seconds, and where its second may lie.

    The last is looked for only `to_the_end`.

    Raises
    ------
    FollowError
        If there is no such run, or its beginning is gone.
    """
    place = TopicPartition(JOBS, partition)
    consumer.assign([place])
    end = (await consumer.end_offsets([place]))[place]
    await consumer.seek_to_beginning(place)
    first: ClusterOpened | None = None
    last, after = 0, 0
    while await consumer.position(place) < end and (first is None or to_the_end):
        found = await consumer.getmany(place, timeout_ms=PATIENCE, max_records=PART)
        for record in found.get(place, ()):
            if record.key != run.encode() or (envelope := Envelope.read(record.value)) is None:
                continue
            last = envelope.event.time
            if first is None:
                first, after = _opening(envelope), record.offset + 1
    if first is None:
        raise FollowError(
            f"topic {JOBS} knows no run {quoted(run)}; name the run to shadow: --of NAME; "
            "shadowtime watch decisions --beginning shows those that are there"
        )
    return first, last, after


async def read_from(consumer: AIOKafkaConsumer, offsets: Mapping[TopicPartition, int]) -> None:
    """Let a consumer read on from there; raises `FollowError` where that is not kept any more."""
    consumer.assign(list(offsets))
    for place, offset in offsets.items():
        if (await consumer.beginning_offsets([place]))[place] > offset > 0:
            raise FollowError(f"topic {place.topic} does not keep what is to be read next: begin a new shadow (--name)")
        consumer.seek(place, offset)


def _opening(envelope: Envelope) -> ClusterOpened:
    if not isinstance(envelope.event, ClusterOpened):
        raise FollowError(
            f"the beginning of run {quoted(envelope.run)} is gone from topic {JOBS}, where it begins at sequence "
            f"{envelope.sequence}: a shadow needs all of it; keep it for longer (shadowtime topics --retention-hours)"
        )
    return envelope.event
