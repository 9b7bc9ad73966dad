"""The known lives of jobs, indexed by key, number and job."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from shadowtime.services.follower.cluster.job_life import JobLife
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting import LIFE, number_of
from shadowtime.shared.messages import JobSubmitted

FOUND_AGAIN = -2
"""Largest task number of lives that are known only from events of the log. These events do not name the real task."""


MAX_LIVES = 1_000
"""Maximum number of remembered lives of one job."""


class KnownLives:
    """Lives by key, by number and by job. Memory is O(lives that are not forgotten)."""

    def __init__(self) -> None:
        self.by_key: dict[LifeKey, JobLife] = {}
        self.by_number: dict[int, JobLife] = {}
        self._of_job: dict[tuple[int, int], list[JobLife]] = {}
        self._found_again: dict[int, JobLife] = {}

    def __iter__(self) -> Iterator[JobLife]:
        return iter(list(self.by_key.values()))

    def of_job(self, key: LifeKey) -> list[JobLife]:
        """Return all lives of the job of `key`."""
        return self._of_job.get((key.job, key.task), [])

    def in_picture(self, observation: JobObservation, at: int) -> tuple[JobObservation, bool]:
        """Return an observation of the picture at `at` with the key of its life, and whether it is certain.

        An observation is uncertain if its end may be wrong. While Slurm requeues a job, its number of requeues is that
        of the next life, and its times are not those of the ending life. If the job's node did not answer, the next
        life has the same submission time.
        """
        lives = self._with_submission(observation.key)
        known = next((life for life in lives if life.restarts is not None and life.restarts == observation.life), None)
        same = known or next((life for life in lives[-1:] if life.may_be(observation)), None)
        unsure = observation.state == "over" and (
            observation.end is None
            or (observation.end > at and known is None)
            or (observation.end == observation.start and bool(lives) and same is None)  # cancelled while it is requeued
        )
        if not lives:
            return observation, not unsure
        same = same or (lives[-1] if unsure else None)
        key = lives[-1].key._replace(again=len(lives)) if same is None else same.key
        return replace(observation, key=key) if key != observation.key else observation, not unsure

    def in_accounting(self, observation: JobObservation, seen: Mapping[LifeKey, JobObservation]) -> JobObservation:
        """Return an observation of accounting with the key of its life. `seen` has the last observation of each life.

        Accounting has one row for all lives with the same submission time. It is overwritten when a later life starts.
        A row with equal start and end then has the start of the later life and the end of the earlier one. The known
        start of the earlier life replaces that of the row.
        """
        lives = self._with_submission(observation.key)
        if not lives:
            return observation
        if observation.state != "over":
            return replace(observation, key=lives[-1].key)

        def start_of(life: JobLife) -> int | None:
            other = seen.get(life.key)
            return life.started if life.started is not None or other is None else other.start

        same = next(
            (life for life in lives if start_of(life) is not None and start_of(life) == observation.start), None
        )
        if same is None:
            same = next((life for life in lives if life.open), lives[-1])
            if observation.start == observation.end and start_of(same) is not None:
                observation = replace(observation, start=start_of(same), run_time=None)
        return replace(observation, key=same.key)

    def _with_submission(self, key: LifeKey) -> list[JobLife]:
        return sorted(
            (life for life in self.of_job(key) if life.key.submit == key.submit), key=lambda life: life.key.again
        )

    def too_many(self, key: LifeKey) -> bool:
        """Return whether the job of a key has `MAX_LIVES` lives already, as a job that scrontab runs every minute.

        The limit bounds the cost, because each life is compared with all other lives of its job.
        """
        return len(self.of_job(key)) >= MAX_LIVES

    def new(self, observation: JobObservation) -> JobLife:
        """Add and return the life of a first observation.

        The new life follows the known lives of its job, but precedes lives with later submissions. A life that is
        known from events of the log is not added again. It gets its true key instead.
        """
        job, task, submit, _ = observation.key
        of_job = self.of_job(observation.key)
        later = [other.index for other in of_job if other.key > observation.key]
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
        """Return the sort key by which new lives are added: ascending by submission.

        Lives that were submitted before a known life of the same job come first, in descending order, because each
        takes the number before that life.
        """
        submit = observation.key.submit
        before = any(other.key.submit > submit for other in self.of_job(observation.key))
        return (0, -submit) if before else (1, submit)

    def found_again(self, event: JobSubmitted) -> JobLife:
        """Add and return a life that is known only from its events. `new` replaces its key at the first observation."""
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
        """Return whether the previous life of the same job is known."""
        return any(other.index == life.index - 1 for other in self.of_job(life.key))

    def is_part(
        self,
        life: JobLife,
        start: int | None,
        observations: Mapping[LifeKey, JobObservation],
        shown: Collection[LifeKey],
    ) -> bool:
        """Return whether a life that started at `start` is part of the run of an earlier life of its job.

        `observations` has the last observation of each life, and `shown` has the lives in the last picture; see
        `JobLife.runs_at`. A life with the start None is no part.
        """
        before = (other for other in self.of_job(life.key) if other.key.submit < life.key.submit)
        return any(other.runs_at(start, observations.get(other.key), shown=other.key in shown) for other in before)

    def forget(self, before: int) -> None:
        """Drop the lives that were over before a time. O(lives)."""
        for life in self:
            if not life.open and life.over is not None and life.over < before:
                self.drop(life)

    def end_before(self, life: JobLife) -> int:
        """Return the end of the previous life. If that end is unknown, return the submission time of `life`."""
        ends = [
            other.over for other in self.of_job(life.key) if other.index == life.index - 1 and other.over is not None
        ]
        return max(ends, default=life.key.submit)
