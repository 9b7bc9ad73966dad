"""How a pass of probabilistic backfilling goes on that may weigh no more."""

from shadowtime.services.scheduler.busy import Busy
from shadowtime.services.scheduler.limits import MAX_STARTS
from shadowtime.services.scheduler.policy import Output, backfills
from shadowtime.shared.arrays import Integers
from shadowtime.shared.decisions import CutShort
from shadowtime.shared.scheduling.easy import backfilled_rows, shadow_of


def as_easy(busy: Busy, rows: Integers, head: int, size: Integers, idle: Integers) -> list[Output]:
    """Return the starts of plain EASY on the requests, and how much was left. O(n log n).

    Parameters
    ----------
    busy
        What runs, and what the pass has started before: that stays where it is, as does what was weighed and left.
    rows
        The candidates that are left, as rows of the queue in the order in which they are tried.
    head, size, idle
        The head's job number, what it needs and what is idle, of each resource.
    """
    now, queue, requested = busy.now, busy.queue, busy.queue.requested_time
    shadow_time, extra = shadow_of(size, idle, busy.sizes, busy.requested_ends)
    accepted = backfilled_rows(now, idle, shadow_time, extra, queue.sizes, requested, rows).tolist()
    allowed, of_head = MAX_STARTS - busy.started, (head, shadow_time, int(extra[0]))
    decisions: list[Output] = [*backfills(now, queue, accepted[:allowed], requested, *of_head)]
    if len(accepted) > allowed:
        decisions.append(CutShort(by="starts", left=len(rows) - rows.tolist().index(accepted[allowed])))
    return [*decisions, CutShort(by="walks", left=len(rows))]
