"""Advice before submission: how long a job would run, when it would start, and alternatives to its request."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from pydantic import Field

from shadowtime.services.processes.ask.alternatives import Alternative, AlternativeShape, marked, risk_of, shapes
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.questions import LOG_AGE, RunName, Share, log_age
from shadowtime.shared.distributions import mean_run_time, quantile_of
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages import (
    Count,
    FrozenModel,
    JobSubmitted,
    Probability,
    Processors,
    Request,
    RunTimePrediction,
    WaitBound,
    Whole,
    ratio,
)
from shadowtime.shared.stages import AdvisedStart as Start
from shadowtime.shared.stages import BoundsWaits, ForecastsStarts, PredictsRunTimes, StageHandler, StageRun

RUN_TIME_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class AdviceQuestion(FrozenModel):
    """A job that you could submit now, and the risk of being cut that you would accept."""

    cluster: str = Field(min_length=1, max_length=200, description="the cluster, by name")
    processors: Processors = Field(description="processors that the job requests")
    requested_time: Request = Field(description="seconds that the job requests")
    queue: Whole | None = Field(default=None, description="number of the queue that the job enters")
    user: Whole | None = Field(default=None, description="number of the user who submits it")
    group: Whole | None = Field(default=None, description="number of the user's group")
    executable: Whole | None = Field(default=None, description="number of what it executes")
    risk: Share = Field(default=0.05, description="probability of being cut that the advised alternative has at most")
    moldable: bool = Field(default=False, description="whether it could run on other sizes, with the same work")
    run: RunName | None = Field(
        default=None, description="a run of the cluster; by default the followed run, or else that of the latest event"
    )

    def job(self, time: int, shape: AlternativeShape) -> JobSubmitted:
        """Return the job in the given shape, as if it were submitted at `time`, in seconds."""
        return JobSubmitted(
            time=time,
            job_number=0,
            requested_processors=shape.processors,
            requested_time=shape.requested_time,
            user_id=self.user,
            group_id=self.group,
            executable_number=self.executable,
            queue_number=self.queue,
        )


class AsOf(FrozenModel):
    """The position up to which a stage's state was read."""

    stage: str = Field(description="the stage")
    sequence: Count = Field(description="number of the last event in its state")
    time: Whole = Field(description="time of that event, in seconds on the cluster's own time line")


class RunTime(FrozenModel):
    """The predicted run time of the job if it is not cut."""

    mean: float | None = Field(description="mean in seconds; null where no distribution is predicted")
    quantiles: tuple[tuple[Probability, float], ...] = Field(
        description="probabilities, and the seconds within which it ends with them"
    )
    cut: Probability | None = Field(description="probability of being cut at its request")
    observations: Count = Field(description="ended jobs behind it")
    reason: str | None = Field(default=None, description="why there is no distribution")


class Advice(FrozenModel):
    """The run time of the job, bounds on its wait, and alternatives to it. The first is the job as asked about."""

    cluster: str = Field(description="the cluster, by name")
    run: str = Field(description="the run behind the answer")
    as_of: tuple[AsOf, ...] = Field(description="up to where the state of each stage was read")
    run_time: RunTime = Field(description="how long it would run")
    bounds: tuple[WaitBound, ...] = Field(description="bounds on its wait; none in a run that bounds none")
    alternatives: tuple[Alternative, ...] = Field(description="ways to ask for it, with the same work")
    log_age: Whole | None = Field(default=None, description=LOG_AGE)


class Advising:
    """Adviser on jobs, from the states of three stages. `as_of` has a position for each state, as each is read alone.

    Parameters
    ----------
    run_times, bounds, starts
        The answers of stages `runtime_distribution`, `wait_bound` and `scheduler`.
    """

    def __init__(self, run_times: Answers, bounds: Answers, starts: Answers) -> None:
        self._run_times, self._bounds, self._starts = run_times, bounds, starts

    async def advise(self, question: AdviceQuestion) -> Advice:
        """Return the advice.

        Raises
        ------
        Unanswerable
            If there is no such cluster or run, or the machine is smaller than the job.
        StoreError, SnapshotMismatch
            If a stored state cannot be read.
        """
        run = await self._starts.run_of(question.cluster, question.run)
        own = AlternativeShape(question.processors, question.requested_time)
        predicted, run_time, asked, first = await self._run_times.of_run(run, partial(_run_times, question, own))
        starts, second, age = await self._starts.of_run(run, partial(_starts, asked))
        bounds, third = await self._bounds.of_run(run, partial(_bounds, question.job(0, own)))
        choices = [alternative(own, job, start, predicted) for (job, _), start in zip(asked, starts, strict=True)]
        return Advice(
            cluster=question.cluster,
            run=run,
            as_of=(first, third, second),
            run_time=run_time,
            bounds=bounds,
            alternatives=marked(choices, question.risk),
            log_age=age,
        )


