"""The border of a stage: which records it takes, and why not the others: no JSON, unknown schema, too large, …."""

from collections.abc import Sequence

from pydantic import ValidationError

from shadowtime.shared.errors import first_of
from shadowtime.shared.events import Envelope
from shadowtime.shared.stage import Stage, described
from shadowtime.shared.streaming.bus import partition_of
from shadowtime.shared.streaming.stream import Record
from shadowtime.shared.streaming.unpacking import NotUnpacked
from shadowtime.shared.wording import quoted

READ_AT_ONCE = 50_000
"""Bytes of records that are read in the event loop: it takes some milliseconds, whatever they are."""


class Refuse(Exception):
    """A record is no envelope that the stage takes; the message says why."""


def admitted(record: Record, stage: Stage, partitions: int, max_bytes: int) -> Envelope:
    """Return the envelope in a record; O(its bytes).

    Parameters
    ----------
    partitions
        How many the topic has: a run lives where its name says.
    max_bytes
        The largest message that is looked at.

    Raises
    ------
    Refuse
        If it is none, or one that may not be here.
    """
    if record.value is None:
        raise Refuse("the message is empty")
    if isinstance(record.value, NotUnpacked):
        raise Refuse(record.value.decode())
    if len(record.value) > max_bytes:
        raise Refuse(f"{len(record.value)} bytes; at most {max_bytes} are taken")
    try:
        envelope = Envelope.from_bytes(record.value)
    except ValidationError as error:
        raise Refuse(f"not an envelope of this schema: {first_of(error, 'message')}") from None
    except Exception as error:  # whatever a library makes of bytes that nobody has thought of
        raise Refuse(f"not an envelope of this schema: {described(error)}") from None
    if record.key != envelope.run.encode(errors="replace"):
        key = "no key" if record.key is None else f"key {quoted(record.key.decode(errors='replace'))}"
        raise Refuse(f"run {quoted(envelope.run)} came under {key}")
    if (home := partition_of(envelope.run, partitions)) != record.partition:
        raise Refuse(f"run {quoted(envelope.run)} lives on partition {home}")
    if (intrusion := stage.intrusion(envelope)) is not None:
        raise Refuse(f"{intrusion!r} is not for anybody before stage {stage.name} to say")
    return envelope


def all_admitted(records: Sequence[Record], stage: Stage, partitions: int, max_bytes: int) -> list[Envelope | str]:
    """Return the envelope in each record, or why it is not taken; see `admitted`."""

    def read(record: Record) -> Envelope | str:
        try:
            return admitted(record, stage, partitions, max_bytes)
        except Refuse as refused:
            return str(refused)

    return [read(record) for record in records]
