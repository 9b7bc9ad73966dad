"""The stages of the pipeline as a chain that records the messages that each stage reads."""

from collections.abc import Iterator

from shadowtime.replayer.simulation import ReplaySource
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages import ClusterClosed, ClusterOpened, Decided, Envelope, Event, Rejected
from shadowtime.shared.stages import StageRun


class Chain:
    """One run through all stages. `read` keeps the envelopes that each stage has read."""

    def __init__(self, opened: ClusterOpened) -> None:
        self.opened = opened
        self.stages = {stage.name: StageRun(stage) for stage in STAGES}
        self.read: dict[str, list[Envelope]] = {stage.name: [] for stage in STAGES}
        self.sequence = 0

    def push(self, event: Event) -> Envelope:
        """Push the next event of the run through all stages, and return the envelope of the last stage."""
        envelope = Envelope(run="r", sequence=self.sequence, event=event)
        for name, stage in self.stages.items():
            self.read[name].append(envelope)
            answer = stage.push(envelope)
            assert answer is not None
            assert not isinstance(answer.event, Rejected), answer.event.reason
            envelope = answer

        self.sequence += 1
        return envelope

    def play(self, source: ReplaySource) -> Iterator[tuple[Event, Envelope]]:
        """Yield every event of the run as the source emits it, with the envelope of the last stage."""
        yield self.opened, self.push(self.opened)
        time = self.opened.time
        while events := source.next_instant():
            for event in events:
                answer = self.push(event)
                yield event, answer
                if isinstance(answer.event, Decided):
                    for caused in source.apply(answer.event):
                        yield caused, self.push(caused)

            time = events[0].time

        closed = ClusterClosed(time=time)
        yield closed, self.push(closed)
