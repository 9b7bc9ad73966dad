"""Reasons for which a scheduler starts a job."""

from typing import Annotated, Literal

from pydantic import Field

from shadowtime.shared.bounds import MAX_INTEGER, MAX_RISKS
from shadowtime.shared.messages.base import AtMost, Count, FrozenModel, Whole
from shadowtime.shared.messages.predictions import Probability


class FitsNow(FrozenModel):
    """No earlier job in the policy's order is still waiting, and enough processors are free."""

    kind: Literal["fits-now"] = "fits-now"


class Backfilled(FrozenModel):
    """Started ahead of a blocked head: it ends by the head's shadow time, or uses only extra processors.

    `expected_end` is the time at which the job itself is expected to end, by its predicted run time if there is one.
    `shadow_time` is None when the head could not start even after all running jobs have ended (the machine is smaller
    than the head just now). `extra_processors` counts the processors left over at the shadow time, before this start.
    """

    kind: Literal["backfilled"] = "backfilled"
    head: Count
    shadow_time: Whole | None = None
    extra_processors: Whole
    expected_end: Whole | None = None
    ends_by_shadow_time: bool


class Risk(FrozenModel):
    """A possible end of a running job at `time`, in seconds: then the head fits, but not beside the candidate.

    `probability` is the probability that the job ends then while the candidate still runs. The sum over all such ends
    is the candidate's probability of delaying the head.
    """

    job_number: Count
    time: Whole
    probability: Probability


class ProbablyHarmless(FrozenModel):
    """Started ahead of a blocked head, because its effect on the head, measured by `criterion`, is below `tau`.

    `probability` is the exact probability of delaying the head. `recalibrated` is this probability, corrected by the
    outcomes of earlier candidates, if the policy recalibrates. `bound` is the paper's lower bound on `probability`.
    `cost_of_gain` is the slowdown that the head is expected to lose at most for each unit that the job gains.
    `budget_left` is the risk that this head may still be exposed to after this start. `riskiest` has up to three
    possible ends of running jobs, those with the largest probabilities. On a machine that is too large to count single
    processors, `resolution` is the number of processors per unit.
    """

    kind: Literal["probably-harmless"] = "probably-harmless"
    head: Count
    criterion: Literal["exact", "paper", "gain"]
    probability: Probability
    bound: Probability
    recalibrated: Probability | None = None
    cost_of_gain: Annotated[float, Field(ge=0, allow_inf_nan=False)] | None = None
    tau: Probability
    budget_left: Probability
    riskiest: Annotated[tuple[Risk, ...], AtMost(MAX_RISKS)] = ()
    resolution: Count | None = None


class Reserved(FrozenModel):
    """Started at its place in the plan of all waiting jobs.

    `guaranteed_start` is the latest start, in seconds, that the job was promised when it was first planned; None
    without guarantees.
    """

    kind: Literal["reserved"] = "reserved"
    guaranteed_start: Whole | None = None


class Speculated(FrozenModel):
    """Started for less time than requested, in a hole of the plan. If this time is too short, the job waits again.

    `hole` is the time for which enough processors are free, in seconds; None if they stay free for ever. `attempt`
    counts from 1. `test_run` marks a short run that shows whether a long job fails at once.
    """

    kind: Literal["speculated"] = "speculated"
    hole: Whole | None = None
    attempt: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    test_run: bool


Reason = Annotated[FitsNow | Backfilled | ProbablyHarmless | Reserved | Speculated, Field(discriminator="kind")]
