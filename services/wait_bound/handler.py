"""The stage: adds bounds on the wait to every submission, learns from every wait, and says how the bounds fare."""

from shadowtime.services.wait_bound.bounder import Bounder, Unbounded
from shadowtime.services.wait_bound.futures import FuturesBound
from shadowtime.services.wait_bound.groups import BmbpBounds
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.messages import ClusterOpened, Envelope, Event, JobChanged, JobSubmitted, WaitBound
from shadowtime.shared.spec import Registry, parse
from shadowtime.shared.stages import PredictingStage, RunningJob

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
    """One run: the bound that `ClusterOpened.wait_bound` names."""

    field = "wait_bounds"
    predictor: Bounder

    def __init__(self, opened: ClusterOpened) -> None:
        super().__init__(opened, BOUNDERS.build(parse(opened.wait_bound)))
        self.predictor.observe(opened)

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the bounds, which may go by what was predicted of the run time."""
        self.predictor.foretold(job, envelope.run_time)
        return super().on_submitted(envelope, job)

    def on_wait(self, envelope: Envelope, job: JobSubmitted, wait: int) -> Envelope:
        """Learn the wait; add what it brought to light."""
        self.predictor.learn_one(job, min(wait, MAX_DURATION))
        if not any(self.predictor.updates):
            return envelope
        return envelope.model_copy(update=self.predictor.updates._asdict())

    def on_changed(self, envelope: Envelope, changed: JobChanged, old: JobSubmitted, new: JobSubmitted) -> Envelope:
        """Let the bounds stand that the job was given when it was submitted."""
        return envelope

    def noticed(self, changed: JobChanged, new: JobSubmitted | RunningJob) -> tuple[Event, ...]:
        """Return a change as the bounder sees it: a job that changes queues leaves, and no bound is said of it anew."""
        return (changed,) if changed.queue_number is None else super().noticed(changed, new)[:1]

    def bounds_at(self, job: JobSubmitted, quantile: float, confidence: float) -> tuple[WaitBound, ...]:
        """Return the bounds that a job would have if it were submitted now; none in a run without bounds."""
        return self.predictor.bounds_at(job, self.time, quantile, confidence)
