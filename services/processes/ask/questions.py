"""The question about the wait of a job that you could submit now, its answer, and the reason if it has no answer."""

from collections.abc import Mapping
from itertools import product
from time import time as wall_clock
from typing import Annotated, TypeVar

from pydantic import BeforeValidator, Field, ValidationError, model_validator

from shadowtime.shared.errors import MAX_QUOTED_LENGTH, Unanswerable, in_plain_words
from shadowtime.shared.formatting import duration
from shadowtime.shared.messages import (
    ClusterOpened,
    Count,
    FrozenModel,
    Processors,
    Request,
    Side,
    WaitBound,
    WaitRanges,
    Whole,
)
from shadowtime.shared.quoting import among, quote

Asked = TypeVar("Asked", bound=FrozenModel)
RunName = Annotated[str, Field(min_length=1, max_length=200)]
Share = Annotated[float, Field(gt=0, lt=1)]
_as_text = BeforeValidator(lambda value: str(value) if isinstance(value, int) else value)
OwnWord = Annotated[Annotated[str, Field(min_length=1, max_length=200)], _as_text]
"""A name of the followed cluster, or a number of the log."""

JobId = Annotated[str, _as_text]
"""An id of a job on its cluster, or its number in the log."""

OTHER_NAMES = {"partition": "queue", "account": "group"}
"""Other names of parameters: those of Slurm."""


LOG_AGE = "age in seconds of the log of a followed cluster; null for other runs"

STALE = 120
"""Age in seconds above which the log of a followed cluster is old."""


class Question(FrozenModel):
    """A job that you could submit now, and the quantile and confidence of the bounds on its wait."""

    cluster: str = Field(min_length=1, max_length=200, description="the cluster, by name")
    processors: Processors = Field(description="processors that the job requests")
    requested_time: Request | None = Field(default=None, description="seconds that the job requests")
    queue: OwnWord | None = Field(default=None, description="queue that the job enters, by name or number")
    user: OwnWord | None = Field(default=None, description="user who submits the job, by name or number")
    pool: OwnWord | None = Field(
        default=None, description="pool of nodes that the job needs, by name; by default the pool of its queue"
    )
    quantile: Share = Field(default=0.95, description="share of such jobs that shall wait no longer than the bound")
    confidence: Share = Field(
        default=0.95,
        description="probability with which the bound holds for this share; bounds `conformal` and `futures` have none",
    )
    side: Side = Field(default="upper", description="side from which this quantile of waits is bounded")
    run: RunName | None = Field(
        default=None,
        description="a run of the cluster; by default the followed run, or else the latest that bounds waits",
    )


class Answer(FrozenModel):
    """Bounds on the wait of the job, as of the last event of the run that the stage has stored."""

    cluster: str = Field(description="the cluster, by name")
    run: str = Field(description="the run behind the answer")
    sequence: Count = Field(description="number of the last event behind the answer")
    time: Whole = Field(description="time of that event, in seconds on the cluster's own time line")
    unix_start: Count = Field(default=0, description="Unix time of second 0; 0 if unknown")
    bounds: tuple[WaitBound, ...] = Field(description="one for each grouping, for the queue and for the whole cluster")
    outwaited: tuple[Count | None, ...] = Field(
        default=(),
        description="for each bound, how many waiting jobs have waited longer than their bounds; null if unknown",
    )
    waiting: Count = Field(default=0, description="number of jobs that wait")
    ranges: tuple[WaitRanges, ...] = Field(
        default=(), description="ranges of processors: those computed from the waits, and the fixed ones"
    )
    log_age: Whole | None = Field(default=None, description=LOG_AGE)


def log_age(opened: ClusterOpened, time: int) -> int | None:
    """Return the age in seconds of the log of a followed cluster, whose last event is at `time`; None for other runs.

    A follower publishes at least a scheduling point after each poll. So the log is old only if the follower is down or
    lags.
    """
    if not opened.follows:
        return None
    return max(0, int(wall_clock()) - opened.unix_start - time)


def age_line(age: int | None) -> list[str]:
    """Return a line about the age of a log if it is old, for people.

    >>> age_line(240), age_line(30), age_line(None)
    (['the log is 4.0 min old: the follower is down, or behind'], [], [])
    """
    old = age is not None and age > STALE
    return [f"the log is {duration(age)} old: the follower is down, or behind"] if old else []


