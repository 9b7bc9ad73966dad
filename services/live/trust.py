"""Which predictions of a run are not to be trusted at present, and of whom."""

from collections.abc import Iterable, Iterator

from shadowtime.services.live.story import Story
from shadowtime.shared.drifts import Drift, said, whose
from shadowtime.shared.events import JobSubmitted
from shadowtime.shared.formatting import clock

SHOWN = 12
"""Alarms that are listed."""


class Trust:
    """The alarms that last, as the scoreboard tells them; as many as it watches things for.

    >>> trust = Trust()
    >>> trust.take_in([Drift(of="run_time", what="twice", scope="user", number=7, since=86400, share=0.4, most=0.2)])
    >>> job = JobSubmitted(time=0, job_number=1, requested_processors=1, user_id=7)
    >>> trust.since(job, "run_time"), trust.since(job.model_copy(update={"user_id": 8}), "run_time")
    (86400, None)
    """

    def __init__(self) -> None:
        self._alarms: dict[tuple[str, str, str, int | None], Drift] = {}

    def take_in(self, drifts: Iterable[Drift]) -> None:
        """Take in alarms that began or ended."""
        for each in drifts:
            self._alarms.pop(each.key, None)
            if not each.holds:
                self._alarms[each.key] = each

    def of(self, job: JobSubmitted, of: str, what: str | None = None) -> Iterator[Drift]:
        """Yield the alarms that concern predictions of a job; of bounds on waits those of one grouping."""
        owners = {"user": job.user_id, "queue": job.queue_number, "partition": job.partition_number, "cluster": None}
        for each in self._alarms.values():
            if each.of == of and each.number == owners[each.scope] and what in (None, each.what):
                yield each

    def since(self, job: JobSubmitted, of: str, what: str | None = None) -> int | None:
        """Return the second of the log since when that is not to be trusted; None where it is."""
        return min((each.since for each in self.of(job, of, what)), default=None)

    def marks(self, story: Story) -> dict[str, int]:
        """Return, of what the page shows of a job, since when it is not to be trusted."""
        known = [each.grouping for each in story.bounds if each.bound is not None]
        named = "ensemble" if "ensemble" in known else known[0] if known else ""
        told = {
            of: self.since(story.job, of, named if of == "wait_bound" else None)
            for of in ("run_time", "adjustment", "wait_bound", "forecast")
        }
        return {of: since for of, since in told.items() if since is not None}

    def words(self, unix_start: int) -> list[str]:
        """Return the alarms in words, those of all jobs first, then of a few others, the latest first."""
        alarms = sorted(self._alarms.values(), key=lambda each: (each.scope != "cluster", -each.since))
        words = (f"{said(each.of, each.what)}, of {whose(each.scope, each.number)}" for each in alarms)
        return [
            f"{what}, since {clock(each.since, unix_start)[:-9]}"
            for what, each in zip(words, alarms[:SHOWN], strict=False)
        ]
