"""Why a scheduler starts a job."""

from typing import Annotated, Literal

from pydantic import Field

from shadowtime.shared.bounds import MAX_INTEGER, MAX_RISKS
from shadowtime.shared.messages.base import AtMost, Count, FrozenModel, Whole
from shadowtime.shared.messages.predictions import Probability


class FitsNow(FrozenModel):
    """Nothing that came earlier is still waiting, and enough processors are free."""

    kind: Literal["fits-now"] = "fits-now"


class Backfilled(FrozenModel):
    """Started ahead of a blocked head: it ends by the head's shadow time, or uses only extra processors.

    `expected_end` is the time at which the job itself is expected to end, by its predicted run time if there is one.
    `shadow_time` is None when the head cannot start however long the running jobs are waited for (the machine is
    smaller than the head just now). `extra_processors` counts those left at that time before this start.
    """

    kind: Literal["backfilled"] = "backfilled"
    head: Count
    shadow_time: Whole | None = None
    extra_processors: Whole
    expected_end: Whole | None = None
    ends_by_shadow_time: bool


class Risk(FrozenModel):
    """A termination of a running job at `time`, seconds, that leaves room for the head, but not beside the candidate.

    `probability` is that of this, while the candidate still runs; over all terminations it adds up to the
    candidate's probability of delaying the head.
    """

    job_number: Count
    time: Whole
    probability: Probability


class ProbablyHarmless(FrozenModel):
    """Started ahead of a blocked head, as what it does to it (`criterion` says by which measure) is below `tau`.

    `probability` is the exact one of delaying the head, `recalibrated` the same as mended by what came
    of earlier candidates, where the policy does so, `bound` the paper's bound on it from below; `cost_of_gain` the
    slowdown that the head is expected to lose at most for each unit that the job gains. `budget_left` is the risk that
    this head may still be put to after this start; `riskiest` are the up to three terminations that carry most of the
    probability. Where the machine was too large for a walk over single processors, `resolution` is the processors
    per unit.
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
    """Its place in the plan of all waiting jobs has come.

    `guaranteed_start` is the latest start that it was promised when it was first planned, in seconds; None without
    guarantees.
    """

    kind: Literal["reserved"] = "reserved"
    guaranteed_start: Whole | None = None


class Speculated(FrozenModel):
    """Started for less time than it asks for, in a hole of the plan; if that is too short, it waits again.

    `hole` is how long so many processors are free, in seconds, None if always; `attempt` counts from 1. A test run is
    to show whether a long job fails at once.
    """

    kind: Literal["speculated"] = "speculated"
    hole: Whole | None = None
    attempt: Annotated[int, Field(ge=1, le=MAX_INTEGER)]
    test_run: bool


Reason = Annotated[FitsNow | Backfilled | ProbablyHarmless | Reserved | Speculated, Field(discriminator="kind")]
