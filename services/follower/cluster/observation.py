"""Observations: the state of a job on a cluster at one moment."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from shadowtime.shared.messages import GpuType, Outcome

State = Literal["waiting", "running", "suspended", "over"]


class LifeKey(NamedTuple):
    """Key of one life of a job. `task` is its index in an array, or -1.

    A requeued job mostly has a new `submit` time. If its node did not answer, the job keeps the old one. `again` counts
    the earlier lives with the same `submit`. Accounting does not distinguish these lives.
    """

    job: int
    task: int
    submit: int
    again: int = 0

    @property
    def job_id(self) -> str:
        """The job, and the task of an array, as Slurm writes them.

        >>> LifeKey(4711, -1, 0).job_id, LifeKey(2754, 12, 0).job_id
        ('4711', '2754_12')
        """
        return f"{self.job}_{self.task}" if self.task >= 0 else str(self.job)


@dataclass(slots=True)
class JobObservation:
    """The state of a life of a job, from a poll or from accounting. Unknown values are None.

    Instants are Unix seconds, or seconds of the cluster's own time line after `shifted`. `run_time` and `limit` are in
    seconds. If `unlimited`, there is no limit. `life` is the number of earlier requeues of the job, if reported.
    `memory`, in MiB, and `gpus` are totals over its nodes. `expected` is the start that the cluster expects.
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
    """Priority in its queue. The largest goes first."""
    expected: int | None = None
    blocked: bool = False
    resized: tuple[tuple[int, int], ...] = ()
    """Times and new numbers of processors of its resizes, after its start."""
    reason: str = ""
    """The reason that the cluster gives for its wait."""
    gpu_type: str = ""
    """The requested type of GPUs, if there is one; several types are joined by `+`."""
    got: tuple[GpuType, ...] | None = None
    """The allocated GPUs, by type; None if it has not started, or if they are unknown."""

    def plain(self) -> list[Any]:
        """Return all fields as plain values."""
        values = [list(self.key), *(getattr(self, field.name) for field in fields(self)[1:-1])]
        return [*values, None if self.got is None else [[kind.name, kind.gpus] for kind in self.got]]

    @classmethod
    def of_plain(cls, values: list[Any]) -> "JobObservation":
        """Return the observation whose fields `plain` returned."""
        observation = cls(LifeKey(*values[0]), *values[1:])
        observation.resized = tuple((instant, processors) for instant, processors in observation.resized)
        if observation.got is not None:
            observation.got = tuple(GpuType(name=name, gpus=gpus) for name, gpus in values[-1])
        return observation


class Node(NamedTuple):
    """A node: its partitions, its processors, memory in MiB, GPUs, and GPUs by type.

    `held` processors and `held_memory` are allocated. `usable`, `usable_memory` and `usable_gpus` are the processors,
    memory and GPUs that jobs may use. If no job may start on the node, these are only the allocated ones. The usable
    memory None is all memory.
    """

    name: str
    partitions: tuple[str, ...]
    processors: int
    memory: int
    gpus: int
    usable: int
    held: int = 0
    gpu_types: Mapping[str, int] = MappingProxyType({})
    usable_gpus: Mapping[str, int] = MappingProxyType({})
    held_memory: int = 0
    usable_memory: int | None = None

    @property
    def has(self) -> dict[str, int]:
        """Resources of the node, in the form that `parts_of_nodes` accepts."""
        return {"processors": self.processors, "nodes": 1, "memory": self.memory, "gpus": self.gpus}


def shifted(observations: Iterable[JobObservation], zero: int) -> list[JobObservation]:
    """Return observations with instants on a cluster's own time line. Its second 0 is the Unix second `zero`."""

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