MAX_OFFERS = 100
"""The maximum number of pairs of a cluster and a queue in one question."""


class OffersQuestion(FrozenModel):
    """A job that you could submit now to one of several clusters and queues."""

    cluster: tuple[Annotated[str, Field(min_length=1, max_length=200)], ...] = Field(
        min_length=1, max_length=MAX_OFFERS, description="the clusters, by name"
    )
    queue: tuple[OwnWord, ...] = Field(
        default=(),
        max_length=MAX_OFFERS,
        description="queues in each cluster, by name or number; by default the bound is for all queues together",
    )
    processors: Processors = Field(description="processors that the job requests")
    requested_time: Request | None = Field(default=None, description="seconds that the job requests")
    user: OwnWord | None = Field(default=None, description="user who submits the job, by name or number")
    quantile: Share = Field(default=0.95, description="share of such jobs that shall wait no longer than the bound")
    confidence: Share = Field(
        default=0.95,
        description="probability with which the bound holds for this share; bounds `conformal` and `futures` have none",
    )
    side: Side = Field(default="upper", description="side from which this quantile of waits is bounded")

    @model_validator(mode="after")
    def _few(self) -> "OffersQuestion":
        if (pairs := len(self.questions)) > MAX_OFFERS:
            raise ValueError(f"{pairs} pairs of a cluster and a queue; expected at most {MAX_OFFERS}")
        return self

    @property
    def questions(self) -> list[Question]:
        """The question for each pair of a cluster and a queue."""
        common = self.model_dump(exclude={"cluster", "queue"})
        pairs = product(dict.fromkeys(self.cluster), dict.fromkeys(self.queue or (None,)))
        return [Question(cluster=cluster, queue=queue, **common) for cluster, queue in pairs]


class Offer(FrozenModel):
    """The bound on the wait of the job in one cluster and queue; if there is none, `reason` says why."""

    cluster: str = Field(description="the cluster, by name")
    queue: Whole | str | None = Field(default=None, description="the queue, as in the question; null for all queues")
    run: str | None = Field(default=None, description="the run behind the bound")
    time: Whole | None = Field(default=None, description="time of the run's last event, in seconds of the log")
    bound: WaitBound | None = Field(default=None, description="the bound, preferably of the queue and the ensemble")
    reason: str | None = Field(default=None, description="why there is no bound")


class Offers(FrozenModel):
    """The bounds of all clusters and queues in the question, the shortest wait first."""

    offers: tuple[Offer, ...] = Field(description="one for each pair of a cluster and a queue")


class Problem(FrozenModel):
    """The reason why there is no answer."""

    error: str = Field(description="one line for people")
    parameter: str | None = Field(default=None, description="the faulty parameter; null if no single one is")


def read_as(model: type[Asked], parameters: Mapping[str, object]) -> Asked:
    """Return the question in `parameters`, as an instance of `model`.

    Raise `Unanswerable` if a parameter is missing, unknown or out of range. The error names it.
    """
    parameters = _renamed(parameters, model)
    try:
        return model.model_validate(parameters)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]

    if not first["loc"]:  # the fault is about several parameters
        raise Unanswerable(422, in_plain_words(first))
    name = str(first["loc"][0])
    if first["type"] == "unexpected_keyword_argument":
        raise Unanswerable(422, f"unknown parameter{among(name, model.model_fields)}", name)
    if first["type"] == "missing":
        raise Unanswerable(422, "is missing", name)
    raise Unanswerable(422, f"{quote(str(first['input']), MAX_QUOTED_LENGTH)}: {in_plain_words(first)}", name)


def _renamed(parameters: Mapping[str, object], model: type[FrozenModel]) -> dict[str, object]:
    """Return the parameters with the names of `OTHER_NAMES` replaced. Raise `Unanswerable` if one occurs twice."""
    renamed = dict(parameters)
    for other, name in OTHER_NAMES.items():
        if other in renamed and name in model.model_fields:
            if name in renamed:
                raise Unanswerable(422, f"is another name of {name}; give only one of them", other)
            renamed[name] = renamed.pop(other)
    return renamed
