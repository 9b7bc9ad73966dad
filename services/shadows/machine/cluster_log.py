"""The state of a cluster's jobs, from its log."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from shadowtime.services.shadows.machine.job import ShadowJob
from shadowtime.shared.messages import (
    Event,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    OfJob,
)

OF_A_LIFE: dict[type, Callable[[ShadowJob, Any], None]] = {
    JobWithdrawn: ShadowJob.withdrawn,
    JobChanged: ShadowJob.changed,
    JobStarted: ShadowJob.began,
    JobSuspended: ShadowJob.paused,
    JobResumed: ShadowJob.went_on,
    JobEnded: ShadowJob.ended,
}


class Actual:
    """The jobs of a cluster that are not over on the cluster, or not done in the shadow.

    A job number has several lives if a job is submitted again before the previous life is done in the shadow. Memory is
    O(lives that are not forgotten). An event costs O(1).
    """

    def __init__(self, lives: Iterable[ShadowJob] = ()) -> None:
        self._lives: dict[int, list[ShadowJob]] = {}
        for life in lives:
            self._add(life)

    def __iter__(self) -> Iterator[ShadowJob]:
        return (life for lives in self._lives.values() for life in lives)

    def receive(self, event: Event) -> ShadowJob | None:
        """Apply the next event of the log. Return the life that the event belongs to, or None if the job is unknown."""
        if isinstance(event, JobSubmitted):
            return self._submitted(event)
        if not isinstance(event, OfJob) or (handle := OF_A_LIFE.get(type(event))) is None:
            return None
        life = self._last(event.job_number)
        if life is not None:
            handle(life, event)
            self.forget_if_over(life)
        return life

    def forget_if_over(self, life: ShadowJob) -> None:
        """Forget a life if it is over on the cluster and done in the shadow."""
        if life.over and life.done:
            lives = self._lives[life.job.job_number]
            lives.remove(life)
            if not lives:
                del self._lives[life.job.job_number]

    def next_after(self, life: ShadowJob) -> ShadowJob | None:
        """Return the next life of the same job number; None if there is none."""
        lives = self._lives[life.job.job_number]
        at = lives.index(life) + 1
        return lives[at] if at < len(lives) else None

    def _add(self, life: ShadowJob) -> None:
        self._lives.setdefault(life.job.job_number, []).append(life)

    def _last(self, job_number: int) -> ShadowJob | None:
        """Return the current life of a job on the cluster; None if none is known."""
        lives = self._lives.get(job_number)
        return lives[-1] if lives and not lives[-1].over else None

    def _submitted(self, event: JobSubmitted) -> ShadowJob:
        life = self._last(event.job_number)
        if life is None or not life.held:
            self._add(life := ShadowJob(event))
        life.held, life.blocked = False, bool(event.blocked)
        return life
