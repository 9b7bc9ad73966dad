"""The events of a run, and the envelope in which they travel.

The log of a run is a sequence of envelopes, numbered from 0 without holes. The source publishes events. Each stage
forwards the envelope of every event, and may add its answer. A stage emits one envelope for each envelope that it
reads. Therefore a sequence number identifies an envelope on every topic, and a receiver drops duplicates by number.

The scheduler replaces a `SchedulingPoint` by a `Decided`. A stage replaces an event that contradicts the log by a
`Rejected`.

All times are whole seconds on the cluster's own time line. Time never goes back: an event that is reported late has
the present time, and `happened` is the time at which it happened. The upper limits of all values are in
`shared.bounds`.
"""

from collections.abc import Mapping
from hashlib import sha256
from typing import Annotated, Final, Literal

from pydantic import ConfigDict, Field, TypeAdapter, model_validator

from shadowtime.shared.bounds import (
    MAX_BOUNDS,
    MAX_DRIFTS,
    MAX_LIVE_JOBS,
    MAX_NAME_LENGTH,
    MAX_POOLS,
    MAX_REVISIONS,
    MAX_SAMPLES,
    MAX_TIME,
)
from shadowtime.shared.messages.base import (
    AtMost,
    Count,
    FrozenModel,
    Instant,
    Name,
    Processors,
    Reasons,
    Request,
    SpecText,
)
from shadowtime.shared.messages.decisions import Chosen, CutShort, Evaluated, Kill, OfJobs, Start
from shadowtime.shared.messages.drifts import Drift
from shadowtime.shared.messages.job_events import (
    CapacityChanged,
    JobChanged,
    JobEnded,
    JobExpected,
    JobResumed,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.messages.predictions import (
    ChangePoint,
    Coverage,
    RunTimePrediction,
    RunTimeRevision,
    WaitBound,
    WaitForecast,
    WaitRanges,
    WalltimeAdjustment,
)
from shadowtime.shared.messages.samples import Sample
from shadowtime.shared.messages.scores import Scores

FOLLOWED, SHADOW = "live", "shadow"
"""Names of the run of a followed cluster, and of the runs of its shadows, as parts of `run_name`."""


def run_name(*parts: str) -> str:
    """Return the name of a run or a cluster. A long name, as of a policy with templates, is cut and gets a digest.

    >>> run_name("kth", "easy"), len(run_name("kth", "x" * 500))
    ('kth/easy', 200)
    """
    name = "/".join(parts)
    if len(name) <= MAX_NAME_LENGTH:
        return name
    digest = sha256(name.encode()).hexdigest()[:16]
    return f"{name[: MAX_NAME_LENGTH - len(digest) - 1]}~{digest}"


GONE_SECONDS = 600
"""A run that ends so much earlier than another run of its cluster no longer follows the cluster."""


def current_run(cluster: str, ends: Mapping[str, int]) -> str | None:
    """Return the run that follows a cluster now, of all that have followed it; None if there are none.

    It is the one with the usual name, unless another run replaced it, as after a change of the cluster's pools.

    Parameters
    ----------
    ends
        The Unix time of the last event of each run.

    >>> current_run("mine", {"mine/live": 5000, "mine/second": 5100}), current_run("mine", {})
    ('mine/live', None)
    >>> current_run("mine", {"mine/live": 5000, "mine/second": 9000})
    'mine/second'
    """
    newest = max(ends.values(), default=0)
    going_on = [run for run, end in ends.items() if end >= newest - GONE_SECONDS]
    usual = run_name(cluster, FOLLOWED)
    return usual if usual in going_on else max(going_on, key=lambda run: (ends[run], run), default=None)


SCHEMA_VERSION: Final = 2
"""The one version of envelopes that is written and read; any other is refused."""

OfBounds = AtMost(MAX_BOUNDS)


class ClusterOpened(FrozenModel):
    """A run begins: one cluster under one set of settings. Its sequence number is always 0.

    `policy`, `runtime`, `adjustment` and `wait_bound` are SPECs with every key spelled out, so that a stage needs
    nothing but the log to do its work. `unix_start` is the Unix time of second 0 of the cluster's own time line. The
    scoreboard samples its figures every `sample_every` seconds; None for never. `name` is a name of these settings for
    people. Runs that belong together have the same `experiment`. The machine is one pool of nodes, or it has `pools`:
    then their processors add up to `processors`. If a `closed` run has `obeyed_from`, the events before that time
    happened elsewhere, and decisions are advice until then.
    """

    kind: Literal["ClusterOpened"] = "ClusterOpened"
    time: Instant
    cluster: Name
    processors: Processors
    pools: Annotated[tuple[Pool, ...], AtMost(MAX_POOLS)] | None = None
    mode: Literal["closed", "recorded"] = "closed"
    policy: SpecText = "easy"
    runtime: SpecText = "requested"
    adjustment: SpecText = "none"
    wait_bound: SpecText = "none"
    seed: Count = 0
    unix_start: Annotated[int, Field(ge=0, le=MAX_TIME)] = 0
    sample_every: Request | None = None
    name: Name | None = None
    experiment: Name | None = None
    obeyed_from: Instant | None = None

    @property
    def follows(self) -> bool:
        """Whether the run follows a real cluster."""
        return self.mode == "recorded" and self.name == FOLLOWED

    def obeys(self, time: int) -> bool:
        """Return whether decisions at a time are carried out; otherwise they are advice."""
        return self.mode == "closed" and (self.obeyed_from is None or time >= self.obeyed_from)

    @model_validator(mode="after")
    def _whole(self) -> "ClusterOpened":
        if self.pools is not None and sum(pool.processors for pool in self.pools) != self.processors:
            in_pools = sum(pool.processors for pool in self.pools)
            raise ValueError(f"expected pools with the machine's {self.processors} processors, found {in_pools}")
        return self


class Decided(FrozenModel):
    """The decisions of the scheduler at a scheduling point, kills first; empty when nothing can be done.

    `cut_short` has the parts of the pass that were skipped because there were too many jobs; None, as nearly always, if
    nothing was skipped. `chosen` is the configuration that decided. It is None if the policy has only one, or if
    nothing was decided. The policy requests a scheduling point at `again`, if nothing happens before; None if it only
    waits for the next event.
    """

    kind: Literal["Decided"] = "Decided"
    time: Instant
    starts: Annotated[tuple[Start, ...], OfJobs] = ()
    kills: Annotated[tuple[Kill, ...], OfJobs] = ()
    evaluated: Annotated[tuple[Evaluated, ...], AtMost(MAX_LIVE_JOBS + 1)] = ()
    cut_short: Annotated[tuple[CutShort, ...], OfJobs] | None = None
    chosen: Chosen | None = None
    again: Instant | None = None


Refusal = Literal["failed", "too-large", "quarantined"]


class Rejected(FrozenModel):
    """An event that changed nothing. Without a `code`, the event contradicted the log before it.

    With code `failed`, a stage failed to handle the event. With `too-large`, the stage's output does not fit into a
    message. In both cases the effects of the event were undone. `quarantined` is a stage's last output for a run that
    it cannot continue.
    """

    kind: Literal["Rejected"] = "Rejected"
    time: Instant
    reason: Reasons
    code: Refusal | None = None


class ClusterClosed(FrozenModel):
    """The run is over; stages may forget it. The scoreboard answers with its scores."""

    kind: Literal["ClusterClosed"] = "ClusterClosed"
    time: Instant


Event = (
    ClusterOpened
    | JobSubmitted
    | JobWithdrawn
    | JobChanged
    | JobExpected
    | JobStarted
    | JobSuspended
    | JobResumed
    | JobEnded
    | CapacityChanged
    | SchedulingPoint
    | Decided
    | Rejected
    | ClusterClosed
)


class Envelope(FrozenModel):
    """An event of a run, with the fields that stages have added so far; `run` is its key in Kafka.

    >>> envelope = Envelope(run="kth/easy", sequence=7, event=SchedulingPoint(time=60))
    >>> envelope.model_copy(update={"run_time": RunTimePrediction(point=90.0, observations=2)}).sequence
    7
    """

    schema_version: Literal[2] = SCHEMA_VERSION
    run: Annotated[Name, Field(min_length=1)]
    cluster: Name = ""
    sequence: Count
    event: Annotated[Event, Field(discriminator="kind")]
    run_time: RunTimePrediction | None = None
    revisions: Annotated[tuple[RunTimeRevision, ...], AtMost(MAX_REVISIONS)] | None = None
    adjustment: WalltimeAdjustment | None = None
    wait_bounds: Annotated[tuple[WaitBound, ...], OfBounds] = ()
    forecast: WaitForecast | None = None
    coverage: Annotated[tuple[Coverage, ...], OfBounds] = ()
    change_points: Annotated[tuple[ChangePoint, ...], OfBounds] = ()
    wait_ranges: Annotated[tuple[WaitRanges, ...], OfBounds] | None = None
    scores: Scores | None = None
    samples: Annotated[tuple[Sample, ...], AtMost(MAX_SAMPLES)] | None = None
    drifts: Annotated[tuple[Drift, ...], AtMost(MAX_DRIFTS)] | None = None

    def to_bytes(self) -> bytes:
        """Return the envelope as JSON, as on a topic: fields that are None are left out."""
        return self.as_json(exclude_none=True)

    @classmethod
    def from_bytes(cls, value: bytes) -> "Envelope":
        """Return the envelope from the result of `to_bytes`. Raise `pydantic.ValidationError` for anything else."""
        return cls.model_validate_json(value)

    @classmethod
    def read(cls, value: bytes | None) -> "Envelope | None":
        """Return the envelope in a message; None if it is empty or invalid. Stages make invalid ones dead letters."""
        try:
            return None if value is None else cls.from_bytes(value)
        except Exception:  # any error of a library at unforeseen bytes
            return None


EVENTS: TypeAdapter[list[Event]] = TypeAdapter(list[Event], config=ConfigDict(defer_build=True))
