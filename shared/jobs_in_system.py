"""The jobs that wait or run, and the rules that their events keep."""

from typing import Any, NamedTuple

from shadowtime.shared.bounds import MAX_LIVE_JOBS
from shadowtime.shared.errors import RuleBroken
from shadowtime.shared.events import JobEnded, JobStarted, JobSubmitted


class RunningJob(NamedTuple):
    """A running job as it was submitted and started."""

    submitted: JobSubmitted
    started: JobStarted


class JobsInSystem:
    """Waiting and running jobs by number; memory is bounded by the jobs in the system.

    The methods named after a question only check and look up; `submit`, `start` and `end` change.
    """

    def __init__(self) -> None:
        self.waiting: dict[int, JobSubmitted] = {}
        self.running: dict[int, RunningJob] = {}

    def require_new(self, event: JobSubmitted) -> None:
        """Raise `RuleBroken` if the job is in the system already, or the system is full."""
        if event.job_number in self.waiting or event.job_number in self.running:
            state = "waiting" if event.job_number in self.waiting else "running"
            raise RuleBroken(f"job {event.job_number} submitted at {event.time} is already {state}")
        if len(self.waiting) + len(self.running) >= MAX_LIVE_JOBS:
            raise RuleBroken(
                f"job {event.job_number} submitted at {event.time} is one too many: "
                f"{len(self.waiting):,} wait and {len(self.running):,} run, at most {MAX_LIVE_JOBS:,} in all"
            )

    def require_waiting(self, event: JobStarted) -> JobSubmitted:
        """Return the waiting job that starts, or raise `RuleBroken`."""
        job = self.waiting.get(event.job_number)
        if job is None:
            known = "runs already" if event.job_number in self.running else "was never submitted"
            raise RuleBroken(f"job {event.job_number} started at {event.time} {known}")
        return job

    def require_running(self, event: JobEnded) -> RunningJob:
        """Return the running job that ends, or raise `RuleBroken`."""
        job = self.running.get(event.job_number)
        if job is None:
            known = "never started" if event.job_number in self.waiting else "was never submitted"
            raise RuleBroken(f"job {event.job_number} ended at {event.time} {known}")
        return job

    def submit(self, event: JobSubmitted) -> None:
        """Add a job to those that wait."""
        self.waiting[event.job_number] = event

    def start(self, event: JobStarted) -> None:
        """Move a job from waiting to running."""
        self.running[event.job_number] = RunningJob(self.waiting.pop(event.job_number), event)

    def end(self, event: JobEnded) -> None:
        """Take a job out, or back to those that wait if it was requeued."""
        job = self.running.pop(event.job_number)
        if event.requeued:
            self.waiting[event.job_number] = job.submitted

    def snapshot(self) -> dict[str, Any]:
        """Return the jobs as plain values, in the order in which they came."""
        return {
            "waiting": [job.model_dump() for job in self.waiting.values()],
            "running": [[job.submitted.model_dump(), job.started.model_dump()] for job in self.running.values()],
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Take on the jobs that `snapshot` returned."""
        waiting = [JobSubmitted.model_validate(job) for job in state["waiting"]]
        running = [
            RunningJob(JobSubmitted.model_validate(submitted), JobStarted.model_validate(started))
            for submitted, started in state["running"]
        ]
        self.waiting = {job.job_number: job for job in waiting}
        self.running = {job.submitted.job_number: job for job in running}
