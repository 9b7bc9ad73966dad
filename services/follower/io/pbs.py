"""Source for OpenPBS or PBS Pro. It reads the accounting records of the server as they are written.

A job is published as soon as its size is known. The Q record has the size; in older PBS and in Torque, only the S
record has the size, together with the time at which the job was queued. The records do not say which nodes are down, so
these nodes still count as part of the machine.
"""

import re
from typing import Any, ClassVar

from shadowtime.services.follower.cluster import JobObservation, LifeKey, Opening, observation_of
from shadowtime.services.follower.io.tailed import ParsedLine, Tailed
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting import UNKNOWN, Instants, PbsJobs, PbsLife, PbsWaiting, numbered, zone_of
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.messages import ClusterOpened


class Pbs(Tailed):
    """One PBS server; see `Tailed`. Its files are in `PBS_HOME/server_priv/accounting`, one for each day."""

    name: ClassVar[str] = "pbs"
    takes: ClassVar[frozenset[str]] = Tailed.takes | {"time_zone"}
    files = re.compile(r"[0-9]{8}")

    def __init__(self, options: FollowOptions) -> None:
        super().__init__(options)
        self._instants = Instants(zone_of(options.time_zone))
        self._forget()

    def _forget(self) -> None:
        self._jobs = PbsJobs(self._instants)
        self._rerun: dict[str, tuple[int, int]] = {}
        """Start of the new wait and start of the previous run, in Unix seconds, by job that waits again."""

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return the opening of the run. If its stored state is lost, `opened` is its first event, otherwise None."""
        self._forget()
        return await super().meet(opened)

    def read(self, text: str) -> ParsedLine:
        """Return the content of a record. The content is empty if the record is not about a job of known size."""
        life = self._jobs.take(text)
        if life is None:
            return ParsedLine()
        observations = self._observations(life)
        return ParsedLine(
            [observation for observation in observations if observation.processors > 0 and observation.key.submit > 0],
            time=self._jobs.time,
        )

    def _observations(self, life: PbsLife) -> list[JobObservation]:
        """Return the life that a record describes and, after a rerun, the next life, which waits."""
        numbers = {**life.numbers, "end": MAX_TIME if life.numbers["end"] == UNKNOWN else life.numbers["end"]}
        again = self._rerun.get(life.job)
        if again is not None:
            numbers["submit"] = numbers["eligible"] = again[0]
            if life.kind != "S" and numbers["start"] == again[1]:
                return []  # the record of the rerun has already ended this run

        job, task = numbered(life.job)
        observation = observation_of(LifeKey(job, -1 if task is None else task, numbers["submit"]), numbers, life.words)
        if life.kind != "R":
            if life.kind not in ("Q", "S"):
                self._rerun.pop(life.job, None)
            return [observation]

        since = max(numbers["end"], numbers["submit"] + 1)
        self._rerun[life.job] = (since, numbers["start"])
        numbers |= {"submit": since, "eligible": since, "start": UNKNOWN, "end": MAX_TIME}
        return [
            observation,
            observation_of(observation.key._replace(submit=since), numbers, {**life.words, "node_list": ""}),
        ]

    def snapshot(self) -> Any:
        """Return the state of `Tailed` and of the jobs that are not over."""
        waiting = {job: list(known) for job, known in self._jobs.waiting.items()}
        return super().snapshot() | {"waiting": waiting, "rerun": self._rerun}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self._jobs.waiting = {job: PbsWaiting(*known) for job, known in state["waiting"].items()}
        self._rerun = {job: (since, started) for job, (since, started) in state["rerun"].items()}
