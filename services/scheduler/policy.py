"""The protocol of scheduling policies, and functions that build their decisions."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Protocol

from shadowtime.services.scheduler.forecasting import Forecaster, Futures
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.tables import NEVER, Queue, Running
from shadowtime.services.scheduler.work_limits import MAX_STARTS
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import (
    Again,
    Backfilled,
    Chosen,
    ClusterOpened,
    CutShort,
    Decision,
    Evaluated,
    Event,
    FitsNow,
    Reason,
    Start,
    construct_unchecked,
)

FITS_NOW = FitsNow()

GOOD_PREDICTOR = "empirical"
"""Default predictor of the policies that plan with predictions (docs/choosing-best.md#the-predictor)."""

Output = Decision | Evaluated | CutShort | Chosen | Again


class Policy(Protocol):
    """A scheduling policy. It is deterministic, reads no clock, does no I/O, and does not change its arguments.

    A policy may have state. The state changes only in `observe`, `beside`, `note_revisions` and `schedule`. The
    snapshot contains the whole state.
    """

    name: ClassVar[str]
    Settings: ClassVar[type[PolicySettings]]
    settings: PolicySettings
    predictor: ClassVar[str] = "requested"
    """SPEC of the run-time predictor if the run does not name one. Policies from papers plan with requests."""
    as_easy: ClassVar[bool] = False
    """Whether the policy protects one job, as EASY does: no later job delays the first job that does not fit."""
    starts_only: bool = True
    """Whether the policy only starts jobs on their requested processors. If so, it decides nothing if no job fits."""
    pool: int = 0
    """Index of the pool that the policy decides for, counted from 0."""
    order_name: ClassVar[str] = "fcfs"
    """Name of the order that `served` returns, for explanations. A key `queue` of the settings overrides it."""
    sees_all: bool = False
    """Whether the policy also observes the jobs of other pools. If so, `beside` is called with their events."""

    def __init__(self, settings: Any) -> None:
        vars(self)["settings"] = settings  # an assignment would fix its type for all subclasses

    def open(self, opened: ClusterOpened) -> None:
        """Read the settings of the run before any event. Most policies need none."""
        return  # not abstract

    def forecaster(self) -> Forecaster | None:
        """Return the forecaster of waits under this policy; None if there is none, or the settings ask for none."""
        return None

    def futures(self) -> Futures | None:
        """Return the sampled futures of this policy, even if no forecasts are configured; None if there are none."""
        return None

    def served(self, now: int, queue: Queue, idle: Integers) -> Integers | None:
        """Return the rows of the queue in the order in which they are served; None if there is no single order.

        Explanations of waits show this order. It decides nothing: `schedule` does.
        """
        return None

    def named_order(self) -> str:
        """Return the name of the order that `served` returns."""
        return str(getattr(self.settings, "queue", None) or self.order_name)

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> "Sequence[Output]":
        """Return the decisions at a scheduling point, and reports: evaluated candidates, and skipped parts of the pass.

        Two more outputs are a newly chosen configuration, and a request for a scheduling point. Work and output are
        bounded, see `services.scheduler.work_limits`.

        Parameters
        ----------
        now
            The time in seconds.
        queue
            The waiting jobs, in order of (submit time, job number).
        running
            The running jobs, in the same order.
        free
            Idle processors; below zero when the machine has shrunk or a recorded log overlaps. `running.free` adds the
            free amounts of further resources. The column `sizes` of either table has the amounts that jobs take.
        """
        ...

    def force_pass(self) -> None:
        """Make the next `schedule` a pass over the whole queue. Only policies with timed passes need this."""
        return  # not abstract

    def note_revisions(self) -> None:
        """Record that planned times of jobs have changed without an event. Most policies ignore this."""
        return  # not abstract

    def observe(self, event: Event) -> None:
        """Update the state by an event. Most policies have no state."""

    def beside(self, event: Event) -> None:
        """Update the state by an event of a job in another pool. Only called if `sees_all`."""
        return  # not abstract

    def share(self, first: Any) -> None:
        """Replace this policy's state about the whole machine by that of `first`, the policy of the first pool.

        Only called if `sees_all`, after `open`, on machines with several pools. Most policies share no state.
        """
        return  # not abstract

    def snapshot(self) -> Any:
        """Return the whole state as plain values; None without state."""
        return None

    def own_snapshot(self) -> Any:
        """Return the state without the part that it shares with the policy of the first pool."""
        return self.snapshot()

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` or `own_snapshot` returned."""


def start(queue: Queue, row: int, reason: Reason) -> Start:
    """Return the decision to start the job in `row` of the queue, with its requested processors and run time."""
    number = int(queue.job_number[row])
    _, _, processors, limit = queue.rows[number][:4]
    return construct_unchecked(
        Start,
        job_number=number,
        processors=processors,
        limit=None if limit >= NEVER else limit,
        reason=reason,
    )


def start_heads(queue: Queue, rows: Sequence[int]) -> list[Start]:
    """Return the starts of the jobs in `rows`, rows of the queue that fit together."""
    return [start(queue, row, FITS_NOW) for row in rows]


def within_limit(decisions: Sequence[Output], waiting: int) -> Sequence[Output]:
    """Return the decisions of a pass with its first `MAX_STARTS` starts.

    If there are more starts, a `CutShort` has the number of jobs that still wait, of `waiting` before the pass.
    """
    starts = [at for at, decision in enumerate(decisions) if type(decision) is Start]
    beyond = set(starts[MAX_STARTS:])
    if not beyond:
        return decisions
    kept = [decision for at, decision in enumerate(decisions) if at not in beyond]
    return [*kept, CutShort(by="starts", left=waiting - MAX_STARTS)]


def backfilled(head: int, shadow_time: int, extra: int, now: int, expected_end: int) -> Backfilled:
    """Return the reason to start a job ahead of the blocked job `head` under EASY. Times are in seconds."""
    return construct_unchecked(
        Backfilled,
        head=head,
        shadow_time=shadow_time if shadow_time - now <= MAX_DURATION else None,
        extra_processors=extra,
        expected_end=expected_end if expected_end - now <= MAX_DURATION else None,
        ends_by_shadow_time=expected_end <= shadow_time,
    )


def backfills(
    now: int, queue: Queue, rows: Iterable[int], run_times: Integers, head: int, shadow_time: int, extra: int
) -> list[Start]:
    """Return the starts of jobs ahead of a blocked head.

    Parameters
    ----------
    rows
        Rows of these jobs in the queue, in the order in which EASY accepts them.
    run_times
        Run time of each row of the queue, in seconds.
    head, shadow_time, extra
        The head's job number and shadow time, and the extra processors before the first of these starts.
    """
    starts = []
    for row in rows:
        reason = backfilled(head, shadow_time, extra, now, now + int(run_times[row]))
        starts.append(start(queue, row, reason))
        if not reason.ends_by_shadow_time:
            extra -= int(queue.processors[row])

    return starts
