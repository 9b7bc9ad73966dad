"""The stage: keeps the picture of the machine and answers every scheduling point with a `Decided`.

The picture changes only on `JobSubmitted`, `JobStarted`, `JobEnded` and `CapacityChanged`, never on a decision: what
was decided is true once the machine has said so.
"""

from typing import Any

from shadowtime.services.scheduler.adaptation import shape_of
from shadowtime.services.scheduler.adjusted_prior import reweighted
from shadowtime.services.scheduler.adjusted_times import planned_times
from shadowtime.services.scheduler.expected_end import CORRECTIONS
from shadowtime.services.scheduler.histograms import Histograms
from shadowtime.services.scheduler.job_table import (
    ADJUSTED,
    NEVER,
    REQUESTED,
    SHORTENED,
    SIZE,
    Queue,
    Running,
)
from shadowtime.services.scheduler.policies import POLICIES
from shadowtime.shared.decisions import Chosen, CutShort, Evaluated, Kill, Start
from shadowtime.shared.events import (
    ClusterOpened,
    Decided,
    Envelope,
    JobChanged,
    JobEnded,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
    moment,
)
from shadowtime.shared.jobs_in_system import RunningJob
from shadowtime.shared.spec import parse
from shadowtime.shared.stage_handler import StageHandler


class Scheduler(StageHandler):
    """One run: the policy that `ClusterOpened.policy` names."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.policy = POLICIES.build(parse(opened.policy))
        self.policy.open(opened)
        self.forecaster = self.policy.forecaster()
        self.histograms = Histograms()
        settings = self.policy.settings
        self.queue = Queue(self.histograms, settings)
        self.running = Running(CORRECTIONS[settings.fallback], self.histograms, settings)
        self.reshaped: dict[int, tuple[int, ...]] = {}
        """Rows, as they were in the queue, of the jobs that run on other sizes than they requested."""
        self.suspended: dict[int, tuple[int, ...]] = {}
        """Rows, as they were among the running jobs, of those that are suspended."""
        self.used = 0

    def handle(self, envelope: Envelope) -> Envelope:
        """Let the policy see every event, then answer it."""
        output = super().handle(envelope)
        noticed = self.noticed(envelope.event) if isinstance(envelope.event, JobChanged) else (envelope.event,)
        for event in noticed:
            self.policy.observe(event)
            if self.forecaster:
                self.forecaster.observe(event)
        return output

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Queue the job with what is predicted of it and its adjusted request; forecast its wait where asked to."""
        requested_time = NEVER if job.requested_time is None else job.requested_time
        prediction, adjustment = envelope.run_time, envelope.adjustment
        histogram = () if prediction is None else prediction.histogram
        if self.policy.settings.distribution == "prior":
            histogram = reweighted(histogram, requested_time, adjustment)
        times = planned_times(requested_time, prediction, adjustment)
        if prediction is not None and (fraction := prediction.point - times.predicted_time) > 0 and fraction < 1:
            self.queue.fractions[job.job_number] = fraction
        slot = self.histograms.add(histogram)
        self.queue.add((job.job_number, job.since, job.requested_processors, *times, slot))
        if self.forecaster is None:
            return envelope
        free = self.processors - self.used
        forecast = self.forecaster.forecast(job.time, self.queue, self.running, free, job.job_number)
        return envelope.model_copy(update={"forecast": forecast})

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Take the job out of the queue."""
        *_, slot = self.queue.remove(job.job_number)
        self.histograms.remove(slot)
        self.queue.fractions.pop(job.job_number, None)
        return envelope

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Give the job what it holds from now on; no time that it is planned with is longer than it may run."""
        number, processors = new.submitted.job_number, new.started.processors
        suspended = number in self.suspended
        row = list(self.suspended[number] if suspended else self.running.remove(number))
        if not suspended:
            self.used += processors - row[SIZE]
        row[SIZE] = processors
        if (limit := new.started.limit) is not None and limit != old.started.limit:
            row[ADJUSTED : SHORTENED + 1] = [min(each, limit) for each in row[ADJUSTED : SHORTENED + 1]]
            row[REQUESTED] = limit
        if suspended:
            self.suspended[number] = tuple(row)
        else:
            self.running.add(tuple(row))
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Free the processors of the job for a while."""
        row = self.suspended[suspended.job_number] = self.running.remove(suspended.job_number)
        self.used -= row[SIZE]
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Give the job its processors back, as one that started later by as long as it stood still."""
        *row, _ = self.suspended.pop(resumed.job_number)
        self.running.add((*row, moment(job.started) + job.stood_still(moment(resumed))))
        self.used += row[SIZE]
        return envelope

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Move the job to the running ones; on another size it takes another time."""
        row = self.queue.remove(started.job_number)
        number, submit_time, requested, *times, slot = row
        if started.processors != requested and job.moldable:
            self.reshaped[number] = row
            times = [shape_of(job, started.processors).seconds(each) for each in times]
        self.running.add((number, submit_time, started.processors, *times, slot, moment(started)))
        self.used += started.processors
        return envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Free the job's processors; a requeued job waits again where it waited before."""
        if ended.job_number in self.suspended:
            number, submit_time, _, *times, slot, _ = self.suspended.pop(ended.job_number)
        else:
            number, submit_time, processors, *times, slot, _ = self.running.remove(ended.job_number)
            self.used -= processors
        as_queued = self.reshaped.pop(number, None)
        if not ended.requeued:
            self.histograms.remove(slot)
            self.queue.fractions.pop(number, None)
        elif as_queued is not None:
            self.queue.add(as_queued)
        else:
            self.queue.add((number, submit_time, job.submitted.requested_processors, *times, slot))
        return envelope

    def on_scheduling_point(self, envelope: Envelope, point: SchedulingPoint) -> Envelope:
        """Put a `Decided` in the place of the scheduling point."""
        decisions = self.policy.schedule(point.time, self.queue, self.running, self.processors - self.used)
        if decisions:
            starts = tuple(each for each in decisions if isinstance(each, Start))
            kills = tuple(each for each in decisions if isinstance(each, Kill))
            evaluated = tuple(each for each in decisions if isinstance(each, Evaluated))
            cut = tuple(each for each in decisions if isinstance(each, CutShort)) or None
            chosen = [each for each in decisions if isinstance(each, Chosen)]
            if len(starts) + len(kills) + len(evaluated) + len(cut or ()) + len(chosen) < len(decisions):
                raise TypeError("a policy decides starts and kills, and tells what it evaluated")
            told = {"evaluated": evaluated, "cut_short": cut, "chosen": chosen[-1] if chosen else None}
            decided = Decided(time=point.time, starts=starts, kills=kills, **told)
        else:
            decided = Decided(time=point.time)
        return envelope.model_copy(update={"event": decided})

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return super().snapshot() | {
            "policy": self.policy.snapshot(),
            "histograms": self.histograms.snapshot(),
            "queue": self.queue.snapshot(),
            "fractions": list(self.queue.fractions.items()),
            "running": self.running.snapshot(),
            "suspended": list(self.suspended.values()),
            "reshaped": list(self.reshaped.values()),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on what `snapshot` returned."""
        super().restore(state)
        self.policy.restore(state["policy"])
        self.histograms.restore(state["histograms"])
        self.queue.restore(state["queue"])
        self.queue.fractions = dict(state.get("fractions", ()))
        self.running.restore(state["running"])
        self.reshaped = {number: (number, *rest) for number, *rest in state["reshaped"]}
        self.suspended = {number: (number, *rest) for number, *rest in state.get("suspended", ())}
        self.used = int(self.running.processors.sum())
