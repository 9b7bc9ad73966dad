"""A first stage that knows the future, for tests and benchmarks only: every prediction is the actual run time."""

from collections.abc import Mapping

import numpy as np

from shadowtime.replayer.logs.workload import Workload
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.stages.handler import StageHandler
from shadowtime.shared.stages.stage import Stage


class Clairvoyant(StageHandler):
    """One run in which run times are known in advance, ended at requests."""

    def __init__(self, opened: ClusterOpened, run_times: Mapping[int, int]) -> None:
        super().__init__(opened)
        self.run_times = run_times

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the actual run time."""
        known = RunTimePrediction(point=self.run_times[job.job_number], observations=0)
        return envelope.model_copy(update={"run_time": known})


def clairvoyant_stages(workload: Workload) -> list[Stage]:
    """Return the data flow, its predictor replaced."""
    first, *others = STAGES
    columns = workload.columns
    ended = np.minimum(columns["run_time"], columns["requested_time"])
    run_times = dict(zip(columns["job_number"].tolist(), ended.tolist(), strict=True))
    return [Stage(first.name, first.reads, first.writes, lambda opened: Clairvoyant(opened, run_times)), *others]
