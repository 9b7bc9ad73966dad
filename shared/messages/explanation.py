"""Explanations of waits, from the state of stage `scheduler`: the answers of `ask --job` and of the live page."""

from collections.abc import Callable, Mapping
from typing import Annotated, Literal, Protocol, runtime_checkable

from pydantic import Field

from shadowtime.shared.bounds import MAX_RISKS
from shadowtime.shared.messages.base import AtMost, Count, FrozenModel, Name, SpecText, Whole
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.messages.gpu_types import MAX_GPU_TYPES, GpuType
from shadowtime.shared.messages.job_events import Outcome
from shadowtime.shared.messages.predictions import Probability
from shadowtime.shared.messages.reasons import Reason

MAX_NAMED_JOBS = 100
"""The maximum number of jobs that one part of an explanation names. The count of jobs in this part includes all."""

Resource = Literal["processors", "memory", "gpus"]
Numbers = Annotated[tuple[Count, ...], AtMost(MAX_NAMED_JOBS)]
Awaited = Literal["site", "capacity", "processors", "memory", "gpus", "head", "pass"]


class Ahead(FrozenModel):
    """The waiting jobs that are served before this job."""

    order: str = Field(description="the policy's name for the order of the queue; `arrival` if its order is unknown")
    told: bool = Field(description="whether the policy is known to serve the queue in this order")
    jobs: Count = Field(description="number of these jobs")
    processors: Count = Field(description="processors that these jobs request in all")
    job_numbers: Numbers = Field(description="numbers of the first of these jobs, in this order")


class Ending(FrozenModel):
    """A running job that must end before another job fits."""

    job_number: Count
    processors: Count = Field(description="processors that it holds")
    expected_end: Whole = Field(description="expected end: by its predicted run time, but not after its limit")
    predicted: bool = Field(description="whether the prediction puts the end before its limit")
    probability: Probability | None = Field(
        None, description="probability that it ends by `time` of `Endings`; None if not known"
    )


class Endings(FrozenModel):
    """The running jobs that must end so that a job fits, by their expected ends, if no other job starts.

    The job does not fit at any earlier expected end.
    """

    job_number: Count = Field(description="the job that is to fit: the explained job, or the head of the queue")
    time: Whole = Field(description="when the last of these running jobs is expected to end")
    jobs: Count = Field(description="number of running jobs that must end")
    named: Annotated[tuple[Ending, ...], AtMost(MAX_NAMED_JOBS)] = Field(description="the first of these to end")
    probability: Probability | None = Field(
        None, description="minimum probability that enough processors are released by `time`, whichever jobs end"
    )
    quantiles: Annotated[tuple[tuple[Probability, Whole], ...], AtMost(MAX_RISKS)] = Field(
        (), description="minimum probabilities, each with the time by which enough processors are released"
    )


class Shadow(FrozenModel):
    """The resources that the head leaves for backfilling, by the run times that the policy plans with."""

    head: Count = Field(description="the first job of the queue that does not fit")
    shadow_time: Whole | None = Field(description="when the head can start; None if the end of all jobs is not enough")
    extra_processors: Whole = Field(description="processors that remain free beside the head at that time")
    planned_end: Whole | None = Field(description="when the explained job would end if started now; None if never")
    plan: Literal["predicted", "requested"] = Field(description="the run times from which these times are computed")


class Refused(FrozenModel):
    """A pass that evaluated the job as a candidate and did not start it; the figures are from the log's `Decided`."""

    time: Whole
    head: Count
    needed: Count = Field(description="processors that the head lacked")
    probability: Probability = Field(description="probability of delaying the head")
    bound: Probability = Field(description="the paper's lower bound on this probability")
    recalibrated: Probability | None = None
    criterion: Literal["exact", "paper", "gain"] = Field(description="what the policy compares with tau")
    tau: Probability


class Sooner(FrozenModel):
    """Another request with which a pass of the policy would start the job now. A run of the policy has shown this."""

    requested_time: Count | None = Field(default=None, description="requested seconds, if a shorter request is enough")
    processors: Count | None = Field(default=None, description="requested processors, if fewer are enough")
    cut: Probability | None = Field(
        default=None, description="probability that the job runs longer than this request; None if not known"
    )


StartSource = Literal["pass", "site", "releases", "forecast", "bounds"]


