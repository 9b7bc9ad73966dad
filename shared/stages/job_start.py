"""The start of a waiting job: one answer from all predictions about it, given that it has waited until now."""

import math
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

from shadowtime.shared.messages import (
    StartOutlook,
    StartSource,
    WaitBound,
    WaitForecast,
    bound_to_show,
    construct_unchecked,
)

Quantiles = tuple[tuple[float, int], ...]
"""Pairs of a probability and a wait in seconds, both rising."""

EARLY, LIKELY = 0.1, 0.9
"""Probabilities of a start before the two ends of the interval."""

ALMOST_SURE = 0.95
"""Probability of a start before `StartOutlook.by_95`."""

SHARES = (EARLY, 0.5, LIKELY, ALMOST_SURE)

NOT_YET = -1
"""Wait, in seconds, of a job before its first pass. No wait is excluded yet, not even one of 0 seconds."""


class StartPredictions(NamedTuple):
    """The predictions of a job's start. A missing prediction is None or empty. Waits are in seconds.

    `forecast` is the forecast wait, and `futures` has its quantiles. `bounds` has the quantiles of the bound on the
    wait: one pair if only one quantile is bounded. `site` is the second of the log at which the site's scheduler
    expects the start.
    """

    forecast: int | None = None
    futures: Quantiles = ()
    bounds: Quantiles = ()
    site: int | None = None

    @classmethod
    def of(cls, forecast: WaitForecast | None, bounds: tuple[WaitBound, ...]) -> "StartPredictions":
        """Return the predictions in the envelope of a submission, without that of the site."""
        place = bound_to_show((bound.grouping, bound.queue, bound.bound) for bound in bounds)
        chosen = None if place is None else bounds[place]
        single = () if chosen is None or chosen.bound is None else ((chosen.quantile, chosen.bound),)
        quantiles = single if chosen is None else chosen.starts_within or single
        if forecast is None:
            return cls(bounds=quantiles)
        return cls(forecast.wait, forecast.starts_within or (), quantiles)

    def likely(self) -> tuple[float, int] | None:
        """Return the pair of `bounds` whose probability is nearest to `LIKELY`; None without bounds."""
        return min(self.bounds, key=lambda pair: abs(pair[0] - LIKELY), default=None)


def wait_given(quantiles: Quantiles, waited: int, share: float) -> int | None:
    """Return the wait that a job does not exceed with probability `share`, given that it exceeds `waited`, in seconds.

    Before its first pass, a job has waited for `NOT_YET`: it may still start at once. Between two quantiles the wait is
    uniform. The result is None if the quantiles do not determine it: beyond the last one, or with fewer than two.

    >>> quantiles = ((0.25, 60), (0.5, 120), (0.75, 240))
    >>> wait_given(quantiles, 0, 0.5), wait_given(quantiles, 120, 0.4), wait_given(quantiles, 120, 0.9)
    (120, 216, None)
    >>> at_once = ((0.5, 0), (0.75, 600))
    >>> wait_given(at_once, NOT_YET, 0.5), wait_given(at_once, 0, 0.5)
    (0, 600)
    """
    return waits_given(quantiles, waited, (share,))[0]


def waits_given(quantiles: Quantiles, waited: int, shares: Sequence[float]) -> list[int | None]:
    """Return `wait_given` for several shares. O(quantiles * shares)."""
    if len(quantiles) < 2:
        return [None] * len(shares)
    table = ((0.0, 0), *quantiles)
    reached = max((probability for probability, seconds in table if seconds <= waited), default=0.0)
    for (low, begin), (high, end) in pairwise(table):
        if begin <= waited < end:
            reached = max(reached, low + (high - low) * (waited - begin) / (end - begin))

    waits: list[int | None] = []
    for share in shares:
        wanted, wait = reached + share * (1.0 - reached), None
        for (low, begin), (high, end) in pairwise(table):
            if low < wanted <= high and end > waited:
                wait = max(waited, round(begin + (end - begin) * (wanted - low) / (high - low)))
                break
        waits.append(wait)
    return waits


