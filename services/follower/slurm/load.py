"""The load of the follower on slurmctld, from the output of `sdiag`."""

import re
from typing import NamedTuple

from shadowtime.shared.accounting import whole_number

SDIAG = ("sdiag",)

_OF_USER = re.compile(r"\(\s*(\d+)\)\s+count:(\d+)\s.*total_time:(\d+)")
"""A line of sdiag about one user: the number of the user, and the requests and microseconds since the last reset."""


class Load(NamedTuple):
    """The load of a user on slurmctld: `requests`, and the `seconds` that they took, counted from `since` on.

    `time` is the clock of slurmctld. `time` and `since` are Unix seconds. `unaccounted` counts the messages for
    slurmdbd that wait in slurmctld. `seconds` is None if slurmctld does not list the user.
    """

    time: int
    since: int
    requests: int
    seconds: float | None
    unaccounted: int


def load_of(text: str, user: int) -> Load | None:
    """Return the load of a user, by number, in the output of sdiag; None if the output has no time."""
    now = _stamp(text, "sdiag output at")
    if now is None:
        return None
    lines = map(_OF_USER.search, text.partition("by user")[2].splitlines())
    requests, spent = next(
        ((int(line[2]), int(line[3]) / 1e6) for line in lines if line and int(line[1]) == user), (0, None)
    )
    waiting = text.partition("DBD Agent queue size:")[2].partition("\n")[0]
    return Load(now, _stamp(text, "Data since") or now, requests, spent, whole_number(waiting.strip()) or 0)


def _stamp(text: str, before: str) -> int | None:
    line = next((line for line in text.splitlines() if line.startswith(before)), "")
    return whole_number(line.rpartition("(")[2].rstrip(")"))
