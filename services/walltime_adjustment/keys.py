"""Keys of a job: the traits that similar earlier jobs share with the job. The request is adjusted by these jobs."""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from shadowtime.shared.messages import JobSubmitted

MONTH = 30 * 86_400
"""Length of a month in seconds."""

WINDOWS = {**{f"{months}m": float(months * MONTH) for months in (1, 2, 3, 6, 12)}, "all": float("inf")}
"""Length of each window of the past in seconds, by its name in a SPEC."""

Key = tuple[int | None, ...]


class Traits(NamedTuple):
    """The traits of a job that make up keys: user, project (its group ID) and request in seconds."""

    user: int | None
    project: int | None
    request: int

    @classmethod
    def of(cls, job: JobSubmitted, requested_time: int) -> "Traits":
        """Return the traits of a job with a request."""
        return cls(job.user_id, job.group_id, requested_time)

    def key(self, name: str) -> Key:
        """Return the values of a key. A missing value is None, and equals the missing value of any other job.

        So in a log without projects, a key has the same groups with and without the project.

        >>> Traits(user=7, project=None, request=3600).key("user+project+request")
        (7, None, 3600)
        """
        return VALUES[name](self)


VALUES: dict[str, Callable[[Traits], Key]] = {
    "user": itemgetter(slice(0, 1)),
    "project": itemgetter(slice(1, 2)),
    "user+project": itemgetter(slice(0, 2)),
    "user+request": itemgetter(0, 2),
    "project+request": itemgetter(slice(1, 3)),
    "user+project+request": itemgetter(slice(0, 3)),
}

KEYS = tuple(VALUES)


def coarser(name: str) -> list[str]:
    """Return the key and its coarser keys, finest first. All have the first part of the key.

    >>> coarser("user+project+request")
    ['user+project+request', 'user+request', 'user+project', 'user']
    """
    parts = name.split("+")
    return [key for key in reversed(KEYS) if parts[0] in key.split("+") and {*key.split("+")} <= {*parts}]
