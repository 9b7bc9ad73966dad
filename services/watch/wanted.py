"""Which messages of a topic are wanted, and about which jobs."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import orjson

from shadowtime.shared.streaming.subscribe import Message

PREDICTIONS = ("run_time", "adjustment", "wait_bounds", "forecast", "coverage", "change_points", "drifts")
"""Fields of an envelope that stages fill with what they predict, or with how earlier predictions fared."""


class Wanted(NamedTuple):
    """Which messages are to be shown; None where any is."""

    run: str | None = None
    cluster: str | None = None
    kind: str | None = None
    user: int | None = None
    job: int | None = None
    predictions: bool = False


class Chosen(NamedTuple):
    """A message that is wanted, and the jobs about which it is; None for all that it tells."""

    message: Message
    jobs: frozenset[int] | None = None


class Filter:
    """Chooses the messages that are wanted, and of each what is.

    Only submissions name a user: of what comes later, that is let through which is about a job that was seen to be
    submitted. The jobs of the user that have not ended are all that is kept.
    """

    def __init__(self, wanted: Wanted) -> None:
        self._wanted = wanted
        self._jobs: set[tuple[str, int]] = set()

    def __call__(self, message: Message) -> Chosen | None:
        """Return what is wanted of a message, or None; one that no stage could read is not, unless all are."""
        if self._wanted == Wanted():
            return Chosen(message)
        try:
            return self._chosen(message, orjson.loads(message.value))
        except (orjson.JSONDecodeError, KeyError, TypeError, AttributeError):
            return None  # it is a dead letter of the next stage

    def _chosen(self, message: Message, envelope: Mapping[str, Any]) -> Chosen | None:
        wanted, event = self._wanted, envelope["event"]
        kind, run = event["kind"], envelope["run"]
        if (wanted.run or run) != run or (wanted.cluster or envelope.get("cluster")) != envelope.get("cluster"):
            return None
        jobs = None
        if wanted.user is not None or wanted.job is not None:
            jobs = _jobs(event)
            if wanted.user is not None:
                jobs = self._of_user(run, kind, event, jobs)
            if wanted.job is not None:
                jobs &= {wanted.job}
        predicts = any(envelope.get(name) for name in PREDICTIONS) or bool(event.get("evaluated"))
        fits = (wanted.kind or kind) == kind and (predicts or not wanted.predictions)
        return Chosen(message, jobs) if fits and (jobs is None or jobs) else None

    def _of_user(self, run: str, kind: str, event: Mapping[str, Any], jobs: frozenset[int]) -> frozenset[int]:
        """Return which of the jobs of an event are the user's."""
        if kind == "JobSubmitted" and event.get("user_id") == self._wanted.user:
            self._jobs |= {(run, number) for number in jobs}
        found = frozenset(number for number in jobs if (run, number) in self._jobs)
        if kind == "JobWithdrawn" or (kind == "JobEnded" and not event.get("requeued")):
            self._jobs.discard((run, event["job_number"]))
        return found


def _jobs(event: Mapping[str, Any]) -> frozenset[int]:
    """Return the jobs that an event is about."""
    if "job_number" in event:
        return frozenset({event["job_number"]})
    return frozenset(each["job_number"] for each in (*event.get("starts", ()), *event.get("kills", ())))
