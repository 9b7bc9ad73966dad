"""An OpenPBS or a PBS Pro: the accounting records that its server writes, as it writes them.

A job is told of once its size is: by its Q record, or else (older PBS, Torque) by its S record, with the time at which
it was queued. What no record tells is not known: nodes that go down are still part of the machine.
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
    """One PBS server; see `Tailed`. Its files are those of `PBS_HOME/server_priv/accounting`, one a day."""

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
        """Of jobs that wait again: since when, and when they started before."""

    async def meet(self, opened: ClusterOpened | None = None) -> Opening:
        """Return what a new run opens with; of one that was opened only the log is left."""
        self._forget()
        return await super().meet(opened)

    def read(self, text: str) -> ParsedLine:
        """Return what a record tells."""
        life = self._jobs.take(text)
        if life is None:
            return ParsedLine()
        observations = self._observations(life)
        return ParsedLine(
            [observation for observation in observations if observation.processors > 0 and observation.key.submit > 0],
            time=self._jobs.time,
        )

    def _observations(self, life: PbsLife) -> list[JobObservation]:
        """Return the life that a record tells of, and after a rerun the one that waits."""
        numbers = {**life.numbers, "end": MAX_TIME if life.numbers["end"] == UNKNOWN else life.numbers["end"]}
        again = self._rerun.get(life.job)
        if again is not None:
            numbers["submit"] = numbers["eligible"] = again[0]
            if life.kind != "S" and numbers["start"] == again[1]:
                return []  # the end of the run that a rerun has ended

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
        """Return what is known of jobs that are not over, beside the rest."""
        waiting = {job: list(known) for job, known in self._jobs.waiting.items()}
        return super().snapshot() | {"waiting": waiting, "rerun": self._rerun}

    def restore(self, state: Any) -> None:
        """Take on what `snapshot` returned."""
        super().restore(state)
        self._jobs.waiting = {job: PbsWaiting(*known) for job, known in state["waiting"].items()}
        self._rerun = {job: (since, started) for job, (since, started) in state["rerun"].items()}