def expected_start(
    now: int, since: int, predicted: StartPredictions, fits_at: int | None = None, *, goes_first: bool = False
) -> StartOutlook:
    """Return the expected start of a waiting job, from the best source.

    The sources are tried in this order: the expected ends of running jobs, for the job that goes first; the forecast;
    the site's scheduler, which was less accurate than the forecast wherever both were known; the bounds. A source whose
    start has passed is not used. No start is before the job fits, except those of the site. An end of the interval that
    contradicts the expected start is left out.

    Parameters
    ----------
    now
        The time in seconds. Starts until then are excluded. For the answer at the submission, it is `since + NOT_YET`.
    since
        When the job's wait began, in seconds.
    fits_at
        When enough running jobs are expected to have ended for the job to fit; None if that is unknown.
    goes_first
        Whether the job starts as soon as it fits.

    >>> expected_start(100, 0, StartPredictions(300, (), ((0.5, 120), (0.9, 600))))
    StartOutlook(source='forecast', expected=300, earliest=114, latest=None, by_95=None, passed=None)
    >>> expected_start(900, 0, StartPredictions(300, (), ((0.95, 600),)))
    StartOutlook(source=None, expected=None, earliest=None, latest=None, by_95=None, passed=600)
    >>> expected_start(100 + NOT_YET, 100, StartPredictions(0)).expected
    100
    """
    waited = now - since
    floor = max(now, fits_at or now)
    by_forecast, by_bounds = (waits_given(table, waited, SHARES) for table in (predicted.futures, predicted.bounds))
    first = goes_first and fits_at is not None
    medians = by_forecast[1], by_bounds[1]
    source, expected = ("releases", floor) if first else _expected(now, since, predicted, floor, medians)
    quantiles, waits = (predicted.bounds, by_bounds) if by_forecast[0] is None else (predicted.futures, by_forecast)
    earliest, _, latest, by_95 = (None if wait is None else since + wait for wait in waits)
    if len(quantiles) == 1:  # how its probability falls while the job waits is unknown: use that of the submission
        (probability, wait), *_ = quantiles
        if probability >= LIKELY and since + wait > now:
            latest = since + wait
            by_95 = latest if probability == ALMOST_SURE else None

    if expected is None:
        if latest is None:
            return StartOutlook(passed=_passed(now, since, predicted))
        if latest < floor:
            return StartOutlook()
        return StartOutlook(source="bounds", latest=latest, by_95=by_95 if by_95 is None or by_95 >= floor else None)
    if by_95 is not None and by_95 < expected:
        by_95 = None
    if earliest is not None and earliest > expected:
        earliest = None
    if latest is not None and latest < expected:
        latest = None
    known = {"earliest": earliest, "latest": latest, "by_95": by_95}
    return construct_unchecked(StartOutlook, source=source, expected=expected, **known)


def _expected(
    now: int, since: int, predicted: StartPredictions, floor: int, medians: tuple[int | None, int | None]
) -> tuple[StartSource | None, int | None]:
    median, bound = medians
    if median is None and predicted.forecast is not None and since + predicted.forecast > now:
        median = predicted.forecast
    if median is not None:
        return "forecast", max(since + median, floor)
    if predicted.site is not None and predicted.site > now:
        return "site", predicted.site
    return (None, None) if bound is None else ("bounds", max(since + bound, floor))


def _passed(now: int, since: int, predicted: StartPredictions) -> int | None:
    """Return the latest predicted start if all predicted starts have passed."""
    waits = [seconds for _, seconds in (*predicted.futures[-1:], *predicted.bounds[-1:])]
    if predicted.forecast is not None:
        waits.append(predicted.forecast)
    starts = [since + wait for wait in waits] + ([] if predicted.site is None else [predicted.site])
    latest = max(starts, default=None)
    return None if latest is None or latest > now else latest


# Whether the waiting jobs contradict a bound on waits.

HIGH = 0.05
"""A bound is marked if at least this share of the waiting jobs have waited longer than their bounds."""

SPREADS = 3.0
"""Standard deviations by which chance may lower the share of waits within a bound."""


class BoundDoubt(NamedTuple):
    """The waiting jobs that contradict a bound: `outwaited` of `waiting` jobs have waited longer than their bounds.

    A waiting job without its own bound is compared with the bound in question. `high` states whether their share is at
    least `HIGH`. `withdrawn` states whether the bound cannot hold.
    """

    outwaited: int
    waiting: int
    high: bool
    withdrawn: bool


def doubt_of(
    bound: WaitBound, waits: Iterable[tuple[int, int | None]], revealed: int = 0, covered: float = 1.0
) -> BoundDoubt | None:
    """Return whether the waiting jobs contradict a bound; None if none waits, or waits are not bounded from above.

    A bound cannot hold if the share of waits within it is lower than chance explains (three standard deviations). In
    this share, each job that waits within its bound counts as if it started now.

    Parameters
    ----------
    waits
        Seconds that each waiting job has waited, and its own bound of the same grouping; None if it got none.
    revealed, covered
        Number of the last known waits, and the share of them within their bounds.

    >>> bound = WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=60)
    >>> doubt_of(bound, [(10, None)] * 18 + [(61, None), (99, 100)])
    BoundDoubt(outwaited=1, waiting=20, high=True, withdrawn=False)
    >>> doubt_of(bound, [(61, None), (70, 60), (80, 60), (90, 60)], 16)
    BoundDoubt(outwaited=4, waiting=4, high=True, withdrawn=True)
    """
    if bound.bound is None:
        return None
    beyond = [wait > (bound.bound if own is None else own) for wait, own in waits]
    waiting, outwaited = len(beyond), sum(beyond)
    if not waiting:
        return None
    held = (revealed * covered + waiting - outwaited) / (revealed + waiting)
    least = bound.quantile - SPREADS * math.sqrt(bound.quantile * (1 - bound.quantile) / (revealed + waiting))
    return BoundDoubt(outwaited, waiting, outwaited >= HIGH * waiting, outwaited > 0 and held < least)
