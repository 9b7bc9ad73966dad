"""The two lines that `sbatch` prints after a submission (`stack/slurm/cli_filter.lua`), from the advice about a job."""

from collections.abc import Sequence
from itertools import pairwise

from shadowtime.services.processes.ask.alternatives import Alternative
from shadowtime.shared.formatting import duration
from shadowtime.shared.messages import StartOutlook
from shadowtime.shared.stages import wait_given
from shadowtime.shared.text import start_in

OLD = 600
"""Seconds after which the log is too old for an answer: the follower is away."""

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
    early, late = (wait_given(futures, 0, share) for share in (0.1, 0.9))
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
    """Return the wait that is as likely exceeded as not, in seconds; else its mean; None without a forecast."""
    if len(choice.starts_within) > 1 and all(low <= high for (_, low), (_, high) in pairwise(choice.starts_within)):
        median = wait_given(choice.starts_within, 0, 0.5)
        if median is not None:
            return median
    return None if choice.mean_wait is None else round(choice.mean_wait)
