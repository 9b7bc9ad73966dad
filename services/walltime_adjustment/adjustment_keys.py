"""Settings that every scheme has: what the scheduler makes of an adjusted request."""

from typing import Literal

from pydantic import Field

from shadowtime.shared.spec import SpecKeys


class AdjustmentKeys(SpecKeys):
    """The uses of an adjusted request, which the scheduler reads in the log (P4, section 4.4).

    The paper's regular scheme has all three switches on, its selective one leaves running jobs at their requests.
    """

    queue: bool = Field(True, description="the queue is ordered by adjusted requests, where run times order it")
    candidates: bool = Field(True, description="a candidate for backfilling is taken to run for its adjusted request")
    running: bool = Field(False, description="and so is a running job; past it, for five minutes more each time")
    distribution: Literal["limit", "prior", "ignore"] = Field(
        "limit",
        description="to a policy that weighs distributions it is their upper end, or what reweighs them, or nothing",
    )
    threshold: float = Field(0.5, gt=0, le=1, description="no request is cut below this share of itself")
    minimum: int = Field(10, ge=1, le=10_000, description="ended jobs that a key needs")
    rank: Literal["nearest", "cobalt"] = Field(
        "nearest", description="the percentile of n ratios: the nearest rank, or the index of the Cobalt scheduler"
    )
