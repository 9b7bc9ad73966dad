"""Classes of jobs of the same user, as simple predictors make them."""

from typing import Literal

from pydantic import Field

from shadowtime.services.runtime_distribution.remembered_jobs import UNKNOWN, RememberedJob, RememberingSettings

Key = tuple[int, ...]

MIN_ENDED = 2
"""Ended jobs without which nothing is said of a class."""


class OwnerClassSettings(RememberingSettings):
    """Settings of predictors that put jobs into such classes."""

    key: Literal["user", "user+processors", "user+executable", "user+executable+processors"] = Field(
        "user+processors", description="what the jobs of a class have in common"
    )

    def class_of(self, job: RememberedJob) -> Key | None:
        """Return the class of a job; None where that is not known of it.

        >>> job = RememberedJob(60, -1, 4, 7, -1, -1, -1, -1)
        >>> OwnerClassSettings().class_of(job), OwnerClassSettings(key="user+executable").class_of(job)
        ((7, 4), None)
        """
        values = {"user": job.user_id, "executable": job.executable_number, "processors": job.requested_processors}
        key = tuple(values[each] for each in self.key.split("+"))
        return None if UNKNOWN in key else key
