"""A scheduler that tests tell what happens."""

import copy
from collections.abc import Sequence

from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.shared.messages.decisions import Start
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WalltimeAdjustment
from shadowtime.shared.messages.reasons import Backfilled
from shadowtime.shared.stages.stage import StageRun


def uses(**switches: str) -> str:
    """Return the keys of a policy that makes these uses of adjusted requests, and no others."""
    off = {"adjust_queue": "no", "adjust_candidates": "no", "running": "no", "distribution": "ignore"}
    return ",".join(f"{key}={value}" for key, value in (off | switches).items())


def with_keys(policy: str, keys: str) -> str:
    """Return the SPEC of a policy with more keys."""
    return f"{policy}{',' if ':' in policy else ':'}{keys}" if keys else policy


UNUSED = uses()
REGULAR = uses(adjust_queue="yes", adjust_candidates="yes", running="yes", distribution="limit")
SELECTIVE = uses(adjust_queue="yes", adjust_candidates="yes", distribution="limit")
"""As Tang 2013, section 5.2, names its schemes."""


class Told:
    """A scheduler that is told events one by one."""

    def __init__(self, processors: int = 10, policy: str = "easy", keys: str = "", begin: int = 0) -> None:
        self.run = StageRun(next(stage for stage in STAGES if stage.name == "scheduler"))
        self.tell(ClusterOpened(time=begin, cluster="c", processors=processors, policy=with_keys(policy, keys)))

    @property
    def scheduler(self) -> PoolScheduler:
        assert isinstance(self.run.handler, Scheduler)
        (pool,) = self.run.handler.pools
        return pool

    @property
    def queue(self) -> list[int]:
        numbers: list[int] = self.scheduler.queue.job_number.tolist()
        return numbers

    def tell(
        self, event: Event, prediction: RunTimePrediction | None = None, adjustment: WalltimeAdjustment | None = None
    ) -> Event:
        sequence = self.run.sequence + 1
        envelope = Envelope(run="r", sequence=sequence, event=event, run_time=prediction, adjustment=adjustment)
        answer = self.run.push(envelope)
        assert answer is not None
        assert (answer.run_time, answer.adjustment) == (prediction, adjustment)
        return answer.event

    def submit(
        self,
        job_number: int,
        processors: int,
        seconds: int | None,
        time: int = 0,
        point: float | None = None,
        adjusted: int | None = None,
        histogram: tuple[float, ...] = (),
    ) -> None:
        job = JobSubmitted(time=time, job_number=job_number, requested_processors=processors, requested_time=seconds)
        prediction = None if point is None else RunTimePrediction(point=point, observations=2, histogram=histogram)
        adjustment = (
            None if adjusted is None else WalltimeAdjustment(adjusted_time=adjusted, observations=12, percentile=80)
        )
        assert self.tell(job, prediction, adjustment) == job

    def start(self, job_number: int, processors: int, time: int = 0, limit: int | None = None) -> None:
        self.tell(JobStarted(time=time, job_number=job_number, processors=processors, limit=limit))

    def end(self, job_number: int, time: int, *, requeued: bool = False) -> None:
        self.tell(JobEnded(time=time, job_number=job_number, run_time=0, requeued=requeued))

    def starts(self, time: int) -> Sequence[Start]:
        decided = self.tell(SchedulingPoint(time=time))
        assert isinstance(decided, Decided)
        assert decided.time == time
        assert decided.kills == ()
        return decided.starts

    def restarted(self) -> "Told":
        """Return another scheduler, which goes on from a snapshot of this one."""
        again = copy.copy(self)
        again.run = StageRun(self.run.stage)
        again.run.restore(self.run.snapshot())
        return again

    def shadow_time(self, time: int) -> int | None:
        """Return the shadow time behind which job 3 is backfilled."""
        (start,) = self.starts(time)
        assert start.job_number == 3
        assert isinstance(start.reason, Backfilled)
        return start.reason.shadow_time

    def numbers(self, time: int) -> list[int]:
        return [each.job_number for each in self.starts(time)]