def run_time_told(prediction: RunTimePrediction | None, requested_time: int) -> RunTime:
    """Return the part of an answer about the run time. Without a histogram it has only a reason."""
    if prediction is None or not any(prediction.histogram):
        reason = "nothing is known of such jobs yet, or the run predicts no distributions (as --runtime experts does)"
        observations = 0 if prediction is None else prediction.observations
        return RunTime(mean=None, quantiles=(), cut=None, observations=observations, reason=reason)
    masses = np.array(prediction.histogram)
    return RunTime(
        mean=mean_run_time(masses, np.inf),
        quantiles=tuple((quantile, round(quantile_of(masses, quantile), 1)) for quantile in RUN_TIME_QUANTILES),
        cut=_cut(prediction, AlternativeShape(1, requested_time), AlternativeShape(1, requested_time)),
        observations=prediction.observations,
    )


def _opened(state: StageRun) -> tuple[StageHandler, AsOf]:
    """Return the handler of a run, and its position. Raise `TypeError` if the run has not been opened."""
    if state.handler is None:
        raise TypeError(f"stage {state.stage.name}: the run has not been opened")
    return state.handler, AsOf(stage=state.stage.name, sequence=state.sequence, time=state.handler.time)


Asked = list[tuple[JobSubmitted, RunTimePrediction | None]]


def _run_times(
    question: AdviceQuestion, own: AlternativeShape, state: StageRun
) -> tuple[RunTimePrediction | None, RunTime, Asked, AsOf]:
    handler, as_of = _opened(state)
    machine = max(handler.processors, handler.opened.processors)
    if own.processors > machine:
        reason = f"the job requests {own.processors} processors; the machine has {machine}"
        raise Unanswerable(422, reason, "processors")
    if not isinstance(handler, PredictsRunTimes):
        raise TypeError(f"stage {state.stage.name} does not predict run times")
    prediction = handler.run_time_of(question.job(as_of.time, own))
    run_time = run_time_told(prediction, own.requested_time)
    histogram = () if prediction is None else prediction.histogram
    double = run_time.cut is not None and run_time.cut > question.risk
    jobs = [
        question.job(as_of.time, shape)
        for shape in shapes(own, histogram, machine, moldable=question.moldable, double=double)
    ]
    return prediction, run_time, [(job, handler.run_time_of(job)) for job in jobs], as_of


def _starts(asked: Asked, state: StageRun) -> tuple[Sequence[Start], AsOf, int | None]:
    handler, as_of = _opened(state)
    if not isinstance(handler, ForecastsStarts):
        raise TypeError(f"stage {state.stage.name} does not forecast starts")
    return handler.starts_of(asked), as_of, log_age(handler.opened, handler.time)


def _bounds(job: JobSubmitted, state: StageRun) -> tuple[tuple[WaitBound, ...], AsOf]:
    handler, as_of = _opened(state)
    if handler.passthrough:
        return (), as_of
    if not isinstance(handler, BoundsWaits):
        raise TypeError(f"stage {state.stage.name} does not bound waits")
    return handler.bounds_at(job.model_copy(update={"time": as_of.time}), 0.95, 0.95), as_of


def alternative(
    own: AlternativeShape, job: JobSubmitted, start: Start, prediction: RunTimePrediction | None
) -> Alternative:
    """Return the expected outcome of a job in one shape. `prediction` is for the job in its `own` shape."""
    shape = AlternativeShape(job.requested_processors, job.requested_time or 0)
    mean_end, histogram = None, () if prediction is None else prediction.histogram
    if start.mean_wait is not None and any(histogram):
        times, divided = ratio(own.processors, shape.processors, None)
        mean_end = start.mean_wait + mean_run_time(np.array(histogram), np.inf) * times / divided
    return Alternative(
        processors=shape.processors,
        requested_time=shape.requested_time,
        cut=_cut(prediction, own, shape),
        mean_wait=start.mean_wait,
        mean_end=mean_end,
        starts_within=start.starts_within,
        reason=start.reason,
    )


def _cut(prediction: RunTimePrediction | None, own: AlternativeShape, shape: AlternativeShape) -> float | None:
    """Return the probability of being cut. In the job's own shape, use the prediction's `at_request` if it is known."""
    if prediction is not None and shape == own and prediction.at_request is not None:
        return prediction.at_request
    return risk_of(shape, own.processors, () if prediction is None else prediction.histogram)
