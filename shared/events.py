"""The events of a run, and the envelope in which they travel.

The log of a run is a sequence of envelopes, numbered from 0 without holes. The source publishes events; each stage
forwards the envelope of every event, some with their prediction added. One envelope in, one envelope out: so a
sequence number identifies an envelope on every topic, and a receiver drops duplicates by number alone.

The scheduler answers a `SchedulingPoint` with a `Decided` in its place. A stage that finds an event to contradict the
log puts a `Rejected` in its place.

All times are whole seconds on the cluster's own time line.
"""

from typing import Annotated, Final, Literal

from pydantic import Field, ValidationError, model_validator

from shared.message import Count, Frozen, Request, Seconds, Whole
from shared.predictions import (
    ChangePoint,
    Coverage,
    Probability,
    RunTimePrediction,
    WaitBound,
    WaitForecast,
    WalltimeAdjustment,
)
from shared.reasons import Reason
from shared.samples import Sample
from shared.scores import Scores
from shared.speedup import SpeedUp

SCHEMA_VERSION: Final = 1

Outcome = Literal["completed", "failed", "cancelled", "limit", "killed"]
"""How a job ended: by itself (three ways), at the limit of its start, or by a decision of the scheduler."""

JobNumber = Count
Processors = Annotated[int, Field(ge=1, le=2**31 - 1)]


class ClusterOpened(Frozen):
    """A run begins: one cluster under one set of settings. Always sequence 0.

    `policy`, `runtime`, `adjustment` and `wait_bound` are SPECs with every key spelled out, so that a stage needs
    nothing but the log to do its work. `unix_start` is the Unix time of second 0 of the cluster's own time line, and
    `sample_every` the seconds between the moments at which the scoreboard samples its figures; None for never.
    """

    kind: Literal["ClusterOpened"] = "ClusterOpened"
    time: Whole
    cluster: str
    processors: Processors
    mode: Literal["closed", "recorded"] = "closed"
    policy: str = "easy"
    runtime: str = "requested"
    adjustment: str = "none"
    wait_bound: str = "none"
    seed: Count = 0
    unix_start: Count = 0
    sample_every: Request | None = None


class JobSubmitted(Frozen):
    """A job enters the queue. What only the future knows, its run time, has no field here.

    `speedup` is how a moldable job scales; None is constant efficiency.
    """

    kind: Literal["JobSubmitted"] = "JobSubmitted"
    time: Whole
    job_number: JobNumber
    requested_processors: Processors
    requested_time: Request | None = None
    user_id: Whole | None = None
    group_id: Whole | None = None
    executable_number: Whole | None = None
    queue_number: Whole | None = None
    partition_number: Whole | None = None
    restartable: bool = True
    moldable: bool = True
    speedup: SpeedUp | None = None


class JobStarted(Frozen):
    """A waiting job got its processors; the machine will end it `limit` seconds later at the latest.

    A `trial` has less time than the job asks for: if it needs more it waits again, as if it had not started.
    """

    kind: Literal["JobStarted"] = "JobStarted"
    time: Whole
    job_number: JobNumber
    processors: Processors
    limit: Request | None = None
    trial: Literal[True] | None = None


class JobEnded(Frozen):
    """A running job gave its processors back; with `requeued` it waits again, as submitted.

    `original_run_time` is what it would have run on the processors that it requested, where it ran on others.
    """

    kind: Literal["JobEnded"] = "JobEnded"
    time: Whole
    job_number: JobNumber
    run_time: Seconds
    outcome: Outcome = "completed"
    requeued: bool = False
    original_run_time: Seconds | None = None

    @property
    def own_run_time(self) -> int:
        """What the job runs on the processors that it requested, in seconds: what is learned and measured (spec G8)."""
        return self.run_time if self.original_run_time is None else self.original_run_time


class CapacityChanged(Frozen):
    """The machine now has `processors`; running jobs go on, so fewer than none may be free for a while."""

    kind: Literal["CapacityChanged"] = "CapacityChanged"
    time: Whole
    processors: Annotated[int, Field(ge=0, le=2**31 - 1)]


