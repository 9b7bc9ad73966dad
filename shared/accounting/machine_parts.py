"""The pools of a machine, from a TOML file or from the output of `scontrol show node` and `show partition`."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from pydantic import StrictInt, StrictStr, TypeAdapter, ValidationError

from shadowtime.shared.accounting.instants import whole_number
from shadowtime.shared.accounting.text_file import whole_contents
from shadowtime.shared.bounds import MAX_NAME_LENGTH, MAX_POOLS
from shadowtime.shared.errors import TraceError, first_of
from shadowtime.shared.messages import MAX_GPU_TYPES, FrozenModel, GpuType, Pool

MAX_SIZE = 2**27
"""Maximum size of a file of pools, in bytes."""

MAX_HOSTS = 100_000
"""Largest range of hosts that is expanded. The hosts of a larger range are left out."""

_PARTS = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
"""A part of a list of hosts. Commas within brackets do not end it."""

AS_FIRST = re.compile(r"\[(\d+)[^\]]*\]")
"""A range or list of host numbers in brackets. The group is the first number."""

_PAIR = re.compile(r"(\w+)=(\S*)")
_SOCKETS = re.compile(r"\([^)]*\)")

NONE = "(null)"
"""Text that Slurm prints for an absent value."""


class MachineParts(NamedTuple):
    """The pools of a machine, and the index in `pools` of the pool of each partition and of each node.

    `type_of_node` has the type of the GPUs of each node that has one type.
    """

    pools: tuple[Pool, ...]
    of_partition: Mapping[str, int]
    of_node: Mapping[str, int]
    type_of_node: Mapping[str, str] = MappingProxyType({})

    def pool_of(self, node_list: str, partitions: str) -> int | None:
        """Return the index of the pool of the first node that a job ran on, or else of its first known partition.

        None if neither the node nor a partition is known. If a machine has one pool without names of nodes or
        partitions, all jobs belong to it.

        >>> parts = MachineParts((), {"batch": 0, "gpu": 1}, {"n01": 0, "n02": 1})
        >>> parts.pool_of("n[02,04-07]", "batch"), parts.pool_of("old9", "debug,gpu"), parts.pool_of("", "secret")
        (1, 1, None)
        """
        if not self.of_node and not self.of_partition and len(self.pools) == 1:
            return 0
        if (pool := self.of_node.get(first_node(node_list))) is not None:
            return pool
        known = (self.of_partition.get(name) for name in partitions.split(","))
        return next((pool for pool in known if pool is not None), None)


def first_node(node_list: str) -> str:
    """Return the first node of a list of hosts.

    >>> first_node("rack[1-2]n[01,03-07],login"), first_node("n07")
    ('rack1n01', 'n07')
    """
    return AS_FIRST.sub(r"\1", node_list).split(",")[0]


def hosts_of(node_list: str) -> list[str]:
    """Return the nodes of a list of hosts. Parts with a range beyond `MAX_HOSTS`, or without numbers, are left out.

    >>> hosts_of("rack[1-2]n[01,09-10],login"), hosts_of("")
    (['rack1n01', 'rack1n09', 'rack1n10', 'rack2n01', 'rack2n09', 'rack2n10', 'login'], [])
    """
    return [host for part in _PARTS.findall(node_list) for host in _spelled_out(part)]


def _spelled_out(part: str) -> list[str]:
    head, bracket, rest = part.partition("[")
    if not bracket:
        return [part]
    ranges, _, tail = rest.partition("]")
    numbers: list[str] = []
    for span in ranges.split(","):
        first, _, last = span.partition("-")
        begin, end = whole_number(first), whole_number(last or first)
        if begin is None or end is None or end - begin > MAX_HOSTS:
            return []
        numbers += (f"{number:0{len(first)}d}" for number in range(begin, end + 1))
    return [head + number + after for number in numbers for after in _spelled_out(tail)]


class _Described(FrozenModel):
    """A table `[[pool]]` of a TOML file; `memory` is of the whole pool, in MiB."""

    name: StrictStr
    processors: StrictInt
    nodes: StrictInt | None = None
    memory: StrictInt | None = None
    gpus: StrictInt | None = None
    gpu_types: Mapping[str, StrictInt] | None = None
    partitions: tuple[str, ...] = ()
    node_names: tuple[str, ...] = ()


def read_parts(path: Path) -> MachineParts:
    """Return the pools that a file describes.

    Parameters
    ----------
    path
        Either TOML with a table `[[pool]]` for each pool, or the output of `scontrol show node` followed by that of
        `scontrol show partition`. Required keys of a table are name and processors. Optional keys are nodes, memory
        (MiB of the whole pool), gpus, gpu_types (a table with the GPUs of each type), partitions and node_names,
        which may have lists of hosts. As a log, it may be packed, a folder or in UTF-16.

    Raise `TraceError` if the file cannot be read or has neither format. The message says why.

    References
    ----------
    docs/accounting.md#pools.
    """
    text = whole_contents(path, MAX_SIZE).decode(errors="replace")
    try:
        parts = _from_slurm_lines(text) if re.search(r"^NodeName=", text, re.MULTILINE) else _as_described(text)
    except (ValidationError, ValueError, RecursionError) as error:
        why = first_of(error, "file") if isinstance(error, ValidationError) else error
        raise TraceError(f"{path}: expected [[pool]] tables (TOML) or output of scontrol show node: {why}") from error

    if not 0 < len(parts.pools) <= MAX_POOLS:
        raise TraceError(f"{path}: found {len(parts.pools)} pools; a machine has 1 to {MAX_POOLS}")
    return parts


def _as_described(text: str) -> MachineParts:
    machine_parts = TypeAdapter(dict[str, list[_Described]]).validate_python(tomllib.loads(text))
    if set(machine_parts) - {"pool"}:
        raise ValueError(f"unknown table {', '.join(sorted(set(machine_parts) - {'pool'}))}; known: pool")
    described = machine_parts.get("pool", [])
    for pool in described:
        if pool.gpu_types and pool.gpus not in (None, total := sum(pool.gpu_types.values())):
            raise ValueError(f"pool {pool.name!r} has {pool.gpus} gpus, but its gpu_types have {total} in all")
    pools = tuple(
        Pool(
            name=pool.name,
            processors=pool.processors,
            nodes=pool.nodes,
            memory=pool.memory,
            gpus=sum(pool.gpu_types.values()) if pool.gpu_types else pool.gpus,
            gpu_types=tuple(GpuType(name=name, gpus=gpus) for name, gpus in (pool.gpu_types or {}).items()) or None,
        )
        for pool in described
    )
    of_partition = _places((name, at) for at, pool in enumerate(described) for name in pool.partitions)
    listed = [(name, at) for at, pool in enumerate(described) for name in pool.node_names]
    if unclear := next((name for name, _ in listed if not hosts_of(name)), None):
        raise ValueError(f"node_names: {unclear!r} is no name of a node, and no list such as 'n[01-16]'")
    of_node = _places((host, at) for name, at in listed for host in hosts_of(name))
    return MachineParts(pools, of_partition, of_node)


def _places(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    places: dict[str, int] = {}
    for name, at in pairs:
        if places.setdefault(name, at) != at:
            raise ValueError(f"{name!r} is in two pools; expected it in one")
    return places


def _from_slurm_lines(text: str) -> MachineParts:
    records = [dict(_PAIR.findall(record)) for record in re.split(r"(?=^NodeName=)", text, flags=re.MULTILINE)]
    busy = [record["AllocMem"] for record in records if record.get("CPUAlloc", "0") != "0" and "AllocMem" in record]
    unmanaged = {"memory": 0} if busy and set(busy) == {"0"} else {}  # as with SelectTypeParameters=CR_Core
    return parts_of_nodes(
        (
            record["NodeName"],
            record["Partitions"].split(","),
            _resources_of(record) | unmanaged,
            gpu_types_of(record.get("Gres", "")),
        )
        for record in records
        if "NodeName" in record and record.get("Partitions", NONE) != NONE
    )


def parts_of_nodes(
    nodes: Iterable[tuple[str, Sequence[str], Mapping[str, int], Mapping[str, int]]],
) -> MachineParts:
    """Return the pools that nodes form: partitions with a node in common are one pool.

    Parameters
    ----------
    nodes
        Name, partitions (at least one), resources and GPUs by type of each node. Resources are `processors`, `nodes`,
        `memory` in MiB and `gpus`.

    >>> has = {"processors": 4, "nodes": 1, "memory": 4000, "gpus": 0}
    >>> of_nodes = {"n1": ["batch", "debug"], "n2": ["batch"], "n3": ["gpu"]}
    >>> parts = parts_of_nodes((name, partitions, has, {}) for name, partitions in of_nodes.items())
    >>> [(pool.name, pool.processors) for pool in parts.pools], parts.of_partition["debug"]
    ([('batch+debug', 8), ('gpu', 4)], 0)
    """
    nodes = list(nodes)
    joined: dict[str, str] = {}

    def root(name: str) -> str:
        while joined.setdefault(name, name) != name:
            name = joined[name]
        return name

    for _, partitions, *_ in nodes:
        root(partitions[0])
        for other in partitions[1:]:
            joined[root(other)] = root(partitions[0])

    names: dict[str, list[str]] = {}
    for partition in joined:
        names.setdefault(root(partition), []).append(partition)
    order = {name: at for at, name in enumerate(names)}
    sums: list[dict[str, Any]] = [dict.fromkeys(("processors", "nodes", "memory", "gpus"), 0) for _ in order]
    types: list[Counter[str]] = [Counter() for _ in order]
    of_node: dict[str, int] = {}
    for node, partitions, has, *kinds in nodes:
        at = of_node[node] = order[root(partitions[0])]
        types[at].update(kinds[0] if kinds else {})
        for name, value in has.items():
            sums[at][name] += value

    for summed, counted in zip(sums, types, strict=True):
        if len(counted) > 1:
            kinds_of_pool = sorted(counted.items())[:MAX_GPU_TYPES]
            summed["gpu_types"] = tuple(GpuType(name=kind[:MAX_NAME_LENGTH], gpus=gpus) for kind, gpus in kinds_of_pool)
        if summed["memory"] <= summed["nodes"]:  # Slurm's default of 1 MiB a node, where memory is not managed
            summed["memory"] = None
    pools = tuple(Pool(name="+".join(names[pool])[:MAX_NAME_LENGTH], **sums[at]) for pool, at in order.items())
    type_of_node = {node: next(iter(kinds[0])) for node, _, _, *kinds in nodes if kinds and len(kinds[0]) == 1}
    return MachineParts(pools, {name: order[root(name)] for name in joined}, of_node, type_of_node)


def _resources_of(node: Mapping[str, str]) -> dict[str, int]:
    """Return the resources of a node; memory is in MiB.

    >>> _resources_of({"CPUTot": "4", "RealMemory": "4000", "Gres": "gpu:2080ti:4(S:0-1),gpu:1g.5gb:7,craynetwork:1"})
    {'processors': 4, 'nodes': 1, 'memory': 4000, 'gpus': 11}
    """
    return {
        "processors": int(node.get("CPUEfctv") or node.get("CPUTot") or 0),
        "nodes": 1,
        "memory": int(node.get("RealMemory") or 0),
        "gpus": gpus_of(node.get("Gres", "")),
    }


def gpus_of(devices: str) -> int:
    """Return the number of GPUs in Slurm's text of generic resources (GRES).

    >>> gpus_of("gpu:2080ti:4(S:0-1),gpu:1g.5gb:7,craynetwork:1"), gpus_of("(null)")
    (11, 0)
    """
    return sum(gpu_types_of(devices).values())


def gpu_types_of(devices: str) -> dict[str, int]:
    """Return the number of GPUs of each type in Slurm's text of generic resources; GPUs without a type are `other`.

    Types are in lower case, as in trackable resources (TRES): a node of `gpu:A100:2` has `gres/gpu:a100=2`.

    >>> gpu_types_of("gpu:A100:4(S:0-1),gpu:v100:2,gpu:1,craynetwork:1")
    {'a100': 4, 'v100': 2, 'other': 1}
    """
    types: dict[str, int] = {}
    for part in _SOCKETS.sub("", devices).split(","):
        device, *names = part.split(":")
        if device == "gpu" and names and names[-1].isdecimal():
            kind = ":".join(names[:-1]).lower() or "other"
            types[kind] = types.get(kind, 0) + int(names[-1])
    return types
