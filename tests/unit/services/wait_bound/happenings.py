"""Jobs of a queue, and what happens to them in its order."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator

from shadowtime.services.wait_bound.wait_history import WaitHistory
from shadowtime.shared.distributions import unpacked_numbers
from shadowtime.shared.messages.envelope import JobSubmitted


class Happening(NamedTuple):
    """The submission of a job, or its start if there is a wait."""

    time: int
    job: JobSubmitted
    wait: int | None


def happenings(jobs: Sequence[tuple[JobSubmitted, int]]) -> list[Happening]:
    """Return submissions and starts in order of time; of an instant, submissions first, as in a recorded replay."""
    submitted = [(job.time, 0, place, Happening(job.time, job, None)) for place, (job, _) in enumerate(jobs)]
    started = [(job.time + wait, 1, k, Happening(job.time + wait, job, wait)) for k, (job, wait) in enumerate(jobs)]
    return [each[-1] for each in sorted(submitted + started, key=lambda each: each[:3])]


def made(count: int, seed: int = 1, gap: int = 60, queues: int = 1) -> list[tuple[JobSubmitted, int]]:
    """Return jobs with waits that depend on sizes and requests, and shift for good now and then."""
    chance = Generator(PCG64([seed]))
    jobs, level = [], 3.0
    for number in range(1, count + 1):
        if chance.random() < 0.004:
            level = float(chance.uniform(0, 8))
        processors, request = int(chance.choice([1, 2, 8, 32, 100])), int(chance.choice([0, 600, 3600, 86_400]))
        center = level + 0.01 * processors + (request > 3000)
        queue = int(chance.integers(0, queues + 1))
        job = JobSubmitted(
            time=number * gap,
            job_number=number,
            requested_processors=processors,
            requested_time=request or None,
            queue_number=queue or None,
        )
        jobs.append((job, int(np.expm1(max(center + 1.5 * chance.standard_normal(), 0)))))
    return jobs


def waits_of(history: WaitHistory) -> list[int]:
    """Return the waits of a history, oldest first."""
    waits: list[int] = unpacked_numbers(history.snapshot()).tolist()
    return waits
