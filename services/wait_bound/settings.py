"""Settings of bounds on waits."""

from itertools import pairwise
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, model_validator

from shadowtime.services.wait_bound.binomial_ranks import fewest_observations
from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.messages import Side
from shadowtime.shared.quoting import quote
from shadowtime.shared.spec import Price, SpecSettings

MAX_WAITS = 400_000
"""Maximum number of waits that all queues and the cluster together remember in one grouping.

Each of them remembers at most `history` waits. If this exceeds the maximum, `history` is halved for all of them until
it does not. With a `history` of 20,000, it is a half for 20 to 39 queues, and a quarter from 40 queues on. A history is
not halved below the waits that a bound needs.
"""


class HistorySettings(SpecSettings):
    """Settings of all bounds."""

    quantile: float = Field(
        0.95, ge=0.01, le=0.999, description="share of jobs that is to wait no longer than the bound"
    )
    confidence: float = Field(
        0.95,
        ge=0.01,
        le=0.999,
        description="probability that at least the share `quantile` of jobs waits no longer than the bound; "
        "`conformal` and `futures` estimate the bound without it",
    )
    history: int = Field(20_000, ge=100, le=50_000, description="number of waits remembered in each queue or group")


MAX_CLUSTERS = 30
"""Maximum number of ranges of one grouping: a bound may borrow the histories of all of them."""


def _range_ends(text: str) -> tuple[int, ...]:
    return tuple(int(end) for end in text.split("+"))


def _ascending(text: str) -> str:
    """Return ends of ranges, joined by plus signs. Raise `ValueError` unless they are ascending numbers in range."""
    try:
        ends = _range_ends(text)
    except ValueError:
        raise ValueError("expected whole numbers of processors joined by plus signs, as in 4+16+64") from None
    if len(ends) >= MAX_CLUSTERS or not all(0 < end < MAX_PROCESSORS for end in ends):
        raise ValueError(f"expected fewer than {MAX_CLUSTERS} numbers, each from 1 to {MAX_PROCESSORS - 1:,}")
    for end, following in pairwise(ends):
        if following <= end:
            raise ValueError(f"expected ascending numbers; found {quote(f'{end}+{following}')}")
    return "+".join(map(str, ends))


def _counts(text: str) -> tuple[int, int]:
    least, most = text.split("-")
    return int(least), int(most)


def _from_to(text: str) -> str:
    """Return the fewest and the most ranges, as text. Raise `ValueError` if they are invalid."""
    try:
        least, most = _counts(text)
    except ValueError:
        raise ValueError("expected the fewest and the most ranges, as in 1-15") from None
    if not 1 <= least <= most <= MAX_CLUSTERS:
        raise ValueError(f"expected 1 to {MAX_CLUSTERS} ranges, the fewest first")
    return f"{least}-{most}"


class BoundSettings(HistorySettings):
    """Settings of `BmbpBounds`."""

    side: Side = Field(
        "upper",
        description="side from which the quantile of the waits is bounded: from above, from below, or from both; the "
        "conformal bound is always from above",
    )
    ends: Annotated[str, AfterValidator(_ascending)] = Field(
        "4+16+64",
        description="largest number of processors in each fixed range but the last, for the grouping static; set it "
        "to the site's own classes of sizes",
    )
    clusters: Annotated[str, AfterValidator(_from_to)] = Field(
        "1-5", description=f"fewest and most ranges that follow the waits, in each grouping; at most {MAX_CLUSTERS}"
    )
    recut: int = Field(
        1_000, ge=1, le=1_000_000, description="submissions after which the ranges that follow the waits are cut anew"
    )
    minimum_end: int = Field(
        0,
        ge=0,
        le=50_000,
        description="fewest waits in the lowest and the highest range; 0: as many as a bound needs, at least 59",
    )

    gamma: float = Field(
        0.05,
        gt=0,
        le=1,
        description="step of the conformal bound's level at the first scored job, as a share of its error; the step "
        "at the n-th job is gamma / sqrt(n)",
    )
    publish: Literal["all", "plain", "static", "nodes", "rtime", "rnprod", "ensemble", "conformal"] = Field(
        "all",
        description="all bounds, or one: of all jobs (plain), by fixed ranges of processors (static), by ranges of "
        "processors (nodes), requested time (rtime) or their product (rnprod) that follow the waits, by the best of "
        "these five (ensemble), or by a level that follows its own misses (conformal)",
    )

    @property
    def range_ends(self) -> tuple[int, ...]:
        """The largest number of processors in each fixed range but the last."""
        return _range_ends(self.ends)

    @property
    def published_side(self) -> Side:
        """The side of the published bounds. The conformal bound has only one."""
        return "upper" if self.publish == "conformal" else self.side

    @property
    def cluster_counts(self) -> tuple[int, int]:
        """The fewest and the most ranges that follow the waits."""
        return _counts(self.clusters)

    @model_validator(mode="after")
    def _possible(self) -> "BoundSettings":
        if self.publish == "conformal":
            return self
        need = fewest_observations(self.quantile, self.confidence, self.side)
        if self.history < need:
            bound = f"quantile={self.quantile}, confidence={self.confidence} and side={self.side}"
            raise ValueError(f"history={self.history}: {bound} need at least {need} waits; increase history")
        return self

    def price(self) -> Price:
        """Return the price of the stored waits of the cluster and of all queues, in each grouping."""
        waits = max(MAX_WAITS, self.history)
        ranges = max(self.cluster_counts[1], len(self.range_ends) + 1)
        borrowing = max(200_000_000, 900_000 * ranges**2)
        return Price(memory=500 * waits + 65 * max(50_000, 3_000 * ranges), steps=5_000 * self.history + borrowing)
