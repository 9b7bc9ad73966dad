"""The stage: keeps the scores of a run and tells them when it closes."""

from typing import Any

from services.scoreboard.capacity import Capacity
from services.scoreboard.run_time_errors import RunTimeErrors
from services.scoreboard.waits import WaitScores
from services.scoreboard.walltime_accuracy import WalltimeAccuracy
from shared.events import CapacityChanged, ClusterClosed, ClusterOpened, Decided, Envelope, JobEnded, JobSubmitted
from shared.jobs_in_system import RunningJob
from shared.scores import PolicyScores, Scores
from shared.stage import StageHandler


class Scoreboard(StageHandler):
    """One run: sums over the jobs that ended, and the predictions of those that have not."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.waits = WaitScores()
        self.run_times = RunTimeErrors()
        self.accuracy = WalltimeAccuracy()
        self.predicted_times: dict[int, float] = {}
        self.adjusted_times: dict[int, int] = {}
        self.scheduling_points = 0
        self.ended_at_limit = 0
        self.killed = 0
        self.capacity = Capacity()
        self.wasted_processor_seconds = 0

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Keep the predictions until the job ends."""
        self.capacity.begin(job.time, self.processors)
        if envelope.run_time is not None:
            self.predicted_times[job.job_number] = envelope.run_time.point
        if envelope.adjustment is not None:
            self.adjusted_times[job.job_number] = envelope.adjustment.adjusted_time
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Score the job, or count the work that its killing wasted."""
        submitted, started = job
        if ended.outcome == "killed" or ended.requeued:
            self.killed += 1
            self.wasted_processor_seconds += started.processors * ended.run_time
        if ended.requeued:
            return envelope
        self.ended_at_limit += ended.outcome == "limit"
        predicted_time = self.predicted_times.pop(ended.job_number, None)
        adjusted_time = self.adjusted_times.pop(ended.job_number, submitted.requested_time)
        self.run_times.add(predicted_time, submitted.requested_time, ended.run_time)
        if submitted.requested_time is not None and adjusted_time is not None:
            self.accuracy.add(ended.run_time, submitted.requested_time, adjusted_time)
        requested_time = submitted.requested_time or max(ended.run_time, 1)
        self.waits.add(submitted.time, started.time, ended.time, started.processors, requested_time)
        return envelope

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Note how much the machine has from now on."""
        self.capacity.change(changed.time, changed.processors)
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Count the pass."""
        self.scheduling_points += 1
        return envelope

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Add the scores."""
        scores = Scores(
            policy=PolicyScores(
                **self.waits.summary(self.capacity.until(self.waits.last_end)),
                ended_at_limit=self.ended_at_limit,
                killed=self.killed,
                wasted_processor_seconds=self.wasted_processor_seconds,
                scheduling_points=self.scheduling_points,
            ),
            run_time=self.run_times.scores(),
            adjustment=self.accuracy.scores(),
        )
        return envelope.model_copy(update={"scores": scores})

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return super().snapshot() | {
            "waits": self.waits.snapshot(),
            "run_times": self.run_times.snapshot(),
            "accuracy": self.accuracy.snapshot(),
            "predicted_times": list(self.predicted_times.items()),
            "adjusted_times": list(self.adjusted_times.items()),
            "scheduling_points": self.scheduling_points,
            "ended_at_limit": self.ended_at_limit,
            "killed": self.killed,
            "capacity": self.capacity.snapshot(),
            "wasted_processor_seconds": self.wasted_processor_seconds,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        super().restore(state)
        self.waits.restore(state["waits"])
        self.run_times.restore(state["run_times"])
        self.accuracy.restore(state["accuracy"])
        self.predicted_times = dict(state["predicted_times"])
        self.adjusted_times = dict(state["adjusted_times"])
        self.scheduling_points = state["scheduling_points"]
        self.ended_at_limit = state["ended_at_limit"]
        self.killed = state["killed"]
        self.capacity.restore(state["capacity"])
        self.wasted_processor_seconds = state["wasted_processor_seconds"]
