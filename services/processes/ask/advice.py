"""Advice before submission: how long a job would run, when it would start, and alternatives to its request."""

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np
from pydantic import Field

from shadowtime.services.processes.ask.alternatives import (
    UNCHECKED,
    Alternative,
    AlternativeShape,
    RiskQuestion,
    marked,
    risk_of,
    shapes,
)
from shadowtime.services.processes.ask.answers import Answers, unless_withdrawn
from shadowtime.services.processes.ask.questions import LOG_AGE, OwnWord, RunName, Share, log_age
from shadowtime.services.processes.ask.words import ClusterWords, JobPlace
from shadowtime.shared.distributions import mean_run_time
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.formatting import duration, percent
from shadowtime.shared.messages import (
    Amount,
    ClusterOpened,
    Count,
    FrozenModel,
    JobSubmitted,
    Probability,
    Processors,
    Request,
    RunTimePrediction,
    WaitBound,
    Whole,
    needed,
    ratio,
    units_of,
)
from shadowtime.shared.quoting import plain, quote
from shadowtime.shared.stages import AdvisedStart as Start
from shadowtime.shared.stages import (
    BoundsWaits,
    ForecastsStarts,
    PredictsRunTimes,
    RiskOfRequests,
    StageHandler,
    StageRun,
)

RUN_TIME_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


class AdviceQuestion(FrozenModel):
    """A job that you could submit now, and the risk of being cut that you would accept."""

    cluster: str = Field(min_length=1, max_length=200, description="the cluster, by name")
    processors: Processors = Field(description="processors that the job requests")
    requested_time: Request = Field(description="seconds that the job requests")
    queue: OwnWord | None = Field(default=None, description="queue that the job enters, by name or number")
    user: OwnWord | None = Field(default=None, description="user who submits the job, by name or number")
    group: OwnWord | None = Field(default=None, description="the user's group or account, by name or number")
    executable: OwnWord | None = Field(default=None, description="job name, or number of the executable")
    pool: OwnWord | None = Field(
        default=None, description="pool of nodes that the job needs, by name; by default the pool of its queue"
    )
    memory: Amount | None = Field(default=None, description="MiB of memory that the job requests, on all its nodes")
    gpus: Amount | None = Field(default=None, description="GPUs that the job requests, on all its nodes")
    gpu_type: OwnWord | None = Field(default=None, description="type of these GPUs; by default any type")
    risk: Share = Field(default=0.05, description="largest risk of being cut that the advised alternative may have")
    moldable: bool = Field(default=False, description="whether the job could run on other sizes, with the same work")
    run: RunName | None = Field(
        default=None,
        description="a run of the cluster; by default the followed run, or else the run with the latest event",
    )

    def job(self, time: int, shape: AlternativeShape, place: JobPlace) -> JobSubmitted:
        """Return the job in the given shape and place, as if it were submitted at `time`, in seconds."""
        return JobSubmitted(
            time=time,
            job_number=0,
            requested_processors=shape.processors,
            requested_time=shape.requested_time,
            memory=self.memory,
            gpus=self.gpus,
            gpu_type=self.gpu_type,
            **place.fields(),
        )


class AsOf(FrozenModel):
    """The position up to which a stage's state was read."""

    stage: str = Field(description="name of the stage")
    sequence: Count = Field(description="number of the last event in its state")
    time: Whole = Field(description="time of that event, in seconds on the cluster's own time line")
    unix_start: Count = Field(default=0, description="Unix time of second 0; 0 if unknown")


class RunTime(FrozenModel):
    """The predicted run time of the job if it is not cut."""

    mean: float | None = Field(description="mean in seconds; null if no distribution is predicted")
    quantiles: tuple[tuple[Probability, float], ...] = Field(
        description="pairs of a probability and the seconds within which the job ends with this probability"
    )
    cut: Probability | None = Field(description="probability of being cut at its request; null if unknown")
    observations: Count = Field(description="number of ended jobs that the prediction is based on")
    reason: str | None = Field(default=None, description="why there is no distribution")


