"""Slurm's own settings, converted to keys of the policy `slurm`. Names are replaced by numbers."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from shadowtime.shared.accounting import NONE, UNKNOWN, MachineParts, Names, amount_of, hosts_of, seconds_of
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote

ASSOCIATIONS = "Cluster,Account,User,Partition,Share,ParentName"
QOS = "Name,Priority,UsageFactor"
SHARES = "Account,User,RawUsage"
LIMITS = "Cluster,GrpJobs,GrpTRES,GrpTRESRunMins,MaxJobs"
QOS_LIMITS = "Name,GrpJobs,GrpTRES,GrpTRESRunMins,MaxJobsPU,MaxTRESPU,MaxJobsPA,MaxTRESPA"
"""Limits of associations and of QOS that keep jobs waiting although resources are free."""

COMMANDS: dict[str, tuple[str, ...]] = {
    "config": ("scontrol", "show", "config"),
    "partitions": ("scontrol", "-a", "show", "-o", "partition"),
    "nodes": ("scontrol", "-a", "show", "-o", "node"),
    "reservations": ("scontrol", "-a", "show", "-o", "reservation"),
    "associations": ("sacctmgr", "-nP", "show", "assoc", f"format={ASSOCIATIONS}"),
    "qos": ("sacctmgr", "-nP", "show", "qos", f"format={QOS}"),
    "limits": ("sacctmgr", "-nP", "show", "assoc", f"format={LIMITS}"),
    "qos_limits": ("sacctmgr", "-nP", "show", "qos", f"format={QOS_LIMITS}"),
    "usage": ("sshare", "-anP", "-o", SHARES),
}
"""Commands to run. Each only reads."""

SECONDS = {
    "max_age": "PriorityMaxAge",
    "half_life": "PriorityDecayHalfLife",
    "calc_period": "PriorityCalcPeriod",
}
WEIGHTS = {
    "weight_age": "PriorityWeightAge",
    "weight_fairshare": "PriorityWeightFairShare",
    "weight_size": "PriorityWeightJobSize",
    "weight_partition": "PriorityWeightPartition",
    "weight_qos": "PriorityWeightQOS",
    "damping": "FairShareDampeningFactor",
}
PARAMETERS = {
    **{f"bf_{name}": f"bf_{name}" for name in ("interval", "window", "resolution")},
    **{f"bf_max_job_{name}": f"bf_max_job_{name}" for name in ("test", "user", "part", "start")},
    "sched_interval": "sched_interval",
    "sched_delay": "batch_sched_delay",
    "sched_depth": "default_queue_depth",
}

MODELLED = {"bf_continue"}
"""SchedulerParameters without a value that the policy models: a pass of backfill is never cut short."""

RECURS = {"HOURLY", "DAILY", "WEEKDAY", "WEEKEND", "WEEKLY", "TIME_FLOAT"}
"""Flags of reservations whose time changes."""

TURNAROUND = 0.5
"""Mean seconds until the processors of an ended job can be allocated again. Instants are whole seconds: a pass sees
half of the ends within its own second."""

_PAIR = re.compile(r"(\w+)=(\S*)")
_processors_of = amount_of("cpu")


class Site(NamedTuple):
    """Keys of the policy, and notes on settings of the site that the policy does not model."""

    keys: dict[str, Any]
    notes: list[str]


def site_of(texts: Mapping[str, str], parts: MachineParts, names: Names) -> Site:
    """Return the settings of a site.

    Parameters
    ----------
    texts
        Output of each of `COMMANDS`, with instants as Unix seconds.
    parts
        Pools of the site.
    names
        Numbers of names. New names are added.

    Raise `FollowError` if an answer lacks a field, or a number is invalid. The message quotes the fault.
    """
    config = config_of(texts["config"])
    if "SchedulerType" not in config:
        raise FollowError("scontrol show config: the output has no SchedulerType")
    multifactor = config.get("PriorityType") == "priority/multifactor"
    flags = config.get("PriorityFlags", "").upper().split(",")
    parameters = dict(part.strip().partition("=")[::2] for part in config.get("SchedulerParameters", "").split(","))
    keys: dict[str, Any] = {"backfill": config["SchedulerType"] == "sched/backfill"}
    if multifactor:
        keys |= {ours: _whole(config.get(theirs) or "0", theirs) for ours, theirs in WEIGHTS.items()}
        keys |= {ours: seconds_of(config.get(theirs, "")) or 0 for ours, theirs in SECONDS.items()}
        keys["fairshare"] = "classic" if "NO_FAIR_TREE" in flags else "tree"
        keys["favor_small"] = config.get("PriorityFavorSmall", "No").lower() == "yes"
        keys["size_relative"] = "SMALL_RELATIVE_TO_TIME" in flags
        keys["damping"] = max(keys["damping"], 1)
        keys["calc_period"] = keys["calc_period"] or 300
        keys["max_age"] = keys["max_age"] or 1
        if (booted := config.get("BOOT_TIME", "")).isdecimal():
            keys["calc_at"] = int(booted)

    keys |= {ours: int(parameters[theirs]) for ours, theirs in PARAMETERS.items() if _number(parameters.get(theirs))}
    keys["turnaround"] = TURNAROUND
    keys["processors"] = sum(pool.processors for pool in parts.pools)
    keys["nodes"] = sum(pool.nodes or 0 for pool in parts.pools)
    keys["partitions"] = [
        [
            _of(names, "partition", record["PartitionName"]),
            _whole(record["PriorityJobFactor"], "PriorityJobFactor"),
            _whole(record["PriorityTier"], "PriorityTier"),
        ]
        for record in _records(texts["partitions"], "PartitionName", ("PriorityJobFactor", "PriorityTier"))
    ]
    keys["qos"] = [
        [_of(names, "qos", name), _whole(priority or "0", "priority of QOS"), _thousandths(usage or "1")]
        for name, priority, usage in _lines(texts, "qos", QOS)
    ]
    cluster = config.get("ClusterName", "")
    keys["accounts"], keys["users"] = _tree(texts, cluster, names)
    keys["reservations"] = list(_reservations(texts, parts))
    notes = [*_notes(config, flags, parameters, multifactor=multifactor), *_notes_on_rows(texts, cluster)]
    if "limits" in config.get("AccountingStorageEnforce", "").split(","):
        notes += _notes_on_limits(texts, cluster)
    return Site(keys, notes)


def _of(names: Names, kind: str, name: str) -> int:
    return int(names.numbers(kind, [name])[0])


def _whole(text: str, what: str) -> int:
    """Return the whole number in the text of the setting `what`. Raise `FollowError` if there is none."""
    if not re.fullmatch(r"\s*[+-]?[0-9]{1,18}\s*", text):
        raise FollowError(f"{what} of Slurm: expected a whole number, found {quote(text)}")
    return int(text)


def config_of(text: str) -> dict[str, str]:
    """Return the values in the output of `scontrol show config`, by key.

    >>> config_of("PrivateData             = jobs,usage")
    {'PrivateData': 'jobs,usage'}
    """
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip(): value.strip() for key, equals, value in pairs if equals}


def memory_of_daemons(text: str) -> dict[str, int]:
    """Return the memory in MB that no job can get (`MemSpecLimit`), by node, from `scontrol show -o node`.

    Raise `FollowError` if a limit is not a whole number.

    >>> memory_of_daemons("NodeName=n01 RealMemory=4000 MemSpecLimit=512")
    {'n01': 512}
    """
    records = _records(text, "NodeName", ())
    limits = {record["NodeName"]: record["MemSpecLimit"] for record in records if "MemSpecLimit" in record}
    return {name: _whole(limit, "MemSpecLimit") for name, limit in limits.items()}


def _thousandths(text: str) -> int:
    """Return a usage factor of Slurm in thousandths. Raise `FollowError` if it is not a number of at least 0."""
    try:
        factor = float(text)
    except ValueError:
        factor = -1.0
    if not 0 <= factor < 1e9:
        raise FollowError(f"usage factor of QOS: expected a number of at least 0, found {quote(text)}")
    return round(1000 * factor)


def _number(text: str | None) -> bool:
    return text is not None and text.isascii() and text.isdecimal()


def _records(text: str, first: str, needed: Iterable[str]) -> list[dict[str, str]]:
    rows = [dict(_PAIR.findall(line)) for line in text.splitlines() if line.startswith(f"{first}=")]
    for record in rows:
        if missing := [name for name in needed if name not in record]:
            raise FollowError(f"scontrol: {first}={record[first]} has no {missing[0]}")
    return rows


def _lines(texts: Mapping[str, str], name: str, fields: str) -> list[list[str]]:
    count = fields.count(",") + 1
    rows = [line.split("|") for line in texts[name].splitlines() if line.strip()]
    for line in rows:
        if len(line) != count:
            row = quote("|".join(line))
            raise FollowError(f"{' '.join(COMMANDS[name])}: expected {fields} with | between them, found {row}")
    return rows


def _associations(texts: Mapping[str, str], cluster: str) -> list[list[str]]:
    """Return the associations of a cluster, without its name."""
    return [line[1:] for line in _lines(texts, "associations", ASSOCIATIONS) if line[0].lower() == cluster.lower()]


def _tree(texts: Mapping[str, str], cluster: str, names: Names) -> tuple[list[list[int]], list[list[int]]]:
    """Return the rows of accounts, and of users. Users of `root`, and those with one share and no usage, are left out.

    Accounts are in the order of sacctmgr, parents first. A row of an account has its number, its parent's, its shares
    and its count of users. A row of a user has the numbers of user and account, its shares and its usage.
    """
    rows = _associations(texts, cluster)
    used: Counter[tuple[str, str]] = Counter()  # a user has a row for each partition with separate shares
    for account, user, usage in _lines(texts, "usage", SHARES):
        if user.strip():
            used[account.strip(), user.strip()] += _whole(usage or "0", "usage of sshare")
    parents = {account: (parent, shares) for account, user, _, shares, parent in rows if not user}
    members: dict[str, dict[str, str]] = {}
    for account, user, _, shares, _ in rows:
        if user:
            members.setdefault(account, {}).setdefault(user, shares)

    def number(account: str) -> int:
        return 0 if account == "root" else _of(names, "account", account)

    accounts = [
        [number(account), number(parent or "root"), _shares(shares), len(members.get(account, {}))]
        for account, (parent, shares) in parents.items()
    ]
    users = [
        [_of(names, "user", user), number(account), _shares(shares), used[account, user]]
        for account, of in members.items()
        for user, shares in of.items()
        if account != "root" and (_shares(shares) != 1 or used[account, user])
    ]
    return accounts, users


def _shares(text: str) -> int:
    """Return the number of shares. `parent` is not modelled and counts as 1."""
    return int(text) if _number(text) else 1


def _reservations(texts: Mapping[str, str], parts: MachineParts) -> Iterable[list[int]]:
    """Yield a row for each pool of each reservation of nodes: pool, start and end in Unix seconds, processors.

    Processors are those of `TRES`, because `CoreCnt` counts a core with two threads once. A reservation of nodes in
    several pools is divided in proportion to the processors of these nodes.
    """
    processors = {
        record["NodeName"]: _whole(record.get("CPUEfctv") or record.get("CPUTot") or "0", "CPUTot")
        for record in _records(texts["nodes"], "NodeName", ())
    }
    for record in _reserving(texts["reservations"]):
        cores, reserved = _whole(record["CoreCnt"], "CoreCnt"), _processors_of(record.get("TRES", ""))
        hosts = hosts_of(record["Nodes"])
        total = sum(processors.get(host, 0) for host in hosts)
        of_pool: Counter[int] = Counter()
        for host in hosts:
            if (pool := parts.of_node.get(host)) is not None:
                of_pool[pool] += processors.get(host, 0)
        for pool, held in sorted(of_pool.items()):
            share = -(-(cores if reserved == UNKNOWN else reserved) * held // max(total, 1))
            yield [pool, int(record["StartTime"]), int(record["EndTime"]), min(share, held)]


def _reserving(text: str) -> list[dict[str, str]]:
    """Return the reservations that hold nodes at a known time."""
    records = _records(text, "ReservationName", ("StartTime", "EndTime", "Nodes", "NodeCnt", "CoreCnt"))
    dated = (record for record in records if _number(record["StartTime"]) and _number(record["EndTime"]))
    return [record for record in dated if record["Nodes"] != NONE]


def _notes(
    config: Mapping[str, str], flags: list[str], parameters: Mapping[str, str], *, multifactor: bool
) -> Iterable[str]:
    """Yield a note for each setting of the site that the policy does not model."""
    if not multifactor:
        yield f"PriorityType={config.get('PriorityType')}: treated as first come, first served"
    if config.get("PreemptType", "preempt/none") != "preempt/none":
        yield f"PreemptType={config['PreemptType']}: nothing is preempted"
    for name in ("PriorityWeightTRES", "PriorityWeightAssoc", "PrioritySiteFactorPlugin", "Licenses"):
        if config.get(name, "0") not in ("0", NONE, ""):
            yield f"{name}={config[name]}: has no effect"
    if config.get("PriorityUsageResetPeriod", "NONE") != "NONE":
        yield f"PriorityUsageResetPeriod={config['PriorityUsageResetPeriod']}: usage is not reset"
    for flag in flags:
        if flag and flag not in ("NO_FAIR_TREE", "FAIR_TREE", "SMALL_RELATIVE_TO_TIME", NONE.upper()):
            yield f"PriorityFlags={flag}: not modelled"
    for name, value in parameters.items():
        if name not in ("", NONE, *MODELLED) and not (name in PARAMETERS.values() and _number(value)):
            yield f"SchedulerParameters {name}{'=' if value else ''}{value}: not modelled"


def _notes_on_rows(texts: Mapping[str, str], cluster: str) -> Iterable[str]:
    """Yield a note for each reservation that recurs, and one if there are shares of `parent`."""
    for record in _reserving(texts["reservations"]):
        for flag in record.get("Flags", "").split(","):
            if flag in RECURS:
                yield f"ReservationName={record['ReservationName']} Flags={flag}: only its next time is reserved"
    known = {(account, user) for account, user, *_ in _associations(texts, cluster)}
    used = {(account.strip(), user.strip()) for account, user, _ in _lines(texts, "usage", SHARES)}
    if hidden := len(used - known):
        yield f"associations that sshare has and sacctmgr does not show: {hidden:,}; see PrivateData in slurmdbd.conf"
    if parents := sum(shares == "parent" for *_, shares, _ in _associations(texts, cluster)):
        yield f"associations with Share=parent: {parents:,}; each is treated as 1 share"


def _notes_on_limits(texts: Mapping[str, str], cluster: str) -> Iterable[str]:
    """Yield a note for each kind of limit that associations or QOS have."""
    associations = [row for row in _lines(texts, "limits", LIMITS) if row[0].lower() == cluster.lower()]
    kinds = (("associations", LIMITS, associations), ("QOS", QOS_LIMITS, _lines(texts, "qos_limits", QOS_LIMITS)))
    for kind, fields, rows in kinds:
        for at, name in enumerate(fields.split(",")):
            if at and (count := sum(bool(row[at].strip()) for row in rows)):
                yield f"{kind} with {name}: {count:,}; no job waits because of them"