class SchedulingPoint(Frozen):
    """Everything that ended or arrived at this instant has been told: the scheduler passes once."""

    kind: Literal["SchedulingPoint"] = "SchedulingPoint"
    time: Whole


class Start(Frozen):
    """Start a waiting job now on `processors`, for `limit` seconds at most."""

    job_number: JobNumber
    processors: Processors
    limit: Request | None = None
    reason: Reason


class Kill(Frozen):
    """End a running job now; with `requeue` it waits again."""

    job_number: JobNumber
    requeue: bool
    reason: str


class Evaluated(Frozen):
    """Candidates tried one after another for one blocked head, until one was started (`accepted`) or none was left.

    Of each candidate there is the exact probability of delaying the head and the paper's bound. The head lacks
    `needed` processors, which the running jobs must release; the first `after` starts of the same pass are among them.
    """

    head: JobNumber
    needed: Count
    after: Count
    job_numbers: tuple[JobNumber, ...]
    probabilities: tuple[Probability, ...]
    bounds: tuple[Probability, ...]
    accepted: bool

    @model_validator(mode="after")
    def _one_of_each(self) -> "Evaluated":
        if not len(self.job_numbers) == len(self.probabilities) == len(self.bounds) >= self.accepted:
            raise ValueError(
                f"{len(self.job_numbers)} candidates of head {self.head}, but other counts of probabilities"
            )
        return self


Decision = Start | Kill


class Decided(Frozen):
    """What the scheduler decided at a scheduling point, kills first; empty when nothing can be done."""

    kind: Literal["Decided"] = "Decided"
    time: Whole
    starts: tuple[Start, ...] = ()
    kills: tuple[Kill, ...] = ()
    evaluated: tuple[Evaluated, ...] = ()


class Rejected(Frozen):
    """An event contradicted the log before it; it changed nothing."""

    kind: Literal["Rejected"] = "Rejected"
    time: Whole
    reason: str


class ClusterClosed(Frozen):
    """The run is over; stages may let go of it. The scoreboard answers with its scores."""

    kind: Literal["ClusterClosed"] = "ClusterClosed"
    time: Whole


Event = (
    ClusterOpened
    | JobSubmitted
    | JobStarted
    | JobEnded
    | CapacityChanged
    | SchedulingPoint
    | Decided
    | Rejected
    | ClusterClosed
)


class Envelope(Frozen):
    """An event of a run with what the stages so far have added to it; `run` is its key in Kafka.

    >>> envelope = Envelope(run="kth/easy", sequence=7, event=SchedulingPoint(time=60))
    >>> envelope.model_copy(update={"run_time": RunTimePrediction(point=90.0, observations=2)}).sequence
    7
    """

    schema_version: Literal[1] = SCHEMA_VERSION
    run: Annotated[str, Field(min_length=1, max_length=200)]
    cluster: str = ""
    sequence: Count
    event: Annotated[Event, Field(discriminator="kind")]
    run_time: RunTimePrediction | None = None
    adjustment: WalltimeAdjustment | None = None
    wait_bounds: tuple[WaitBound, ...] = ()
    forecast: WaitForecast | None = None
    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    scores: Scores | None = None
    samples: tuple[Sample, ...] | None = None

    def to_bytes(self) -> bytes:
        """Return the envelope as JSON, as it lies on a topic: what is None is left out."""
        return self.model_dump_json(exclude_none=True).encode()

    @classmethod
    def from_bytes(cls, value: bytes) -> "Envelope":
        """Return the envelope that `to_bytes` gave; raises `pydantic.ValidationError` for anything else."""
        return cls.model_validate_json(value)

    @classmethod
    def read(cls, value: bytes | None) -> "Envelope | None":
        """Return the envelope in a message, or None where there is none; a stage has buried such a message."""
        try:
            return None if value is None else cls.from_bytes(value)
        except ValidationError:
            return None
