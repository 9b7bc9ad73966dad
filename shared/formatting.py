"""Events, reasons and predictions in words, for terminals and the live page.

What people named (clusters, runs) may be anything: it is passed on without characters that a terminal would obey.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from shadowtime.shared.command_line import plain
from shadowtime.shared.decisions import CutShort
from shadowtime.shared.events import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    JobEnded,
    JobStarted,
    JobSubmitted,
    Rejected,
)
from shadowtime.shared.predictions import ChangePoint, Coverage, WaitBound
from shadowtime.shared.reasons import Backfilled, FitsNow, ProbablyHarmless, Reason, Reserved, Speculated

DAY = 86_400
OUTCOMES = {"over": "which was enough", "under": "too short", "bad": "too short by half an hour or more"}
"""What became of adjusted requests, by class."""


class Line(NamedTuple):
    """What happened, to which job, in words."""

    event: str
    job: int | None
    words: str


def clock(second: int) -> str:
    """Return a second of the log as days and time of day since its beginning.

    >>> clock(93_784), clock(-1)
    ('1 d 02:03:04', '-1 d 23:59:59')
    """
    days, rest = divmod(second, DAY)
    return f"{days} d {rest // 3600:02}:{rest % 3600 // 60:02}:{rest % 60:02}"


def duration(seconds: float | None) -> str:
    """Return a time as a person reads it.

    >>> duration(93784), duration(90), duration(5), duration(None)
    ('26.1 h', '1.5 min', '5 s', '-')
    """
    if seconds is None:
        return "-"
    if seconds >= 3600:
        return f"{seconds / 3600:,.1f} h"
    return f"{seconds / 60:.1f} min" if seconds >= 60 else f"{seconds:.0f} s"


def work(processor_seconds: float) -> str:
    """Return processors times time as a person reads it.

    >>> work(864_000), work(5400), work(90)
    ('10.0 processor days', '1.5 processor hours', '90 processor seconds')
    """
    for unit, name in ((DAY, "days"), (3600, "hours")):
        if processor_seconds >= unit:
            return f"{processor_seconds / unit:,.1f} processor {name}"
    return f"{processor_seconds:.0f} processor seconds"


def lines(envelope: Envelope) -> Iterator[Line]:
    """Yield what an event tells in words; nothing where there is nothing to tell, as of an empty decision."""
    event = envelope.event
    if isinstance(event, ClusterOpened):
        yield Line("opened", None, f"{_processors(event.processors)}, {event.mode}, {plain(event.policy)}")
    elif isinstance(event, JobSubmitted):
        yield Line("submitted", event.job_number, "; ".join(_submission(envelope, event)))
    elif isinstance(event, JobStarted):
        limit = "" if event.limit is None else f", for {duration(event.limit)} at most"
        trial = ", on trial" if event.trial else ""
        words = (f"{_processors(event.processors)}{limit}{trial}", *_learned(envelope))
        yield Line("started", event.job_number, "; ".join(words))
    elif isinstance(event, JobEnded):
        again = ", waits again" if event.requeued else ""
        words = (f"{event.outcome} after {duration(event.run_time)}{again}", *_learned(envelope))
        yield Line("ended", event.job_number, "; ".join(words))
    elif isinstance(event, Decided):
        for kill in event.kills:
            yield Line("kill", kill.job_number, plain(kill.reason))
        for start in event.starts:
            yield Line("start", start.job_number, f"{_processors(start.processors)}: {because(start.reason)}")
        for cut in event.cut_short or ():
            yield Line("cut short", None, left_undone(cut))
    elif isinstance(event, CapacityChanged):
        yield Line("capacity", None, f"the machine has {_processors(event.processors)}")
    elif isinstance(event, Rejected):
        yield Line("rejected", None, plain(event.reason))
    elif isinstance(event, ClusterClosed):
        yield Line("closed", None, _outcome(envelope))


def because(reason: Reason) -> str:
    """Return why a job is started.

    >>> because(Backfilled(head=3, shadow_time=7200, extra_processors=2, ends_by_shadow_time=True))
    'ahead of job 3, ends by its shadow time 0 d 02:00:00'
    """
    match reason:
        case FitsNow():
            return "fits now"
        case Backfilled(shadow_time=None):
            return f"ahead of job {reason.head}, which cannot start however long is waited"
        case Backfilled(ends_by_shadow_time=True):
            return f"ahead of job {reason.head}, ends by its shadow time {clock(reason.shadow_time or 0)}"
        case Backfilled():
            extra = _processors(reason.extra_processors)
            return f"ahead of job {reason.head}, beside it: {extra} extra at {clock(reason.shadow_time or 0)}"
        case ProbablyHarmless():
            left = f", budget left {reason.budget_left:.3g}" if reason.budget_left < 1 else ""
            gain = "" if reason.cost_of_gain is None else f", cost of gain {reason.cost_of_gain:.3g}"
            if reason.recalibrated is None:
                stated = f"{reason.probability:.3g}"
            else:
                stated = f"{reason.recalibrated:.3g} (raw {reason.probability:.3g})"
            return f"ahead of job {reason.head}, delays it with probability {stated}{gain}{left}"
        case Reserved(guaranteed_start=None):
            return "its place in the plan has come"
        case Reserved():
            return f"its place in the plan has come, guaranteed by {clock(reason.guaranteed_start or 0)}"
        case Speculated():
            what = "test run" if reason.test_run else f"attempt {reason.attempt}"
            return f"{what} in a hole of the plan" + ("" if reason.hole is None else f" of {duration(reason.hole)}")


def left_undone(cut: CutShort) -> str:
    """Return what a pass left undone, as its work is bounded.

    >>> left_undone(CutShort(by="walks", left=1200))
    'too much to weigh: 1,200 candidates went by plain EASY'
    """
    match cut.by:
        case "walks":
            return f"too much to weigh: {cut.left:,} candidates went by plain EASY"
        case "depth":
            return f"too much to plan: {cut.left:,} waiting jobs were passed over"
        case "starts":
            return f"as many started as may at once: {cut.left:,} waiting jobs were left to the next pass"


def chosen(bounds: Sequence[WaitBound]) -> WaitBound | None:
    """Return the bound to name where there is room for one: the ensemble's, else the first that there is.

    Not the lowest: the lowest of several holds less often than each of them.
    """
    known = [each for each in bounds if each.queue is None and each.bound is not None]
    return next((each for each in known if each.grouping == "ensemble"), known[0] if known else None)


def bounded(bound: WaitBound) -> str:
    """Return what a bound on the wait says.

    >>> bounded(WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=7200))
    'waits at most 2.0 h (plain, 95 %)'
    """
    scope = bound.grouping if bound.queue is None else f"{bound.grouping}, queue {bound.queue}"
    if bound.bound is None:
        return f"no bound ({plain(scope)}: {plain(bound.reason or 'unknown')})"
    return f"waits at most {duration(bound.bound)} ({plain(scope)}, {100 * bound.quantile:.4g} %)"


def _submission(envelope: Envelope, job: JobSubmitted) -> Iterator[str]:
    asks = "" if job.requested_time is None else f", asks for {duration(job.requested_time)}"
    yield f"{_processors(job.requested_processors)}{asks}"
    if envelope.run_time is not None and envelope.run_time.observations:
        yield f"expected to run {duration(envelope.run_time.point)}"
    if envelope.adjustment is not None and envelope.adjustment.key is not None:
        yield f"adjusted to {duration(envelope.adjustment.adjusted_time)}"
    if (bound := chosen(envelope.wait_bounds)) is not None:
        yield bounded(bound)
    elif envelope.wait_bounds:
        yield bounded(envelope.wait_bounds[0])
    if envelope.forecast is not None:
        reason, wait = envelope.forecast.reason, envelope.forecast.wait
        yield f"no forecast ({plain(reason or 'unknown')})" if wait is None else f"forecast to wait {duration(wait)}"


def _learned(envelope: Envelope) -> Iterator[str]:
    """Yield how earlier predictions fared, as far as a start or an end brought it to light."""
    if envelope.adjustment is not None and (outcome := envelope.adjustment.outcome) is not None:
        to = duration(envelope.adjustment.adjusted_time)
        yield f"adjusted to {to}, {OUTCOMES[outcome]}" if outcome in OUTCOMES else "not adjusted"
    if envelope.coverage:
        yield "waits within bounds: " + ", ".join(map(_covered, envelope.coverage))
    for each in envelope.change_points:
        yield f"change point of {_scope(each)}: {each.misses} misses in a row, {each.kept} waits kept"


def _covered(told: Coverage) -> str:
    as_it_should_be = told.low <= told.covered <= told.high
    band = "" if as_it_should_be else f" (not {100 * told.low:.1f} to {100 * told.high:.1f} %)"
    return f"{_scope(told)} {100 * told.covered:.1f} %{band}"


def _scope(of: Coverage | ChangePoint) -> str:
    return plain(of.grouping if of.queue is None else f"{of.grouping} of queue {of.queue}")


def _outcome(envelope: Envelope) -> str:
    if envelope.scores is None or envelope.scores.policy.mean_wait is None:
        return "the run is over"
    scores = envelope.scores.policy
    slowdown = "" if scores.mean_bounded_slowdown is None else f", slowdown {scores.mean_bounded_slowdown:,.2f}"
    return f"the run is over: {scores.jobs:,} jobs, mean wait {duration(scores.mean_wait)}{slowdown}"


def _processors(count: int) -> str:
    return f"{count:,} processor{'s' * (count != 1)}"
