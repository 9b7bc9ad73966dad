"""The load of the follower on slurmctld, from the output of `sdiag`."""

from collections.abc import Iterator
from typing import NamedTuple

from shadowtime.shared.accounting import whole_number

SDIAG = ("sdiag",)


class Load(NamedTuple):
    """The load of a user on slurmctld: `requests`, and the `seconds` that they took, counted from `since` on.

    `time` is the clock of slurmctld. `unaccounted` counts the messages for slurmdbd that wait in slurmctld.
    """

    time: int
    since: int
    requests: int
    seconds: float
    unaccounted: int


def load_of(text: str, user: str) -> Load | None:
    """Return the load in the output of sdiag; None if the output has no time."""
    now = _stamp(text, "sdiag output at")
    if now is None:
        return None
    requests, spent = next(_spent_on(text, user), (0, 0))
    waiting = text.partition("DBD Agent queue size:")[2].partition("\n")[0]
    return Load(now, _stamp(text, "Data since") or now, requests, spent / 1e6, whole_number(waiting.strip()) or 0)


def _stamp(text: str, before: str) -> int | None:
    line = next((line for line in text.splitlines() if line.startswith(before)), "")
    return whole_number(line.rpartition("(")[2].rstrip(")"))


def _spent_on(text: str, user: str) -> Iterator[tuple[int, int]]:
    by_user = text.partition("by user")[2]
    for line in by_user.splitlines():
        if line.split("(")[0].strip() == user:
            parts = dict(part.split(":", 1) for part in line.split() if ":" in part)
            yield whole_number(parts.get("count", "")) or 0, whole_number(parts.get("total_time", "")) or 0
