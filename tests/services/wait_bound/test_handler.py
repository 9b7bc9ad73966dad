"""The stage adds bounds, and learns each wait when it is over: at the start."""

from services.wait_bound.handler import BOUNDERS, WaitBounds
from shared.events import ClusterOpened, Envelope, Event, JobEnded, JobStarted, JobSubmitted
from shared.predictions import WaitBound
from shared.predictor import Silent
from shared.spec import parse


class LongestSoFar(Silent):
    """A bounder that keeps what it has learned."""

    def __init__(self) -> None:
        self.learned: list[tuple[int, int]] = []

    def predict_one(self, x: object) -> tuple[WaitBound, ...]:  # type: ignore[override]
        longest = max((wait for _, wait in self.learned), default=None)
        return (WaitBound(grouping="plain", quantile=0.5, confidence=0.5, bound=longest),)

    def learn_one(self, x: JobSubmitted, y: int) -> None:  # type: ignore[override]
        self.learned.append((x.job_number, y))


def submitted(job_number: int, time: int) -> JobSubmitted:
    return JobSubmitted(time=time, job_number=job_number, requested_processors=1)


def handle(stage: WaitBounds, event: Event) -> Envelope:
    return stage.handle(Envelope(run="r", sequence=1, event=event))


def test_no_bound_is_the_default() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    envelope = Envelope(run="r", sequence=1, event=submitted(1, 0))
    assert stage.handle(envelope) == envelope
    assert BOUNDERS.build(parse("none")).predict_one(submitted(1, 0)) is None


def test_a_wait_is_learned_at_the_start_and_not_again_at_the_end() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = bounder = LongestSoFar()
    assert handle(stage, submitted(1, 10)).wait_bounds[0].bound is None
    handle(stage, JobStarted(time=45, job_number=1, processors=1))
    assert bounder.learned == [(1, 35)]
    handle(stage, JobEnded(time=99, job_number=1, run_time=54))
    assert bounder.learned == [(1, 35)]
    assert handle(stage, submitted(2, 99)).wait_bounds[0].bound == 35


def test_a_requeued_job_waits_from_its_submission_on() -> None:
    stage = WaitBounds(ClusterOpened(time=0, cluster="c", processors=8))
    stage.predictor = bounder = LongestSoFar()
    handle(stage, submitted(1, 10))
    handle(stage, JobStarted(time=20, job_number=1, processors=1))
    handle(stage, JobEnded(time=30, job_number=1, run_time=10, outcome="killed", requeued=True))
    handle(stage, JobStarted(time=70, job_number=1, processors=1))
    assert bounder.learned == [(1, 10), (1, 60)]