class Advice(FrozenModel):
    """The run time of the job, bounds on its wait, and alternatives to its request, with its own request first."""

    cluster: str = Field(description="the cluster, by name")
    run: str = Field(description="the run behind the answer")
    as_of: tuple[AsOf, ...] = Field(description="position up to which each stage's state was read")
    run_time: RunTime = Field(description="predicted run time of the job")
    bounds: tuple[WaitBound, ...] = Field(description="bounds on its wait; empty if the run computes none")
    alternatives: tuple[Alternative, ...] = Field(description="requests for the job, its own first")
    log_age: Whole | None = Field(default=None, description=LOG_AGE)
    unadvised: str | None = Field(default=None, description="why no alternative is advised; null if one is advised")
    note: str | None = Field(
        default=None, description="what the answer does not consider; null if there is nothing to note"
    )


class Advising:
    """Adviser on jobs, from the states of stages `runtime_distribution`, `wait_bound` and `scheduler`.

    The states are read one after another, so they may differ in position. `Advice.as_of` has the position of each.
    """

    def __init__(self, run_times: Answers, bounds: Answers, starts: Answers) -> None:
        self._run_times, self._bounds, self._starts = run_times, bounds, starts

    async def advise(self, question: AdviceQuestion) -> Advice:
        """Return the advice.

        Raises
        ------
        Unanswerable
            If there is no such cluster, run, pool or name, or the job does not fit into its pool.
        StoreError, SnapshotMismatch
            If a stored state cannot be read.
        """
        run = await self._starts.run_of(question.cluster, question.run)
        own = AlternativeShape(question.processors, question.requested_time)
        words = await self._starts.words.of(question.cluster, run)
        job, first = await self._run_times.of_run(run, partial(_predicted, question, own, words))
        starts, second, age = await self._starts.of_run(run, partial(_starts, job.asked))
        bounds, third = await self._bounds.of_run(run, partial(_bounds, job.asked[0][0]))
        choices = [alternative(own, asked, start, job) for (asked, _), start in zip(job.asked, starts, strict=True)]
        alternatives = marked(choices, question.risk)
        return Advice(
            cluster=question.cluster,
            run=run,
            as_of=(first, third, second),
            run_time=job.run_time,
            bounds=bounds,
            alternatives=alternatives,
            unadvised=None if any(choice.advised for choice in alternatives) else job.unadvised,
            log_age=age,
            note=job.note,
        )


def run_time_answer(prediction: RunTimePrediction | None, risk: RiskOfRequests | None, requested_time: int) -> RunTime:
    """Return the part of an answer about the run time. Without a prediction or a risk, `reason` states why."""
    if prediction is None or risk is None:
        reason = "nothing is known about such jobs yet, or the run predicts no distributions; --runtime experts does"
        observations = 0 if prediction is None else prediction.observations
        return RunTime(mean=None, quantiles=(), cut=None, observations=observations, reason=reason)
    return RunTime(
        mean=mean_run_time(np.array(prediction.histogram), np.inf),
        quantiles=tuple((quantile, float(risk.needed(1.0 - quantile))) for quantile in RUN_TIME_QUANTILES),
        cut=round(risk.of(requested_time), 6),
        observations=prediction.observations,
    )


def _opened(state: StageRun) -> tuple[StageHandler, AsOf]:
    """Return the handler of a run, and its position. Raise `TypeError` if the run has not been opened."""
    if state.handler is None:
        raise TypeError(f"stage {state.stage.name}: the run has not been opened")
    return state.handler, AsOf(
        stage=state.stage.name,
        sequence=state.sequence,
        time=state.handler.time,
        unix_start=state.handler.opened.unix_start,
    )


class PredictedJob(NamedTuple):
    """A job as stage `runtime_distribution` predicts it."""

    risk: RiskOfRequests | None
    """The risk of being cut; None if nothing is known."""
    run_time: RunTime
    """The part of the answer about the run time."""
    asked: list[tuple[JobSubmitted, RunTimePrediction | None]]
    """The job in all shapes to try, each with its prediction."""
    unadvised: str
    """The reason if no alternative is advised."""
    note: str | None = None
    """Facts that the answer does not consider."""


def _predicted(
    question: AdviceQuestion, own: AlternativeShape, words: ClusterWords, state: StageRun
) -> tuple[PredictedJob, AsOf]:
    handler, as_of = _opened(state)
    job = question.job(as_of.time, own, words.place(question, handler.opened, one_pool=True))
    machine = _require_room(handler, job)
    if not isinstance(handler, PredictsRunTimes):
        raise TypeError(f"stage {state.stage.name} does not predict run times")
    largest = machine if question.moldable else 0
    predicted = predicted_job(handler, job, question.risk, largest)
    return predicted._replace(note=unconsidered(handler.opened, job)), as_of


