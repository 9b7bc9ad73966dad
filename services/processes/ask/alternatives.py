"""Alternatives to a job's request: other times and sizes, and the best of them."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from pydantic import Field

from shadowtime.shared.formatting import duration
from shadowtime.shared.messages import (
    FrozenModel,
    Probability,
    Processors,
    Request,
    Seconds,
    StartOutlook,
    ratio,
    reshaped_time,
)
from shadowtime.shared.stages import NOT_YET, RiskOfRequests, wait_given
from shadowtime.shared.text import start_in

RISKS = (0.01, 0.05, 0.25)
"""Probabilities of being cut. For each of them and for the accepted one, a request is proposed."""

MINUTE = 60


class AlternativeShape(NamedTuple):
    """A size in processors, and a requested time in seconds."""

    processors: int
    requested_time: int


class Alternative(FrozenModel):
    """One way to request the job, and its expected outcome."""

    processors: Processors = Field(description="processors that it requests")
    requested_time: Request = Field(description="seconds that it requests")
    cut: Probability | None = Field(description="probability of being cut at that request; null if unknown")
    mean_wait: float | None = Field(description="mean wait over the futures, in seconds; null without a forecast")
    mean_end: float | None = Field(
        description="mean seconds until the job would end on this size if it were not cut; null if unknown"
    )
    starts_within: tuple[tuple[Probability, Seconds], ...] = Field(
        description="pairs of a probability and the seconds within which the job starts with this probability"
    )
    reason: str | None = Field(default=None, description="why no start is forecast")
    pareto_best: bool = Field(
        default=False,
        description="whether no other has an earlier end and no larger risk, or a smaller risk and no later end",
    )
    advised: bool = Field(
        default=False, description="whether it ends earliest among the alternatives with an accepted risk"
    )


UNCHECKED = 0.5
"""Share of the accepted risk that a request longer than the job's own may have. No outcome checks such a risk, because
the full run time of a cut job is unknown. Most cut jobs that were submitted again with more time ran longer than the
predicted tail says (docs/advice.md)."""


class RiskQuestion(NamedTuple):
    """The risk of a job of being cut, the risk that is accepted, and the longest request to try, in seconds."""

    of: RiskOfRequests
    accepted: float
    longest: int


def requests(own: int, question: RiskQuestion | None) -> tuple[int, ...]:
    """Return the requests to consider for a job, in seconds, its own first.

    For the accepted risk and for each of `RISKS`, the shortest request with at most this risk is added, in whole
    minutes. Requests longer than the job's own are left out. If the job's own request exceeds the accepted risk, three
    doublings of it are added: the first doubling, the first with at most `UNCHECKED` of the accepted risk, and the
    first with at most the least of `RISKS`. Doublings end at the longest request to try.

    >>> class Risk:
    ...     of, needed = staticmethod(lambda time: min(360 / time, 1)), staticmethod(lambda risk: round(360 / risk))
    >>> requests(7200, RiskQuestion(Risk(), 0.1, 90_000))
    (7200, 3600, 1440)
    >>> requests(1800, RiskQuestion(Risk(), 0.05, 90_000)), requests(1800, RiskQuestion(Risk(), 0.05, 5_000))
    ((1800, 1440, 3600, 14400, 57600), (1800, 1440, 3600, 5000))
    """
    if question is None:
        return (own,)
    risk, accepted, longest = question
    shorter = [-(-risk.needed(level) // MINUTE) * MINUTE for level in sorted({accepted, *RISKS})]
    tried = [own, *(request for request in shorter if request < own)]
    if risk.of(own) > accepted and longest > own:
        request = min(2 * own, longest)
        tried.append(request)
        for level in (UNCHECKED * accepted, min(RISKS)):
            while risk.of(request) > level and request < longest:
                request = min(2 * request, longest)
            tried.append(request)
    return tuple(dict.fromkeys(tried))


def shapes(own: AlternativeShape, question: RiskQuestion | None, largest: int = 0) -> tuple[AlternativeShape, ...]:
    """Return the sizes and requests to consider, the job's own size and request first.

    Half and twice its own size are added, up to `largest` processors. Each size has the same `requests`, scaled for the
    same work.

    >>> for shape in shapes(AlternativeShape(4, 7200), None, largest=6):
    ...     print(*shape)
    4 7200
    2 14400
    """
    processors, requested_time = own
    sizes = [processors, *(size for size in (processors // 2, 2 * processors) if 1 <= size <= largest)]
    return tuple(
        AlternativeShape(size, reshaped_time(request, ratio(processors, size, None)))
        for size in sizes
        for request in requests(requested_time, question)
    )


def risk_of(shape: AlternativeShape, processors: int, risk: RiskOfRequests | None) -> float | None:
    """Return the probability that a job which requests `processors` is cut in another shape; None if it is unknown."""
    if risk is None:
        return None
    times, divided = ratio(processors, shape.processors, None)
    return round(risk.of(shape.requested_time * divided / times), 6)


ROUNDED = 0.001
"""Tolerance for the work of other sizes, whose times are rounded up."""


def work(alternative: Alternative) -> int:
    """Return the requested work of an alternative, in processor-seconds."""
    return alternative.processors * alternative.requested_time


def marked(alternatives: Sequence[Alternative], risk: float) -> tuple[Alternative, ...]:
    """Return the alternatives with `pareto_best` and `advised` set. O(n^2).

    The first alternative is the job of the question. An alternative is accepted if its risk of being cut is at most
    `risk`, or at most `UNCHECKED` of it if the alternative requests more work than the job. Of the accepted
    alternatives, the one that ends earliest is advised. If several end in the same minute, the one with the least risk
    is advised. If no end is forecast, the first accepted one is advised. None is advised if none is accepted.
    """
    figures = [
        None if alternative.mean_end is None or alternative.cut is None else (alternative.mean_end, alternative.cut)
        for alternative in alternatives
    ]
    known = [pair for pair in figures if pair is not None]
    most = max(map(work, alternatives[:1]), default=0) * (1 + ROUNDED)
    best = [
        pair is not None and not any(all(map(float.__le__, other, pair)) and other != pair for other in known)
        for pair in figures
    ]
    low = [
        (at, math.inf if option.mean_end is None else round(option.mean_end / MINUTE), option.cut)
        for at, option in enumerate(alternatives)
        if option.cut is not None and option.cut <= (UNCHECKED * risk if work(option) > most else risk)
    ]
    forecast = any(end < math.inf for _, end, _ in low)
    first = min(low, key=lambda row: row[1:] if forecast else row[0], default=None)
    advised = None if first is None else first[0]
    return tuple(
        option.model_copy(update={"pareto_best": best[at], "advised": at == advised})
        for at, option in enumerate(alternatives)
    )


# The two lines that `sbatch` prints after a submission (`stack/slurm/cli_filter.lua`).

OLD = 600
"""Seconds after which the log is too old for a hint, because the follower is down."""

WORTH = 60.0
"""Least number of seconds that another limit must save."""


def hint(alternatives: Sequence[Alternative], log_age: int | None = None) -> str:
    """Return at most two lines: when the job starts, and with which limit it would start sooner.

    `alternatives` are those of the advice, the job as asked about first; `log_age` is the age of the log in seconds.

    The text is empty if nothing is known, or if the log is old. The limit is the one that the advice marks, on the same
    number of processors. No other job is named.
    """
    own, *others = alternatives
    if log_age is not None and log_age > OLD:
        return ""
    wait = _wait(own)
    if wait is None:
        return ""
    futures = own.starts_within
    early, late = (wait_given(futures, NOT_YET, share) for share in (0.1, 0.9))
    outlook = StartOutlook(expected=wait, earliest=early, latest=late)
    if early is not None and late is not None and not early <= wait <= late:
        outlook = StartOutlook(expected=wait)
    lines = [start_in(outlook, 0)]
    better = next((choice for choice in others if choice.advised and choice.processors == own.processors), None)
    sooner = None if better is None else _wait(better)
    if better is not None and sooner is not None and sooner + max(WORTH, 0.1 * wait) <= wait:
        limits = f"with a limit of {duration(better.requested_time)} instead of {duration(own.requested_time)}"
        lines.append(f"{limits}: {'now' if sooner <= 0 else duration(sooner)}")
    return "".join(f"{line}\n" for line in lines)


def _wait(choice: Alternative) -> int | None:
    """Return the median of the wait in seconds, or its mean if the median is unknown; None without a forecast."""
    if len(choice.starts_within) > 1 and all(low <= high for (_, low), (_, high) in pairwise(choice.starts_within)):
        median = wait_given(choice.starts_within, NOT_YET, 0.5)
        if median is not None:
            return median
    return None if choice.mean_wait is None else round(choice.mean_wait)
