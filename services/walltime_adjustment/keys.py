"""Keys of a job: the traits that similar earlier jobs share with the job. The request is adjusted by these jobs."""

from collections.abc import Callable
from operator import itemgetter
from typing import NamedTuple

from shadowtime.shared.messages import JobSubmitted

MONTH = 30 * 86_400
"""Length of a month in seconds."""

WINDOWS = {**{f"{months}m": float(months * MONTH) for months in (1, 2, 3, 6, 12)}, "all": float("inf")}

Key = tuple[int | None, ...]


class Traits(NamedTuple):
    """The traits of a job that make up keys. The trait `project` is the group ID of the Standard Workload Format."""

    user: int | None
    project: int | None
    request: int

    @classmethod
    def of(cls, job: JobSubmitted, requested_time: int) -> "Traits":
        """Return the traits of a job with a request."""
        return cls(job.user_id, job.group_id, requested_time)

    def key(self, name: str) -> Key | None:
        """Return the values of a key, or None if the job lacks one of them.

        >>> Traits(user=7, project=None, request=3600).key("user+request")
        (7, 3600)
        >>> Traits(user=7, project=None, request=3600).key("project")
        """
        values = VALUES[name](self)
        return None if None in values else values


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
    """Return the key and its coarser keys, finest first. Each lacks the last part of the key before it.

    >>> coarser("user+project+request")
    ['user+project+request', 'user+project', 'user']
    """
    parts = name.split("+")
    return ["+".join(parts[:length]) for length in range(len(parts), 0, -1)]