def unconsidered(opened: ClusterOpened, job: JobSubmitted) -> str | None:
    """Return a note if the job names no type of its GPUs, so that advice does not consider types; else None."""
    types = opened.pools[job.pool or 0].types if opened.pools and job.gpus and job.gpu_type is None else ()
    if not types:
        return None
    return f"No type of GPU is named, so GPUs of any type count: {', '.join(map(plain, types))}."


def _require_room(handler: StageHandler, job: JobSubmitted) -> int:
    """Return the processors of the pool that a job needs. Raise `Unanswerable` if the job is larger than the pool."""
    at = job.pool or 0
    pools = handler.opened.pools
    where = f"pool {quote(pools[at].name)}" if pools and len(pools) > 1 else "the machine"
    types, most = handler.capacities.types[at], handler.capacities.most(at)
    asked = job.requested_processors, job.memory, job.gpus, *needed(types, job.gpu_type, job.gpus)
    names = "processors", "memory", "gpus", *("gpu_type" for _ in types)
    for name, unit, wanted, has in zip(names, units_of(types), asked, most, strict=True):
        if wanted is not None and has is not None and wanted > has:
            raise Unanswerable(422, f"the job requests {wanted} {plain(unit)}; {where} has {has}", name)
    if types and job.gpus and job.gpu_type not in (None, *types):
        reason = f"the job requests {quote(job.gpu_type or '')} GPUs; {where} has {', '.join(map(plain, types))}"
        raise Unanswerable(422, reason, "gpu_type")
    return most[0] or 0


def predicted_job(handler: PredictsRunTimes, job: JobSubmitted, accepted: float, largest: int) -> PredictedJob:
    """Return what a stage predicts of a job and of its alternatives.

    Parameters
    ----------
    accepted
        The accepted risk of being cut.
    largest
        The largest size that a moldable job can have, in processors; 0 if the job is not moldable.
    """
    own = AlternativeShape(job.requested_processors, job.requested_time or 0)
    prediction, risk = handler.run_time_of(job), handler.cut_risk_of(job)
    run_time = run_time_answer(prediction, risk, own.requested_time)
    longest = max(handler.longest_request(job), own.requested_time)
    question = None if risk is None else RiskQuestion(risk, accepted, longest)
    jobs = [
        job.model_copy(update={"requested_processors": shape.processors, "requested_time": shape.requested_time})
        for shape in shapes(own, question, largest)
    ]
    unadvised = (
        f"no request up to {duration(longest)}, the longest so far, has a risk of at most {percent(accepted, 'g')} of "
        f"being cut ({percent(UNCHECKED * accepted, 'g')} if longer than yours, as no outcome checks that risk)"
    )
    asked = [(shaped, handler.run_time_of(shaped)) for shaped in jobs]
    return PredictedJob(risk, run_time, asked, run_time.reason or unadvised)


def _starts(
    asked: Sequence[tuple[JobSubmitted, RunTimePrediction | None]], state: StageRun
) -> tuple[Sequence[Start], AsOf, int | None]:
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
    bounds = handler.bounds_at(job.model_copy(update={"time": as_of.time}), 0.95, 0.95)
    return tuple(unless_withdrawn(bound, handler.doubt_at(bound)) for bound in bounds), as_of


def alternative(own: AlternativeShape, job: JobSubmitted, start: Start, predicted: PredictedJob) -> Alternative:
    """Return the expected outcome of a job in one shape. `predicted` is for the job in its `own` shape."""
    shape = AlternativeShape(job.requested_processors, job.requested_time or 0)
    mean_end, mean = None, predicted.run_time.mean
    if start.mean_wait is not None and mean is not None:
        times, divided = ratio(own.processors, shape.processors, None)
        mean_end = start.mean_wait + mean * times / divided
    return Alternative(
        processors=shape.processors,
        requested_time=shape.requested_time,
        cut=risk_of(shape, own.processors, predicted.risk),
        mean_wait=start.mean_wait,
        mean_end=mean_end,
        starts_within=start.starts_within,
        reason=start.reason,
    )
