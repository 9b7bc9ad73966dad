"""What the log of a cluster tells of its jobs: how long they run, and what of it concerns a shadow too."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from shadowtime.replayer.twin.life import Life
from shadowtime.shared.events import (
    CapacityChanged,
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
)


class Heard(NamedTuple):
    """An event that concerns a shadow, and the life of its job."""

    event: Event
    life: Life | None = None


class Actual:
    """The jobs of a cluster that have not ended both there and in the shadow.

    A number may have more than one life: where a job is handed in again before the shadow is through with the last.
    Memory is bounded by those jobs; an event costs O(1).
    """

    def __init__(self) -> None:
        self.lives: dict[int, list[Life]] = {}

    def __iter__(self) -> Iterator[Life]:
        return (life for lives in self.lives.values() for life in lives)

    def hear(self, event: Event) -> Heard | None:
        """Take in the next event of the log, and return it if it concerns the shadow."""
        if isinstance(event, CapacityChanged):
            return Heard(event)
        handle = _HANDLERS.get(type(event))
        return None if handle is None else handle(self, event)

    def forget(self, life: Life) -> None:
        """Let go of a life that is over."""
        lives = self.lives[life.job.job_number]
        lives.remove(life)
        if not lives:
            del self.lives[life.job.job_number]

    def next_after(self, life: Life) -> Life | None:
        """Return the life of the same number that comes after this one, if there is one."""
        lives = self.lives[life.job.job_number]
        at = lives.index(life) + 1
        return lives[at] if at < len(lives) else None

    def _last(self, job_number: int) -> Life | None:
        """Return the life that a job has on the cluster now; None if it was over before the shadow began."""
        lives = self.lives.get(job_number)
        return lives[-1] if lives and not lives[-1].over else None

    def _submitted(self, event: JobSubmitted) -> Heard:
        life = self._last(event.job_number)
        if life is not None and life.held:
            life.held = False
        else:
            life = Life(event, blocked=bool(event.blocked))
            self.lives.setdefault(event.job_number, []).append(life)
        return Heard(event, life)

    def _withdrawn(self, event: JobWithdrawn) -> Heard | None:
        life = self._last(event.job_number)
        if life is None:
            return None
        if event.reason == "held":
            life.held = True
        else:
            life.gone(event)
            if life.done:
                self.forget(life)
                return None
        return Heard(event, life)

    def _changed(self, event: JobChanged) -> Heard | None:
        life = self._last(event.job_number)
        if life is None:
            return None
        if event.blocked is not None:
            life.blocked = event.blocked
        return Heard(event, life)

    def _started(self, event: JobStarted) -> Heard | None:
        life = self._last(event.job_number)
        if life is None:
            return None
        life.began(event)
        if not life.blocked:
            return None
        life.blocked = False  # nothing has blocked one that starts
        return Heard(JobChanged(time=event.time, job_number=event.job_number, blocked=False), life)

    def _suspended(self, event: JobSuspended) -> None:
        if (life := self._last(event.job_number)) is not None:
            life.paused(event)

    def _resumed(self, event: JobResumed) -> None:
        if (life := self._last(event.job_number)) is not None:
            life.went_on(event)

    def _ended(self, event: JobEnded) -> None:
        life = self._last(event.job_number)
        if life is not None:
            life.ended(event)
            if life.over and life.done:
                self.forget(life)


_HANDLERS: dict[type, Callable[[Actual, Any], Heard | None]] = {
    JobSubmitted: Actual._submitted,
    JobWithdrawn: Actual._withdrawn,
    JobChanged: Actual._changed,
    JobStarted: Actual._started,
    JobSuspended: Actual._suspended,
    JobResumed: Actual._resumed,
    JobEnded: Actual._ended,
}
