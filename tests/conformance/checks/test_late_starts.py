"""A start that is published late counts from its true time."""

from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.services.catalogue import REGISTRIES, canonical
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.slurm.priority import Priorities
from shadowtime.services.scheduler.slurm.settings import SlurmSettings
from shadowtime.services.scheduler.tuned.job_log import JobLog
from shadowtime.services.wait_bound.futures.jobs_in_system import JobsThere
from shadowtime.shared.messages import Event, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.spec import parse

JOB = JobSubmitted(time=0, job_number=1, requested_processors=4, requested_time=600, user_id=1)
OTHER = JobSubmitted(time=100, job_number=2, requested_processors=1, requested_time=600, user_id=2)
ON_TIME = JobStarted(time=40, job_number=1, processors=4, limit=600)
LATE = JobStarted(time=100, job_number=1, processors=4, limit=600, happened=40)


def hidden_markov(start: Event) -> Any:
    predictor: Any = REGISTRIES["runtime"].build(parse(canonical("runtime", "hmm:evidence=unfinished")))
    for event in (JOB, start, OTHER):
        predictor.observe(event)
    return predictor.snapshot()["started"]


def futures(start: JobStarted) -> Any:
    jobs = JobsThere()
    jobs.submit(JOB, ())
    jobs.start(start)
    return [array.tolist() for array in jobs.running(200)]


def tuned(start: Event) -> Any:
    log = JobLog([], (), PolicySettings(), 10)
    for event in (JOB, start):
        log.observe(event)
    return [update.started for update in log.news[1]]


def slurm_usage(start: Event) -> Any:
    priorities = Priorities(SlurmSettings(), 100, 0)
    for event in (JOB, start, OTHER, JobEnded(time=200, job_number=1, run_time=160, outcome="completed")):
        priorities.notice(event)
    return priorities.snapshot()["shares"]


@pytest.mark.parametrize("state", [hidden_markov, futures, tuned, slurm_usage])
def test_a_late_start_counts_from_its_true_time(state: Callable[[Event], Any]) -> None:
    assert state(LATE) == state(ON_TIME)
