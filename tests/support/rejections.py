"""What stages refuse of a log."""

from collections.abc import Iterable

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import Envelope, Event, Rejected
from shadowtime.shared.stages.stage import StageRun


def as_log(events: Iterable[Event]) -> list[Envelope]:
    """Return events, the opening first, as the log of a run."""
    return [Envelope(run="r", sequence=sequence, event=event) for sequence, event in enumerate(events)]


def rejected(log: Iterable[Envelope]) -> list[str]:
    """Return why any stage rejects what the log has."""
    runs = [StageRun(stage) for stage in STAGES]
    found: list[str] = []
    for envelope in log:
        for run in runs:
            forwarded = run.push(envelope)
            assert forwarded is not None
            envelope = forwarded
        if isinstance(envelope.event, Rejected):
            found.append(envelope.event.reason)
    return found
