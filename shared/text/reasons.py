"""The reasons of decisions, in words: the context of a run, reasons, and the unfinished work of a pass."""

from collections.abc import Callable
from typing import NamedTuple

from shadowtime.shared.formatting import clock, counted, duration, percent
from shadowtime.shared.messages import (
    Backfilled,
    ClusterOpened,
    CutShort,
    Decided,
    FitsNow,
    ProbablyHarmless,
    Reason,
    Reserved,
    Speculated,
)

REASON_NAMES = {
    "fits-now": "fits, nothing waits ahead",
    "backfilled": "backfilled",
    "probably-harmless": "backfilled at a risk",
    "reserved": "as reserved",
    "speculated": "speculated",
}
"""The kind of each reason in a few words, for legends."""

BY_REQUESTS = {"probabilistic", "guarded", "tuned"}
"""Policies that plan the ends of running jobs by their requests, even if they have predictions."""


class RunContext(NamedTuple):
    """Known facts about a run, for texts.

    `unix_start` is the Unix time of second 0; 0 if unknown. `obeyed` states whether decisions are carried out; None if
    unknown. `member` is the portfolio member that decided last. `plan` names the run times that the policy plans with:
    requests or predictions. It is None if the policy has both. `job_id` returns the id of a job from its number in the
    log. `pools` are the names of the pools.
    """

    unix_start: int = 0
    obeyed: bool | None = None
    member: str | None = None
    plan: str | None = None
    job_id: Callable[[int], str] = str
    pools: tuple[str, ...] = ()

    @classmethod
    def of(cls, opened: ClusterOpened) -> "RunContext":
        """Return the context from the first event of a run."""
        return cls(
            opened.unix_start,
            opened.mode == "closed",
            plan=_plan(opened),
            pools=tuple(pool.name for pool in opened.pools or ()),
        )

    def after(self, decided: Decided) -> "RunContext":
        """Return the context after a decision."""
        return self if decided.chosen is None else self._replace(member=decided.chosen.member)


def _plan(opened: ClusterOpened) -> str | None:
    policy = opened.policy
    if policy.partition("(")[0] in BY_REQUESTS or "plan=requested" in policy:
        return "requests"
    if not policy.startswith("easy") and "plan=predicted" not in policy:
        return None
    return "requests" if opened.runtime == "requested" else "predictions"


UNKNOWN = RunContext()
"""Context of a run whose first event was not read."""


def describe_reason(reason: Reason, log: RunContext = UNKNOWN, now: int | None = None) -> str:
    """Return the reason for a job's start, in words. Times on the day of `now` have no date.

    The start of the head is the one that the policy plans. It is not the expected start that other texts state.

    >>> describe_reason(Backfilled(head=3, shadow_time=7200, extra_processors=2, ends_by_shadow_time=True), now=0)
    'backfilled, ends by 02:00:00, when job 3 can start as planned'
    """

    def at(second: int | None) -> str:
        return clock(second or 0, log.unix_start, now)

    planned = " as planned" if log.plan is None else f" by {log.plan}"

    match reason:
        case FitsNow():
            return "nothing waits ahead of it, and it fits"
        case Backfilled(shadow_time=None):
            return f"backfilled, job {log.job_id(reason.head)} does not fit even when all running jobs have ended"
        case Backfilled(ends_by_shadow_time=True):
            return (
                f"backfilled, ends by {at(reason.shadow_time)}, when job {log.job_id(reason.head)} can start{planned}"
            )
        case Backfilled():
            left_over = f"{procs(reason.extra_processors)} left over at {at(reason.shadow_time)}{planned}"
            return f"backfilled, on what job {log.job_id(reason.head)} leaves: {left_over}"
        case ProbablyHarmless():
            left = f", budget left {percent(reason.budget_left, '.3g')}" if reason.budget_left < 1 else ""
            gain = "" if reason.cost_of_gain is None else f", cost of gain {reason.cost_of_gain:.3g}"
            if reason.recalibrated is None:
                stated = percent(reason.probability, ".3g")
            else:
                stated = f"{percent(reason.recalibrated, '.3g')} (raw {percent(reason.probability, '.3g')})"

            return f"backfilled, delays job {log.job_id(reason.head)} with {stated}{gain}{left}"
        case Reserved(guaranteed_start=None):
            return "its place in the plan has come"
        case Reserved():
            return f"its place in the plan has come, guaranteed by {at(reason.guaranteed_start)}"
        case Speculated():
            what = "test run" if reason.test_run else f"attempt {reason.attempt}"
            return f"{what} in a hole of the plan" + ("" if reason.hole is None else f" of {duration(reason.hole)}")


def left_undone(cut: CutShort) -> str:
    """Return in words the part of a pass that was skipped, because the work of a pass is bounded.

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


def procs(count: int) -> str:
    """Return a number of processors as text.

    >>> procs(1), procs(1024)
    ('1 proc', '1,024 procs')
    """
    return counted(count, "proc")