class StartOutlook(FrozenModel):
    """The one answer to the question when a waiting job starts, given that it has waited until now.

    All times are seconds of the log. `earliest` is at most `expected`, which is at most `latest` and `by_95`. None of
    them is before now.
    """

    source: StartSource | None = Field(
        default=None,
        description="where `expected` is from: the next pass; the site's scheduler; the expected ends of running jobs; "
        "the forecast or the bounds of the job's submission, given its wait so far; None if nothing is known any more",
    )
    expected: Whole | None = Field(default=None, description="when it is expected to start")
    earliest: Whole | None = Field(default=None, description="it starts later than this with a probability of 90 %")
    latest: Whole | None = Field(
        default=None,
        description="it starts before this with a probability of 90 %; if only one bound is known, the probability is "
        "that of the bound, 90 % or more, as of the submission",
    )
    by_95: Whole | None = Field(
        default=None,
        description="it starts before this with a probability of 95 %; if only one bound is known, the probability is "
        "as of the submission",
    )
    passed: Whole | None = Field(
        default=None, description="the latest start that was predicted, if all predictions have passed"
    )


class Explanation(FrozenModel):
    """The state of one job and the reasons for it, as of an event of the log; times in seconds on its time line."""

    cluster: str = Field(description="the cluster, by name")
    run: str = Field(description="the run behind the answer")
    sequence: Count = Field(description="number of the last event behind the answer")
    time: Whole = Field(description="time of that event")
    unix_start: Count = Field(description="Unix time of second 0")
    obeyed: bool = Field(description="whether the policy's decisions are carried out; otherwise they are advice")
    policy: SpecText = Field(description="the policy, with every key spelled out")
    job_number: Count
    state: Literal["waiting", "starting", "running", "suspended", "ended"]
    processors: Count = Field(description="processors that it requests, or holds")
    requested_time: Count | None = Field(default=None, description="seconds that it requests, or may run")
    since: Whole = Field(description="when its wait began")
    waits_for: Awaited | None = Field(
        None,
        description="of a waiting job: the site does not let it start; the machine is too small now; more of a "
        "resource must be free; it fits, but the head of the queue goes first; it fits, and the next pass may start it",
    )
    site_reason: Name | None = Field(default=None, description="why it waits, as the site's own scheduler says")
    asked: Count | None = Field(default=None, description="requested amount of the resource that it waits for")
    free: Whole | None = Field(default=None, description="free amount of that resource")
    resource: Resource | None = Field(default=None, description="the resource that `asked` and `free` count")
    of_type: Name | None = Field(default=None, description="the type of these GPUs; None for GPUs of any type")
    gpu_types: Annotated[tuple[GpuType, ...], AtMost(MAX_GPU_TYPES)] = Field(
        default=(), description="of a waiting job with GPUs: the types in its pool, if several"
    )
    gpu_type: Name | None = Field(default=None, description="the type of GPU that it names")
    ahead: Ahead | None = None
    ends: Endings | None = None
    shadow: Shadow | None = None
    refused: Annotated[tuple[Refused, ...], AtMost(MAX_RISKS)] = Field(
        (), description="the last refusals, oldest first"
    )
    starts: StartOutlook | None = Field(default=None, description="of a waiting job: when it starts")
    forecast: Whole | None = Field(default=None, description="the start that was forecast at its submission")
    starts_by: tuple[Probability, Whole] | None = Field(
        None, description="a probability, and the time by which it starts with this probability, as of its submission"
    )
    sooner: Annotated[tuple[Sooner, ...], AtMost(MAX_RISKS)] = ()
    tried: bool = Field(default=False, description="whether other requests were tried; if not, `sooner` is empty")
    decided: Whole | None = Field(default=None, description="when it was decided, or first advised, to start it")
    reason: Reason | None = Field(default=None, description="the reason of that decision")
    started: Whole | None = None
    ended: Whole | None = None
    run_time: Count | None = None
    outcome: Outcome | None = None


@runtime_checkable
class Explains(Protocol):
    """The part of a stage's handler that `ask` and the live page use."""

    def handle(self, envelope: Envelope) -> Envelope:
        """Apply an event."""
        ...

    def explain(self, job_number: int, run: str, sequence: int, *, brief: bool = False) -> Explanation | None:
        """Return the state of a job and the reasons for it; None if the job is not known.

        A brief answer runs no policy, and names no running jobs that must end.
        """
        ...

    def expected_ends(self) -> Mapping[int, tuple[int, bool]]:
        """Return the expected end of each running job in seconds, and whether its limit is later, by job number.

        It is what the policy plans with. Without a prediction and a limit, a job is left out.
        """
        ...

    def known(self, job_id: Callable[[int], str] = str) -> str:
        """Return in words the jobs that `explain` knows. `job_id` returns the id of a job from its number."""
        ...
