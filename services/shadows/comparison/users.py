"""Waits of each user's jobs in both logs, for the users with the most work; memory is bounded."""

from collections.abc import Iterator
from typing import Any

from shadowtime.services.shadows.comparison.day_sums import NOTICED
from shadowtime.services.shadows.comparison.open_days import ComparedJob

MAX_USERS = 500
"""Maximum number of users with separate sums. Beyond it, the user with the least work so far joins the others."""

OTHERS = -2
"""Number of all other users together. -1 is the number of an unknown user."""

JOBS, WORK, REAL_WAIT, SHADOW_WAIT, REAL_LONGEST, SHADOW_LONGEST, SOONER, LATER = range(8)


class UserSums:
    """Sums over the jobs of each user: `JOBS`, `WORK`, …. A job costs O(1), or O(`MAX_USERS`) if its user is new.

    >>> users = UserSums()
    >>> users.add(ComparedJob(0, 12, 60, (100, 10), (2.0, 1.0)))
    >>> dict(users.by_work())
    {12: [1, 60, 100, 10, 100, 10, 1, 0]}
    """

    def __init__(self) -> None:
        self._users: dict[int, list[int]] = {}

    def add(self, job: ComparedJob) -> None:
        """Add a job to the sums of its user."""
        real, shadow = job.waits
        sums = [1, job.work, real, shadow, real, shadow, int(real - shadow >= NOTICED), int(shadow - real >= NOTICED)]
        self._join(job.user, sums)
        if len(self._users) - (OTHERS in self._users) > MAX_USERS:
            least = min((user for user in self._users if user != OTHERS), key=lambda user: self._users[user][WORK])
            self._join(OTHERS, self._users.pop(least))

    def _join(self, user: int, sums: list[int]) -> None:
        had = self._users.get(user)
        if had is not None:
            longest = max(had[REAL_LONGEST], sums[REAL_LONGEST]), max(had[SHADOW_LONGEST], sums[SHADOW_LONGEST])
            sums = [one + other for one, other in zip(had, sums, strict=True)]
            sums[REAL_LONGEST], sums[SHADOW_LONGEST] = longest
        self._users[user] = sums

    def by_work(self) -> Iterator[tuple[int, list[int]]]:
        """Yield users and their sums, in order of descending work; `OTHERS` comes last."""
        yield from sorted(self._users.items(), key=lambda entry: (entry[0] == OTHERS, -entry[1][WORK], entry[0]))

    def snapshot(self) -> Any:
        """Return the sums."""
        return list(self._users.items())

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        self._users = {user: list(sums) for user, sums in state}
