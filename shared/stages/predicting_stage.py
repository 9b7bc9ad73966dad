"""A stage that adds one predictor's output to every submission."""

from typing import Any, ClassVar

from shadowtime.shared.messages import ClusterOpened, Envelope, Event, JobChanged, JobExpected, JobSubmitted, Rejected
from shadowtime.shared.quoting import quote
from shadowtime.shared.stages.handler import StageHandler, left
from shadowtime.shared.stages.jobs_in_system import RunningJob, only_priority
from shadowtime.shared.stages.predictor import Passthrough, Predictor


class PredictingStage(StageHandler):
    """The handler of one predictor in one run. It fills the field `field` of the envelope with an object of `answers`.

    A subclass lets the predictor learn, in `on_wait` or `on_ended`.
    """

    field: ClassVar[str]
    answers: ClassVar[type]

    def __init__(self, opened: ClusterOpened, predictor: Predictor[JobSubmitted, Any, Any]) -> None:
        super().__init__(opened)
        self.predictor = predictor
        self.passthrough = type(predictor).predict_one is Passthrough.predict_one

    def answer(self, envelope: Envelope, known: Any) -> Envelope:
        """Answer the event, then let the predictor observe it, except for a `Rejected` or a `JobExpected`."""
        output = super().answer(envelope, known)
        event = envelope.event
        if type(event) is JobChanged:
            for seen in self.noticed(event, known[1]):
                self.predictor.observe(seen)
        elif type(event) is not Rejected and type(event) is not JobExpected:
            self.predictor.observe(event)

        return output

    def on_submitted(self, envelope: Envelope, job: JobSubmitted) -> Envelope:
        """Add the prediction, if there is one."""
        prediction = self.predicted(job)
        return envelope if prediction is None else envelope.replaced(**{self.field: prediction})

    def predicted(self, job: JobSubmitted) -> Any:
        """Return the prediction for a job as it is published; None if there is none.

        Raise `TypeError` if the predictor, which may be a plug-in, returned neither None nor an object of `answers`.
        """
        prediction = self.predictor.predict_one(job)
        if prediction is not None and not isinstance(prediction, self.answers):
            raise TypeError(
                f"{type(self.predictor).__name__}.predict_one: expected {self.answers.__name__} or None; "
                f"found {quote(repr(prediction))}"
            )
        return None if prediction is None else self.bounded(prediction, job)

    def bounded(self, prediction: Any, job: JobSubmitted) -> Any:
        """Return a prediction as it is published: what a plug-in predicts beyond the request is cut to the request."""
        return prediction.within_request(job.requested_time)

    def noticed(self, changed: JobChanged, new: JobSubmitted | RunningJob) -> tuple[Event, ...]:
        """Return the events by which the predictor observes a change; `new` is the changed job.

        The predictor knows no changes of waiting jobs. It sees the job leave the queue, and enter it with its new
        request. A change of only the priority or the site's reason gives no event.
        """
        if isinstance(new, RunningJob):
            return (changed,)
        return () if only_priority(changed) else (left(changed), new)

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain values."""
        return super().snapshot() | {"predictor": self.predictor.snapshot()}

    def restore(self, state: dict[str, Any]) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self.predictor.restore(state["predictor"])
