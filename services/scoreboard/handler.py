"""The stage that keeps the scores of a run, publishes them when the run closes, and samples them if configured."""

from itertools import chain, filterfalse, islice
from typing import Any

from shadowtime.services.scoreboard.all_scores import Tally
from shadowtime.services.scoreboard.figures import figures
from shadowtime.services.scoreboard.sampling import Sampling
from shadowtime.shared.bounds import MAX_FIGURES
from shadowtime.shared.errors import LogViolation
from shadowtime.shared.messages import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    OfJob,
    Rejected,
    RunTimePrediction,
    Sample,
    label,
    moment,
    name_label,
)
from shadowtime.shared.spec import parse
from shadowtime.shared.stages import RunningJob, StageHandler, new_request


class Scoreboard(StageHandler):
    """The scores of one run: sums over ended jobs, and the predictions of jobs that have not ended."""

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened)
        self.tally = Tally()
        self.predictions: dict[int, RunTimePrediction] = {}
        self.adjusted_times: dict[int, int] = {}
        self.sampling = Sampling(opened.sample_every) if opened.sample_every else None

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Answer the event. Add the samples that were due before it; at the close, also the final sample."""
        for revision in envelope.revisions or ():
            self.tally.workload.replace(revision.job_number, revision.point)
        sampling, time = self.sampling, envelope.event.time
        if sampling is None or isinstance(envelope.event, Rejected):
            return super().answer(envelope, known)
        samples = [self._sample(sampling, moment) for moment in sampling.due(self.time, time)]
        output = super().answer(envelope, known)
        if isinstance(envelope.event, ClusterClosed):
            samples.append(self._sample(sampling, time))
        return output.replaced(samples=tuple(samples)) if samples else output

    def _sample(self, sampling: Sampling, time: int) -> Sample:
        return Sample(
            time=self.opened.unix_start + time,
            cluster=name_label(self.opened.cluster),
            policy=label(self.opened.name or parse(self.opened.policy).name),
            experiment=None if self.opened.experiment is None else name_label(self.opened.experiment),
            figures=tuple(islice(figures(self, self.tally, sampling, time), MAX_FIGURES)),
        )

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Keep the predictions of the job until it ends, and its wait bounds and forecast until its wait is known."""
        if not self.tally.capacity.sizes:
            self.tally.capacity.begin(job.since, self.processors)
        if job.eligible_time is not None and job.eligible_time < job.time:
            self.tally.happenings["told_late"] += 1
        if envelope.run_time is not None:
            self.predictions[job.job_number] = envelope.run_time
        self.tally.workload.submit(job.job_number, assumed(envelope.run_time, job))
        if envelope.adjustment is not None:
            self.adjusted_times[job.job_number] = envelope.adjustment.adjusted_time
        if envelope.wait_bounds:
            self.tally.coverage.submit(job.job_number, envelope.wait_bounds)
        if envelope.forecast is not None:
            self.tally.forecasts.submit(job.job_number, envelope.forecast)
            self.tally.starts.submit(job.job_number, envelope.forecast, envelope.wait_bounds)
        if self.opened.mode == "recorded":
            self.tally.expected.submit(job.job_number, envelope.wait_bounds)
        if self.sampling is not None:
            self.sampling.submit(envelope, job)
        return envelope

    def on_withdrawn(self, envelope: Envelope, withdrawn: JobWithdrawn, job: JobSubmitted) -> Envelope:
        """Score the bounds that the job's wait exceeded. Forget its other predictions."""
        number = job.job_number
        self.tally.happenings[withdrawn.reason] += 1
        self._count_late(withdrawn)
        self.predictions.pop(number, None)
        self.tally.workload.withdraw(number)
        self.adjusted_times.pop(number, None)
        waited = moment(withdrawn) - job.since
        self.tally.held.withdraw(job, waited, self.tally.coverage)
        self.tally.coverage.withdraw(number, waited)
        self.tally.forecasts.withdraw(number)
        self.tally.starts.withdraw(number)
        self.tally.expected.withdraw(number)
        self.tally.calibration.withdraw(number)
        return envelope

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Record the new predictions of a waiting job.

        Keep the forecast of its submission. If the queue changes, drop the bounds; those already exceeded are scored.
        """
        if new_request(changed).keys() == {"site_reason"}:
            return envelope
        self.tally.happenings["changed"] += 1
        self._count_late(changed)
        if envelope.run_time is not None:
            self.predictions[new.job_number] = envelope.run_time
            self.tally.workload.replace(new.job_number, envelope.run_time.point)
        if envelope.adjustment is not None:
            self.adjusted_times[new.job_number] = envelope.adjustment.adjusted_time
        if self.sampling is not None:
            self.sampling.queue_of(new.queue_number)
        if new.queue_number != old.queue_number:  # the bounds were for another queue
            waited = envelope.event.time - old.since
            self.tally.held.withdraw(old, waited, self.tally.coverage)
            self.tally.coverage.withdraw(new.job_number, waited)
            self.tally.expected.tables.pop(new.job_number, None)

        return envelope

    def on_running_changed(self, envelope: Envelope, old: RunningJob, new: RunningJob) -> Envelope:
        """Count the change."""
        self.tally.happenings["changed"] += 1
        if isinstance(envelope.event, JobChanged):
            self._count_late(envelope.event)
        return envelope

    def on_expected(self, envelope: Envelope, expected: JobExpected, job: JobSubmitted) -> Envelope:
        """Keep the start that the site's own scheduler expects, until the job starts."""
        self.tally.happenings["expected"] += 1
        self._count_late(expected)
        self.tally.expected.expect(expected)
        return envelope

    def on_suspended(self, envelope: Envelope, suspended: JobSuspended, job: RunningJob) -> Envelope:
        """Count the suspension."""
        self.tally.happenings["suspended"] += 1
        self._count_late(suspended)
        return envelope

    def on_resumed(self, envelope: Envelope, resumed: JobResumed, job: RunningJob) -> Envelope:
        """Count the event if it was reported late."""
        self._count_late(resumed)
        return envelope

    def _count_late(self, event: OfJob) -> None:
        if moment(event) < event.time:
            self.tally.happenings["told_late"] += 1

    def on_started(self, envelope: Envelope, started: JobStarted, job: JobSubmitted) -> Envelope:
        """Record the start for the calibration and the prediction workload."""
        if started.happened is not None:
            self._count_late(started)
        self.tally.workload.start(started.job_number)
        self.tally.calibration.start(started.job_number)
        return envelope

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Score the bounds, forecasts and expected starts of the job. Publish drifts that are pending."""
        tally, number = self.tally, job.job_number
        tally.enter(envelope.event.time, self.jobs.waiting)
        if number in tally.coverage.waiting or number in tally.forecasts.waiting or number in tally.held.outlived:
            tally.held.wait(job, wait, tally.coverage, tally.forecasts.waiting.get(number))
        if number in tally.expected.waiting:
            forecast, bound = tally.forecasts.waiting.get(number), tally.coverage.named(number)
            tally.expected.reveal(number, job.queue_number, job.since + wait, wait, forecast, bound)
        tally.expected.withdraw(number)
        if self.opened.mode == "recorded":
            tally.expected.note_wait(wait)
            if (shown := tally.coverage.named(number)) is not None:
                tally.starts_by.add(job.queue_number, shown, wait)
        tally.coverage.reveal(number, wait)
        tally.forecasts.reveal(number, wait)
        tally.starts.reveal(number, wait)
        if self.sampling is not None:
            self.sampling.reveal(envelope, job, wait)
        return self._with_drifts(envelope)

    def _with_drifts(self, envelope: Envelope) -> Envelope:
        drifts = () if envelope.drifts or not self.tally.held.unpublished else self.tally.held.take_drifts()
        return envelope.replaced(drifts=drifts) if drifts else envelope

    def on_ended(self, envelope: Envelope, ended: JobEnded, job: RunningJob) -> Envelope:
        """Score the job, unless it is requeued. If it was killed or requeued, count its work as wasted."""
        submitted, started = job.submitted, job.started
        self.tally.enter(ended.time, self.jobs.waiting)
        if ended.happened is not None:
            self._count_late(ended)
        actual = None if ended.requeued else ended.run_time
        self.tally.calibration.end(ended.time, ended.job_number, started.processors, actual)
        if ended.outcome == "killed" or ended.requeued:
            self.tally.killed += 1
            self.tally.wasted_processor_seconds += started.processors * ended.run_time
        if ended.requeued:
            self.tally.workload.requeue(ended.job_number)
            return self._with_drifts(envelope)
        self.tally.ended_at_limit += ended.outcome == "limit"
        prediction = self.predictions.pop(ended.job_number, None)
        adjusted_time = self.adjusted_times.pop(ended.job_number, submitted.requested_time)
        self.tally.end(submitted, ended, prediction, adjusted_time)
        run_time = ended.own_run_time
        self.tally.workload.end(ended.job_number, run_time)
        requested_time = submitted.requested_time or max(run_time, 1)
        began, over = moment(started), moment(ended)
        processors, suspended = started.processors, job.stood_still(over)
        self.tally.waits.add(submitted.since, began, over, processors, requested_time, run_time, suspended)
        if self.sampling is not None:
            self.sampling.end(submitted, began - submitted.since, requested_time, run_time)
        return self._with_drifts(envelope)

    def on_capacity(self, envelope: Envelope, changed: CapacityChanged) -> Envelope:
        """Record the new capacity of the machine."""
        self.tally.capacity.change(changed.time, self.processors_after(changed), self.tally.waits.last_end)
        return envelope

    def on_decided(self, envelope: Envelope, decided: Decided) -> Envelope:
        """Count the pass, and record the candidates that it evaluated."""
        if decided.evaluated or decided.starts:
            self._require_waiting(decided)
            self.tally.calibration.decide(decided, self.jobs.waiting, obeyed=self.opened.obeys(decided.time))
        if decided.chosen is not None:
            self.tally.members.decide(decided)
        self.tally.scheduling_points += 1
        self.tally.workload.decide()
        if self.sampling is not None:
            self.sampling.decide(decided)
        return envelope

    def _require_waiting(self, decided: Decided) -> None:
        evaluated = chain.from_iterable([candidate.job_numbers for candidate in decided.evaluated])
        named = chain(evaluated, [start.job_number for start in decided.starts])
        absent = next(filterfalse(self.jobs.waiting.__contains__, named), None)
        if absent is not None:
            raise LogViolation(f"job {absent} was evaluated or started at {decided.time}, but it does not wait")

    def on_closed(self, envelope: Envelope, closed: ClusterClosed) -> Envelope:
        """Add the scores to the answer."""
        return envelope.replaced(scores=self.tally.scores())

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return (
            super().snapshot()
            | self.tally.snapshot()
            | {
                "predictions": [[number, prediction.model_dump()] for number, prediction in self.predictions.items()],
                "adjusted_times": list(self.adjusted_times.items()),
                "sampling": None if self.sampling is None else self.sampling.snapshot(),
            }
        )

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self.tally.restore(state)
        self.predictions = {
            number: RunTimePrediction.model_validate(prediction) for number, prediction in state["predictions"]
        }
        self.adjusted_times = dict(state["adjusted_times"])
        if self.sampling is not None:
            self.sampling.restore(state["sampling"])


def assumed(prediction: RunTimePrediction | None, job: JobSubmitted) -> float | None:
    """Return the predicted run time of a job in seconds, or its request without a prediction; None without both."""
    return job.requested_time if prediction is None else prediction.point
