"""The lives of jobs that are known, by what names them."""

from collections.abc import Collection, Iterator, Mapping

from shadowtime.services.follower.cluster.job_life import JobLife
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import LIFE, number_of
from shadowtime.shared.messages import JobSubmitted

FOUND_AGAIN = -2
"""In the place of a task this or less, of lives of which only the events are known: whose of the job's is not told."""


MAX_LIVES = 1_000
"""Of one job that are remembered at a time."""


class KnownLives:
    """Lives by key, by number, and of one job; memory is bounded by the lives that are not forgotten."""

    def __init__(self) -> None:
        self.by_key: dict[LifeKey, JobLife] = {}
        self.by_number: dict[int, JobLife] = {}
        self._of_job: dict[tuple[int, int], list[JobLife]] = {}
        self._found_again: dict[int, JobLife] = {}

    def __iter__(self) -> Iterator[JobLife]:
        return iter(list(self.by_key.values()))

    def of_job(self, key: LifeKey) -> list[JobLife]:
        """Return the lives of the job that a life is of."""
        return self._of_job.get((key.job, key.task), [])

    def too_many(self, key: LifeKey) -> bool:
        """Return whether a job has more lives than any that is real: each is compared with all."""
        return len(self.of_job(key)) >= MAX_LIVES

    def new(self, observation: JobObservation) -> JobLife:
        """Add a life that is seen for the first time: the next of its job, or the one before those that are known.

        One of which the events were found in the log is known again.
        """
        job, task, submit = observation.key
        of_job = self.of_job(observation.key)
        later = [other.index for other in of_job if other.key.submit > submit]
        index = min(later) - 1 if later else max((other.index for other in of_job), default=-1) + 1
        index = max(index, 0) if observation.life is None else observation.life
        while (number := number_of(job, None if task < 0 else task, index)) in self.by_number:
            again = self._found_again.get(number)
            if again is not None and again.key.submit == submit:
                self.drop(again)
                again.key, again.index = observation.key, index
                self.add(again)
                return again

            index += 1

        life = JobLife(observation.key, number, index)
        self.add(life)
        return life

    def order(self, observation: JobObservation) -> tuple[int, int]:
        """Let the lives of a job come in order; those before one that is known, the last of them first."""
        submit = observation.key.submit
        before = any(other.key.submit > submit for other in self.of_job(observation.key))
        return (0, -submit) if before else (1, submit)

    def found_again(self, event: JobSubmitted) -> JobLife:
        """Add a life of which only its events are known; the next sight of it tells which job it is."""
        submit = event.since if event.submit_time is None else event.submit_time
        rest, job = divmod(event.job_number, LIFE)
        life = JobLife(LifeKey(job, FOUND_AGAIN - rest, submit), event.job_number, 0)
        self.add(life)
        return life

    def add(self, life: JobLife) -> None:
        """Add a life."""
        self.by_key[life.key] = self.by_number[life.number] = life
        self._of_job.setdefault((life.key.job, life.key.task), []).append(life)
        if life.key.task <= FOUND_AGAIN:
            self._found_again[life.number] = life

    def drop(self, life: JobLife) -> None:
        """Forget a life."""
        del self.by_key[life.key]
        self.by_number.pop(life.number, None)
        self._found_again.pop(life.number, None)
        of_job = self.of_job(life.key)
        of_job.remove(life)
        if not of_job:
            del self._of_job[life.key.job, life.key.task]

    def has_before(self, life: JobLife) -> bool:
        """Return whether the life before one is known."""
        return any(other.index == life.index - 1 for other in self.of_job(life.key))

    def is_part(
        self,
        life: JobLife,
        start: int | None,
        observations: Mapping[LifeKey, JobObservation],
        shown: Collection[LifeKey],
    ) -> bool:
        """Return whether a life that started then is a part of a run that is told, or seen, or `shown` to go on."""
        before = (other for other in self.of_job(life.key) if other.key.submit < life.key.submit)
        return any(other.runs_at(start, observations.get(other.key), shown=other.key in shown) for other in before)

    def forget(self, before: int) -> None:
        """Forget what was over before a time. O(lives)."""
        for life in self:
            if not life.open and life.over is not None and life.over < before:
                self.drop(life)

    def end_before(self, life: JobLife) -> int:
        """Return when the life before one was over; its own submission where that is not known."""
        ends = [
            other.over for other in self.of_job(life.key) if other.index == life.index - 1 and other.over is not None
        ]
        return max(ends, default=life.key.submit)
