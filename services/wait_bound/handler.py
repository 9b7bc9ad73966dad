"""The stage that adds bounds to every submission, learns from every wait, and publishes the coverage of the bounds."""

from typing import Any

from shadowtime.services.wait_bound.bounder import Bounder, Unbounded
from shadowtime.services.wait_bound.futures import FuturesBound
from shadowtime.services.wait_bound.groups import BmbpBounds
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    Event,
    JobChanged,
    JobSubmitted,
    Side,
    WaitBound,
    WaitRanges,
)
from shadowtime.shared.spec import Price, Registry, parse
from shadowtime.shared.stages import BoundDoubt, PredictingStage, RunningJob, doubt_of

BOUNDERS: Registry[Bounder] = Registry(
    "wait bound",
    [
        Unbounded,
        BmbpBounds,
        FuturesBound,
    ],
    group="bounders",
    base=Bounder,
)


class WaitBounds(PredictingStage):
    """Wait bounds of one run, by the bounder that `ClusterOpened.wait_bound` names."""

    field = "wait_bounds"
    answers = tuple
    predictor: Bounder

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, BOUNDERS.build(parse(opened.wait_bound)))
        self.predictor.observe(opened)

    @staticmethod
    def price(opened: ClusterOpened) -> Price:
        """Return the upper limit of memory and work for the wait bound of a run."""
        return BOUNDERS.price(parse(opened.wait_bound))

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Take over the run times that were predicted anew, then answer the event.

        Add the ranges of processors if the predictor cut them anew as it observed this submission.
        """
        if envelope.revisions:
            self.predictor.note_revisions(envelope.revisions)
        output = super().answer(envelope, known)
        if type(envelope.event) is JobSubmitted and self.predictor.updates.wait_ranges is not None:
            output = output.model_copy(update={"wait_ranges": self.predictor.updates.wait_ranges})
        return output

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the bounds, which may use the predicted run time."""
        self.predictor.note_prediction(job, envelope.run_time)
        return super().on_submitted(envelope, job)

    def bounded(self, prediction: Any, job: JobSubmitted) -> Any:
        """Return bounds as they are: a wait has no request."""
        return prediction

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Learn the wait. Add the coverage and the change points that are due to be published."""
        self.predictor.learn_one(job, min(wait, MAX_DURATION))
        updates = self.predictor.updates
        if not any(updates):
            return envelope
        return envelope.model_copy(update={"coverage": updates.coverage, "change_points": updates.change_points})

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Return the envelope as it is: a job keeps the bounds of its submission."""
        return envelope

    def noticed(self, changed: JobChanged, new: JobSubmitted | RunningJob) -> tuple[Event, ...]:
        """Return the event by which the bounder observes a change.

        A waiting job that changes its queue is observed as withdrawn, and gets no new bound.
        """
        return (changed,) if changed.queue_number is None else super().noticed(changed, new)[:1]

    def bounds_at(
        self, job: JobSubmitted, quantile: float, confidence: float, side: Side = "upper"
    ) -> tuple[WaitBound, ...]:
        """Return the bounds for a job as if it were submitted now; empty in a run without bounds on this side."""
        if side == "upper":
            return self.predictor.bounds_at(job, self.time, quantile, confidence)
        return self.predictor.sided_bounds_at(job, self.time, quantile, confidence, side)

    def ranges_at(self, job: JobSubmitted) -> tuple[WaitRanges, ...]:
        """Return the ranges of processors behind the bounds for a job; empty in a run without them."""
        return self.predictor.ranges_at(job)

    def doubt_at(self, bound: WaitBound) -> BoundDoubt | None:
        """Compare a bound of `bounds_at` with the waits of waiting jobs; None if their bounds are unknown. O(jobs)."""
        issued = self.predictor.issued(bound.grouping, bound.queue)
        if issued is None or issued.quantile != bound.quantile:
            return None
        waits = (
            (self.time - job.since, issued.bound_of(number))
            for number, job in self.jobs.waiting.items()
            if bound.queue is None or job.queue_number == bound.queue
        )
        return doubt_of(bound, waits, issued.revealed, issued.covered)
