"""Parsers of the output of squeue and sinfo."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from shadowtime.services.follower.cluster import JobObservation, LifeKey, Node, State
from shadowtime.shared.accounting import (
    STATES,
    UNKNOWN,
    Instants,
    amount_of,
    gpu_type_of,
    gpu_types_of,
    gpus_got,
    resources_of,
    seconds_of,
    whole_number,
    zone_of,
)
from shadowtime.shared.bounds import MAX_INTEGER
from shadowtime.shared.cluster import LIMIT, OUTCOMES
from shadowtime.shared.errors import FollowError
from shadowtime.shared.messages import Outcome
from shadowtime.shared.quoting import plain, quote

FIELDS = (
    *("JobID", "ArrayJobID", "ArrayTaskID", "State", "SubmitTime", "EligibleTime", "StartTime", "EndTime"),
    *("RestartCnt", "TimeLimit", "TimeUsed", "NumCPUs", "NumNodes", "tres-alloc", "OverSubscribe", "PriorityLong"),
    *("exit_code", "UserName", "Account", "Partition", "QOS", "NodeList", "Reason", "Name"),
)
"""Fields requested from squeue. The two with free text come last."""

NODE_FIELDS = (
    *("NodeList", "PartitionName", "PriorityTier", "StateComplete", "CPUsState", "Memory", "AllocMem"),
    *("Gres", "GresUsed"),
)


def squeue(end: str) -> tuple[str, ...]:
    """Return the command line of squeue. `end` is printed after each field.

    `end` must not begin with a digit. It must be secret, so that no user can put it into a job name.
    """
    return ("squeue", "-h", "-a", "-r", "-t", "all", "-O", ",".join(f"{name}:{end}" for name in FIELDS))


SINFO = ("sinfo", "-h", "-a", "-N", "-O", ",".join(f"{name}:|" for name in NODE_FIELDS))

LOCAL = ("--local",)
"""Option for the jobs and nodes of one cluster, also within a federation."""

NOT_SET = ("N/A", "NONE", "", "(null)")

NOBODY = "nobody"
"""Name that Slurm prints for each user whom the machine of the command does not know."""

BOOTS = "CONFIGURING"
"""State of a job whose nodes are not ready. If they power up, Slurm moves its start to the time when they are ready."""

RUNNING = {"RUNNING", "STAGE_OUT", "SIGNALING", "RESIZING", "STOPPED"}
WAITING = {"PENDING", BOOTS, "REQUEUE_HOLD", "RESV_DEL_HOLD", "SPECIAL_EXIT"}
"""States of jobs that wait. The certain states are those of `RUNNING` and `WAITING`, the states `SUSPENDED` and
`COMPLETING`, and those of `STATES` without `REQUEUED` and `REVOKED`."""

FREE = {"None", "Priority", "Resources", "Cleaning", "Prolog"}
"""Reasons of waiting jobs that would start with enough free resources. Any other reason is a rule of the site."""

TAKEN = "Nodes required for job are DOWN, DRAINED or reserved"
"""Beginning of another text for the reason `Resources`: all nodes of the partition are down, or set aside in this pass
for jobs of partitions with a higher priority."""

HELD_ONLY = {
    *("down", "drain", "drained", "draining", "drng", "error", "err", "fail", "failing", "failg"),
    *("future", "futr", "inval", "invalid", "invalid_reg", "unknown", "unk", "blocked", "perfctrs", "npc"),
    *("maint", "maintenance", "reserved", "resv"),
    *("no_respond", "not_responding", "reboot_issued", "reboot^", "boot^"),
    *("power_drain", "powering_down", "pow_dn", "powering_dn", "powrng_dn"),
}
"""States of nodes on which no further job may start, or only a job of a reservation.

