"""Observations: the state of a job on a cluster at one moment."""

from collections.abc import Iterable
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, NamedTuple

from shadowtime.shared.messages import Outcome

State = Literal["waiting", "running", "suspended", "over"]


class LifeKey(NamedTuple):
    """One life of a job: a job that waits anew was submitted anew. `task` is that of an array; -1 for none."""

    job: int
    task: int
    submit: int


@dataclass(slots=True)
class JobObservation:
    """A life of a job as it is seen, or as it was accounted; instants in seconds of Unix, None where unknown.

    `life` counts from 0 how often the job was requeued before, where that is told. `limit` is in seconds; `unlimited`
    says that there is none. `memory` is in MiB, of all its nodes, as are `gpus`. `expected` is when the cluster expects
    it to start.
    """

    key: LifeKey
    state: State
    life: int | None = None
    eligible: int | None = None
    start: int | None = None
    end: int | None = None
    outcome: Outcome = "completed"
    run_time: int | None = None
    limit: int | None = None
    unlimited: bool = False
    processors: int = 0
    nodes: int | None = None
    memory: int | None = None
    gpus: int | None = None
    whole_nodes: bool = False
    user: str = ""
    account: str = ""
    job_name: str = ""
    partition: str = ""
    qos: str = ""
    node_list: str = ""
    priority: int | None = None
    """Of its queue, the largest goes first."""
    expected: int | None = None
    blocked: bool = False
    resized: tuple[tuple[int, int], ...] = ()
    """When it got how many processors, after its start."""

    def plain(self) -> list[Any]:
        """Return it as plain values."""
        return [list(self.key), *(getattr(self, field.name) for field in fields(self)[1:])]

    @classmethod
    def of_plain(cls, values: list[Any]) -> "JobObservation":
        """Return what `plain` was taken of."""
        observation = cls(LifeKey(*values[0]), *values[1:])
        observation.resized = tuple((instant, processors) for instant, processors in observation.resized)
        return observation


class Node(NamedTuple):
    """A node: its partitions, what it has of processors, memory in MiB and GPUs, and how many processors may be used.

    Of one on which no job may start that many are held.
    """

    name: str
    partitions: tuple[str, ...]
    processors: int
    memory: int
    gpus: int
    usable: int

    @property
    def has(self) -> dict[str, int]:
        """Resources of the node, as `parts_of_nodes` takes them."""
        return {"processors": self.processors, "nodes": 1, "memory": self.memory, "gpus": self.gpus}


def shifted(observations: Iterable[JobObservation], zero: int) -> list[JobObservation]:
    """Return sights with instants of a cluster's own time line, whose second 0 is `zero`."""

    def own(instant: int | None) -> int | None:
        return None if instant is None else instant - zero

    return [
        replace(
            observation,
            key=observation.key._replace(submit=observation.key.submit - zero),
            eligible=own(observation.eligible),
            start=own(observation.start),
            end=own(observation.end),
            expected=own(observation.expected),
            resized=tuple((instant - zero, processors) for instant, processors in observation.resized),
        )
        for observation in observations
    ]
