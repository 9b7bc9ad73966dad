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
from shared.plan_reasons import Reserved, Speculated
from shared.predictions import (
    ChangePoint,
    Coverage,
    Probability,
    RunTimePrediction,
    WaitBound,
    WalltimeAdjustment,
)
from shared.scores import Scores

SCHEMA_VERSION: Final = 1

Outcome = Literal["completed", "failed", "cancelled", "limit", "killed"]
"""How a job ended: by itself (three ways), at the limit of its start, or by a decision of the scheduler."""

JobNumber = Count
Processors = Annotated[int, Field(ge=1, le=2**31 - 1)]


class ClusterOpened(Frozen):
    """A run begins: one cluster under one set of settings. Always sequence 0.

    `policy`, `runtime`, `adjustment` and `wait_bound` are SPECs with every key spelled out, so that a stage needs
    nothing but the log to do its work.
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


class JobSubmitted(Frozen):
    """A job enters the queue. What only the future knows, its run time, has no field here."""

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


class JobStarted(Frozen):
    """A waiting job got its processors; the machine will end it `limit` seconds later at the latest."""

    kind: Literal["JobStarted"] = "JobStarted"
    time: Whole
    job_number: JobNumber
    processors: Processors
    limit: Request | None = None


class JobEnded(Frozen):
    """A running job gave its processors back; with `requeued` it waits again, as submitted."""

    kind: Literal["JobEnded"] = "JobEnded"
    time: Whole
    job_number: JobNumber
    run_time: Seconds
    outcome: Outcome = "completed"
    requeued: bool = False


class CapacityChanged(Frozen):
    """The machine now has `processors`; running jobs go on, so fewer than none may be free for a while."""

    kind: Literal["CapacityChanged"] = "CapacityChanged"
    time: Whole
    processors: Annotated[int, Field(ge=0, le=2**31 - 1)]


class SchedulingPoint(Frozen):
    """Everything that ended or arrived at this instant has been told: the scheduler passes once."""

    kind: Literal["SchedulingPoint"] = "SchedulingPoint"
    time: Whole


class FitsNow(Frozen):
    """Nothing that came earlier is still waiting, and enough processors are free."""

    kind: Literal["fits-now"] = "fits-now"


class Backfilled(Frozen):
    """Started ahead of a blocked head: it ends by the head's shadow time, or uses only extra processors.

    `expected_end` is the time at which the job itself is expected to end, by its predicted run time if there is one.
    `shadow_time` is None when the head cannot start however long the running jobs are waited for (the machine is
    smaller than the head just now). `extra_processors` counts those left at that time before this start.
    """

    kind: Literal["backfilled"] = "backfilled"
    head: JobNumber
    shadow_time: Whole | None = None
    extra_processors: Whole
    expected_end: Whole | None = None
    ends_by_shadow_time: bool


class Risk(Frozen):
    """A termination of a running job at `time`, seconds, that leaves room for the head, but not beside the candidate.

    `probability` is that of this, while the candidate still runs; over all terminations it adds up to the
    candidate's probability of delaying the head.
    """

    job_number: JobNumber
    time: Whole
    probability: Probability


class ProbablyHarmless(Frozen):
    """Started ahead of a blocked head, as what it does to it (`criterion` says by which measure) is below `tau`.

    `probability` is the exact one of delaying the head, `bound` the paper's bound on it from below; `cost_of_gain` the
    slowdown that the head is expected to lose at most for each unit that the job gains. `budget_left` is the risk that
    this head may still be put to after this start; `riskiest` are the up to three terminations that carry most of the
    probability. Where the machine was too large for a walk over single processors, `resolution` is the processors
    per unit.
    """

    kind: Literal["probably-harmless"] = "probably-harmless"
    head: JobNumber
    criterion: Literal["exact", "paper", "gain"]
    probability: Probability
    bound: Probability
    cost_of_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tau: Probability
    budget_left: Probability
    riskiest: tuple[Risk, ...] = ()
    resolution: Count | None = None


Reason = Annotated[FitsNow | Backfilled | ProbablyHarmless | Reserved | Speculated, Field(discriminator="kind")]


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
    coverage: tuple[Coverage, ...] = ()
    change_points: tuple[ChangePoint, ...] = ()
    scores: Scores | None = None

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
