"""A scheduler that is told events, and what it forecast last."""

from typing import Any

from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, JobStarted, JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitForecast
from shadowtime.shared.stages.stage import StageRun


class Asked:
    """A scheduler that is told events, and remembers what it forecast last."""

    def __init__(self, policy: str, processors: int = 10, runtime: str = "requested") -> None:
        self.run = StageRun(next(stage for stage in STAGES if stage.name == "scheduler"))
        spec = configure(policy, runtime)
        self.tell(
            ClusterOpened(time=0, cluster="c", processors=processors, policy=spec.policy, runtime=spec.runtime),
        )

    def tell(self, event: Event, **added: Any) -> Envelope:
        answer = self.run.push(Envelope(run="r", sequence=self.run.sequence + 1, event=event, **added))
        assert answer is not None
        assert answer.event == event
        return answer

    def forecast(
        self, job_number: int, processors: int, seconds: int | None, time: int = 0, point: float | None = None
    ) -> WaitForecast:
        job = JobSubmitted(time=time, job_number=job_number, requested_processors=processors, requested_time=seconds)
        prediction = None if point is None else RunTimePrediction(point=point, observations=2)
        found = self.tell(job, run_time=prediction).forecast
        assert found is not None
        return found

    def start(self, job_number: int, processors: int, time: int = 0) -> None:
        self.tell(JobStarted(time=time, job_number=job_number, processors=processors))
