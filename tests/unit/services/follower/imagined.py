"""A cluster that is imagined, and what it shows at a moment: nothing that is only known later."""

from dataclasses import dataclass, replace
from random import Random

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.machine_parts import MachineParts
from shadowtime.shared.messages.machine_capacity import Pool

PARTS = MachineParts((Pool(name="batch", processors=16),), {"batch": 0}, {"n1": 0})
SHOWN = 300
"""Seconds for which a job is shown that is over."""


@dataclass(frozen=True)
class Lived:
    """A life as it was; one that was requeued is no longer shown once the next has begun."""

    key: LifeKey
    index: int
    eligible: int
    start: int | None
    end: int
    limit: int
    gone: int | None = None

    @property
    def number(self) -> int:
        return number_of(self.key.job, None if self.key.task < 0 else self.key.task, self.index)

    def seen(self, at: int, *, accounted: bool = False) -> JobObservation | None:
        """Return what is shown of it at a time, before which all is known; None for nothing."""
        over = self.end < at
        if self.key.submit >= at or (not accounted and (self.gone is not None and self.gone < at)):
            return None
        if not accounted and over and at - self.end > SHOWN:
            return None
        started = self.start is not None and self.start < at
        observation = JobObservation(
            self.key,
            "running" if started else "waiting",
            life=None if accounted else self.index,
            eligible=self.eligible,
            start=self.start if started else None,
            limit=self.limit,
            processors=1 + self.key.job % 4,
            partition="batch",
            user=f"user{self.key.job % 3}",
            job_name=f"name{self.key.job % 5}",
        )
        return replace(observation, state="over", end=self.end, outcome="completed") if over else observation


def lived(seed: int, jobs: int = 40) -> list[Lived]:
    """Return the lives of some jobs, of which some are tasks, are cancelled, or wait anew."""
    random = Random(seed)
    found: list[Lived] = []
    for job in range(1, jobs + 1):
        task = random.choice((-1, -1, 0, 3))
        submit = random.randrange(1, 3_000)
        for index in range(random.choice((1, 1, 1, 2, 3))):
            eligible = submit + random.choice((0, 0, 0, 1, 121))
            start = eligible + random.choice((0, 0, 1, 7, 60, 400))
            end = start + random.choice((0, 1, 3, 30, 600))
            ran = random.random() < 0.85
            submit_next = end + random.choice((0, 1))
            found.append(
                Lived(
                    LifeKey(job, task, submit), index, eligible, start if ran else None, end, random.choice((60, 600))
                )
            )
            if not ran:
                break
            submit = submit_next if submit_next > submit else submit + 1
    by_key = {(life.key.job, life.index): life for life in found}
    after = ((life, by_key.get((life.key.job, life.index + 1))) for life in found)
    return [replace(life, gone=None if later is None else later.key.submit) for life, later in after]