All other states are usable. Slurm wakes a `powered_down` node for a job, and waits for a `powering_up` node. A node
with `planned`, `reboot_requested` or `power_down` still accepts jobs (tried on 22.05).
"""

AWAKENED = {"powering_up", "pow_up", "powered_down", "powered_dn"}
"""States of nodes that need not respond: Slurm starts them, or has them started, by itself."""

SYMBOLS = {"*": "not_responding", "~": "powered_down", "#": "powering_up", "%": "powering_down", "$": "maint"} | {
    "^": "reboot_issued",
    "!": "power_down",
    "@": "reboot_requested",
    "-": "planned",
}
"""Last characters of a short state, and the state that each means (sinfo(1), node state codes)."""

TIER = 2**32
"""Weight of a tier. It exceeds every priority within a tier."""

MAX_REASON = 100
"""Maximum number of characters of a reason, and of a type of GPUs."""

_instant = Instants(zone_of(None))
_processors_held, _nodes_held = amount_of("cpu"), amount_of("node")


def observations_of(rows: Iterable[Mapping[str, str]], tiers: Mapping[str, int]) -> list[JobObservation]:
    """Return the observations of rows with all `FIELDS`. Their priority orders jobs by tier, then by Slurm's priority.

    Rows with an uncertain state or no submission are left out. `tiers` are those of partitions, see `tiers_of`.

    Raise `FollowError` if a value is invalid. The message names the job and the field.
    """
    observations: list[JobObservation] = []
    for values in rows:
        if (observation := _observation(values)) is not None:
            tier = max(tiers.get(name, 0) for name in observation.partition.split(","))
            observation.priority = min(tier * TIER + (observation.priority or 0), MAX_INTEGER)
            observations.append(observation)

    return observations


def rows_of(text: str, end: str) -> Iterator[dict[str, str]]:
    """Yield the fields of each job in the output of `squeue`. Of a job name, only the first line counts.

    Raise `FollowError` if the output is cut off, or has other fields than `FIELDS`.
    """
    fields, count = text.split(end), len(FIELDS)
    if text and (len(fields) % count != 1 or fields[-1] != "\n"):
        raise FollowError(
            f"squeue: expected {count} fields for each job, then a line break; found {len(fields) - 1} fields, then "
            f"{quote(fields[-1])}; its output is cut off, or has other fields than requested"
        )
    for at in range(0, len(fields) - 1, count):
        values = fields[at : at + count]
        if at and not values[0].startswith("\n"):
            raise FollowError(f"squeue: expected a line that begins with a job, found {quote(values[0])}")
        first, *others, name = values
        yield dict(zip(FIELDS, (first.removeprefix("\n"), *others, name.partition("\n")[0]), strict=True))


def _observation(values: Mapping[str, str]) -> JobObservation | None:
    """Return the observation of a job; None if its state is not certain or its submission is unknown."""
    job, task = values["JobID"], values["ArrayTaskID"]

    def instant(name: str) -> int | None:
        if (text := values[name]) in NOT_SET:
            return None
        value = _instant(text)
        if value is None:
            raise FollowError(f"squeue: job {quote(job)}: {name} is {quote(text)}, which is not a time")
        return None if value == UNKNOWN else value

    def number(name: str) -> int:
        if (value := whole_number(values[name])) is None:
            raise FollowError(f"squeue: job {quote(job)}: {name} is {quote(values[name])}, not a whole number")
        return value

    state, status = _state_of(values["State"])
    submit = instant("SubmitTime")
    if state is None or submit is None:
        return None
    of_array = task not in NOT_SET
    key = LifeKey(number("ArrayJobID" if of_array else "JobID"), number("ArrayTaskID") if of_array else -1, submit)
    start, end = instant("StartTime"), instant("EndTime")
    begun = state in ("running", "suspended") or (state == "over" and bool(values["NodeList"]))
    limit = values["TimeLimit"]
    resources = values["tres-alloc"]
    memory, gpus = resources_of(resources)
    run_time = seconds_of(values["TimeUsed"])
    observation = JobObservation(
        key,
        state,
        life=number("RestartCnt"),
        eligible=instant("EligibleTime"),
        start=start if begun else None,
        end=end if state == "over" else None,
        outcome=OUTCOMES.get(status, "completed"),
        run_time=run_time if state == "over" else None,
        limit=seconds_of(limit) or None,
        unlimited=limit == "UNLIMITED",
        processors=number("NumCPUs"),
        nodes=number("NumNodes"),
        memory=None if memory == UNKNOWN else memory,
        gpus=None if gpus == UNKNOWN else gpus,
        whole_nodes=values["OverSubscribe"] == "NO",
        user="" if values["UserName"] == NOBODY else values["UserName"],
        account=values["Account"],
        partition=values["Partition"],
        qos=values["QOS"],
        node_list=values["NodeList"],
        job_name=values["Name"],
        priority=number("PriorityLong"),
        expected=start if state == "waiting" and values["State"] != BOOTS else None,
        blocked=state == "waiting" and (values["State"] == BOOTS or not _is_free(values["Reason"])),
        gpu_type=gpu_type_of(resources)[:MAX_REASON],
        got=gpus_got(resources) if begun else None,
        reason=reason_of(values["Reason"]) if state == "waiting" else "",
    )
    if status is None and state == "over":
        observation.outcome = _guessed(observation, number("exit_code"))
        observation.processors = max(observation.processors, _processors_held(resources))
        observation.nodes = max(observation.nodes or 0, _nodes_held(resources))
    return observation


def reason_of(text: str) -> str:
    """Return the reason that squeue prints for a wait, without its list of nodes; an empty text if there is none.

    >>> reason_of("(ReqNodeNotAvail, UnavailableNodes:n[01-09])"), reason_of("None"), reason_of("Priority")
    ('ReqNodeNotAvail', '', 'Priority')
    """
    reason = plain(text.strip().strip("()").partition(", UnavailableNodes")[0])
    return "" if reason in ("None", "N/A") else reason[:MAX_REASON]


def _is_free(reason: str) -> bool:
    """Return whether a job with this reason would start with enough free resources."""
    text = reason.strip("()")
    return text.split(" ")[0].strip("()") in FREE or text.replace("_", " ").startswith(TAKEN)


def _state_of(text: str) -> tuple[State | None, int | None]:
    """Return the state of a job and, if it is over, its status as in `OUTCOMES`. Both are None if uncertain.

    The status of a job that is completing is not known yet: it is None. Its fields `NumCPUs`, `NumNodes` and `NodeList`
    cover only the nodes that it still holds.
    """
    if text in WAITING:
        return "waiting", None
    if text in RUNNING:
        return "running", None
    if text == "SUSPENDED":
        return "suspended", None
    if text == "COMPLETING":
        return "over", None
    if text in STATES and text not in ("REQUEUED", "REVOKED"):
        return "over", STATES[text]
    return None, None


def _guessed(observation: JobObservation, exit_code: int) -> Outcome:
    """Return the probable outcome of a job that is completing, from its limit and its exit code."""
    if observation.limit and observation.run_time is not None and observation.run_time >= observation.limit:
        return OUTCOMES[LIMIT]
    return "cancelled" if exit_code & 127 else "failed" if exit_code else "completed"


def nodes_of(rows: Iterable[Sequence[str]], daemons: Mapping[str, int]) -> list[Node]:
    """Return the nodes of rows of `NODE_FIELDS`. Each node appears once, with all its partitions.

    `daemons` has the memory in MB that no job can get, by node. A node without an entry has none.

    Raise `FollowError` if a value is invalid. The message names the node.
    """
    grouped: dict[str, tuple[list[str], Sequence[str]]] = {}
    for name, partition, _, *values in rows:
        grouped.setdefault(name, ([], values))[0].append(partition.removesuffix("*"))
    return [_node(name, partitions, values, daemons.get(name, 0)) for name, (partitions, values) in grouped.items()]


def tiers_of(rows: Iterable[Sequence[str]]) -> dict[str, int]:
    """Return the rank of each partition's priority tier, from rows of `NODE_FIELDS`. The lowest tier has rank 0."""
    tiers = {partition.removesuffix("*"): whole_number(tier) or 0 for _, partition, tier, *_ in rows}
    order = {tier: at for at, tier in enumerate(sorted(set(tiers.values())))}
    return {partition: order[tier] for partition, tier in tiers.items()}


