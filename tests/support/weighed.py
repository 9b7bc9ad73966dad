"""A whole run of a policy that weighs candidates, to find anew what became of each."""

from collections.abc import Iterator

from shadowtime.shared.messages.decisions import Evaluated
from shadowtime.shared.messages.envelope import Decided, Envelope, JobEnded, JobStarted, JobSubmitted


class WeighedLog:
    """Remembers a whole run; where decisions are advice only (not `obeyed`), no attempt behind a start of its pass."""

    def __init__(self, *, obeyed: bool = True) -> None:
        self.obeyed = obeyed
        self.sizes: dict[int, int] = {}
        self.running: dict[int, int] = {}
        self.ends: dict[int, JobEnded] = {}
        self.attempts: list[tuple[int, dict[int, int], Evaluated]] = []

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self.sizes[event.job_number] = event.requested_processors
        elif isinstance(event, JobStarted):
            self.running[event.job_number] = event.processors
        elif isinstance(event, JobEnded):
            del self.running[event.job_number]
            self.ends[event.job_number] = event
        elif isinstance(event, Decided):
            for each in event.evaluated:
                if self.obeyed or each.after == 0:
                    earlier = {start.job_number: start.processors for start in event.starts[: each.after]}
                    self.attempts.append((event.time, self.running | earlier, each))

    def ready(self) -> Iterator[tuple[int, Evaluated, int, int]]:
        """Yield each attempt whose head found room: its time, itself, when that was, and the processors given back."""
        for now, running, attempt in self.attempts:
            released = 0
            for time in sorted({self.ends[number].time for number in running}):
                released += sum(size for number, size in running.items() if self.ends[number].time == time)
                if released >= attempt.needed:
                    yield now, attempt, time, released
                    break
