"""Alternatives to a job's request: other times and sizes, and the best of them."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from pydantic import Field

from shadowtime.shared.distributions import cut_probability, quantile_of
from shadowtime.shared.messages import (
    FrozenModel,
    Histogram,
    Probability,
    Processors,
    Request,
    Seconds,
    ratio,
    reshaped_time,
)

RISKS = (0.01, 0.05, 0.25)
"""Probabilities of being cut. For each of them, a request is proposed."""

MINUTE = 60


class AlternativeShape(NamedTuple):
    """A size in processors, and a requested time in seconds."""

    processors: int
    requested_time: int


class Alternative(FrozenModel):
    """One way to request the job, and its expected outcome."""

    processors: Processors = Field(description="processors that it requests")
    requested_time: Request = Field(description="seconds that it requests")
    cut: Probability | None = Field(description="probability of being cut at that request; null where nothing tells")
    mean_wait: float | None = Field(description="mean wait over the futures, in seconds")
    mean_end: float | None = Field(description="mean seconds to its end, on this size, if it were not cut")
    starts_within: tuple[tuple[Probability, Seconds], ...] = Field(
        description="probabilities, and the seconds within which it starts with them"
    )
    reason: str | None = Field(default=None, description="why there is no telling when it starts")
    pareto_best: bool = Field(
        default=False, description="no other ends as early at as small a risk, and better in one of both"
    )
    advised: bool = Field(default=False, description="ends earliest of those whose risk is not above what was asked")


def shapes(
    own: AlternativeShape, histogram: Histogram, machine: int, *, moldable: bool, double: bool = False
) -> tuple[AlternativeShape, ...]:
    """Return the sizes and requests to consider, the job's own size and request first.

    A `moldable` job also has half and twice its own size, up to `machine` processors, with the same work. Each size
    has the job's own request, scaled for the same work. With `double`, it also has twice that request. A further
    request for each of `RISKS` is cut with that probability. It is in whole minutes, and must be shorter than the
    job's own request.

    >>> for shape in shapes(AlternativeShape(4, 7200), (0.0,) * 12 + (0.5, 0.5), machine=6, moldable=True):
    ...     print(*shape)
    4 7200
    4 2100
    4 1980
    4 1560
    2 14400
    2 4140
    2 3960
    2 3120
    """
    processors, requested_time = own
    sizes = [processors]
    if moldable:
        sizes += [size for size in (processors // 2, 2 * processors) if 1 <= size <= machine]
    masses, shares = np.array(histogram), []
    for size in sizes:
        by = ratio(processors, size, None)
        longest = reshaped_time(requested_time, by)
        shares.append(AlternativeShape(size, longest))
        if double:
            shares.append(AlternativeShape(size, 2 * longest))
        for risk in RISKS if masses.any() else ():
            needed = reshaped_time(math.ceil(quantile_of(masses, 1.0 - risk)), by)
            request = -(-needed // MINUTE) * MINUTE
            if request < longest:
                shares.append(AlternativeShape(size, request))

    return tuple(dict.fromkeys(shares))


def risk_of(shape: AlternativeShape, processors: int, histogram: Histogram) -> float | None:
    """Return the probability that a job which requests `processors` is cut in another shape.

    Return None if the histogram has no mass.

    >>> risk_of(AlternativeShape(2, 7200), 4, (0.0,) * 13 + (1.0,)), risk_of(AlternativeShape(2, 7200), 4, ())
    (0.0, None)
    """
    masses = np.array(histogram)
    if not masses.any():
        return None
    times, divided = ratio(processors, shape.processors, None)
    return round(min(cut_probability(masses, shape.requested_time * divided / times), 1.0), 6)


def marked(alternatives: Sequence[Alternative], risk: float) -> tuple[Alternative, ...]:
    """Return the alternatives with `pareto_best` and `advised` set. O(n^2).

    The first alternative is the job of the question. The advised alternative ends earliest among the alternatives that
    are cut with a probability of at most `risk`. If no alternative has such a probability, the first is advised.
    """
    figures = [
        None if alternative.mean_end is None or alternative.cut is None else (alternative.mean_end, alternative.cut)
        for alternative in alternatives
    ]
    known = [pair for pair in figures if pair is not None]
    best = [
        pair is not None and not any(all(map(float.__le__, other, pair)) and other != pair for other in known)
        for pair in figures
    ]
    low = [at for at, pair in enumerate(figures) if pair is not None and pair[1] <= risk]
    advised = min(low, key=lambda at: (figures[at] or (0.0, 0.0))[0], default=0)
    return tuple(
        option.model_copy(update={"pareto_best": best[at], "advised": at == advised})
        for at, option in enumerate(alternatives)
    )