def node_rows(text: str) -> list[list[str]]:
    """Return the rows in the output of sinfo. Raise `FollowError` if it is cut off, or lacks fields."""
    if text and not text.endswith("\n"):
        last = quote(text.rpartition("\n")[2])
        raise FollowError(f"sinfo: expected a line break at the end, found {last}; its output is cut off")
    rows = [line.split("|") for line in text.splitlines()]
    for fields in rows:
        if len(fields) < len(NODE_FIELDS):
            row = quote("|".join(fields))
            raise FollowError(f"sinfo: expected {len(NODE_FIELDS)} fields, found {len(fields)}: {row}")

    return rows


def _node(name: str, partitions: Sequence[str], values: Sequence[str], daemons: int) -> Node:
    state, processors, memory, allocated, devices, used = values[:6]
    counts = [whole_number(count) for count in processors.split("/")]
    if len(counts) != 4 or None in counts:
        expected = "expected allocated/idle/other/total"
        raise FollowError(f"sinfo: node {quote(name)}: CPUsState is {quote(processors)}, {expected}")
    held, _, _, total = (count or 0 for count in counts)
    words = words_of_state(state)
    if words & AWAKENED:
        words -= {"not_responding", "no_respond"}
    gpus, held_memory = gpu_types_of(devices), whole_number(allocated) or 0
    size = max((whole_number(memory) or 0) - daemons, 0)
    usable, usable_gpus, usable_memory = (total, gpus, size)
    if words & HELD_ONLY:
        usable, usable_gpus, usable_memory = held, gpu_types_of(used), held_memory
    return Node(
        *(name, tuple(partitions), total, size, sum(gpus.values()), usable, held, gpus, usable_gpus),
        held_memory=held_memory,
        usable_memory=usable_memory,
    )


def words_of_state(state: str) -> set[str]:
    """Return the words of a node's state, long or short.

    >>> sorted(words_of_state("MIXED+DRAIN")), sorted(words_of_state("idle~*")), sorted(words_of_state("mix-"))
    (['drain', 'mixed'], ['idle', 'not_responding', 'powered_down'], ['mix', 'planned'])
    """
    words: set[str] = set()
    for word in state.lower().split("+"):
        base = word.rstrip("".join(SYMBOLS))
        words |= {base, *(SYMBOLS[symbol] for symbol in word[len(base) :])}
    return words
