"""Roles: each kind of process and its rights. ACLs of Kafka and Redis and the names of secrets follow from them.

A stage reads its own topic and its output, and writes the next topic and dead letters. It keeps its state in Redis
under its own name, where no other stage may write. Every role that uses Kafka may describe all topics: the number of
partitions determines the partition of a run. All rights that are not granted are refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from shadowtime.shared.stages import DEAD_LETTERS, DECISIONS, FLOW, JOBS, SCORES

NAME = "shadowtime"
"""Prefix of consumer groups and of keys in Redis."""

ADMIN, REPLAYER, FOLLOW, SHADOW, METRICS, LIVE, SUBSCRIBER, ASK, HEALTH = (
    *("admin", "replayer", "follow", "shadow", "metrics", "live", "subscriber", "ask", "health"),
)
ASKED = ("runtime_distribution", "wait_bound", "scheduler", "scoreboard", "shadow", FOLLOW)
"""Owners of the state that `ask` reads: stages, shadows, and the follower, which has the names."""

SHOWN = ("runtime_distribution", "wait_bound", "scheduler", "shadow", FOLLOW)
"""Owners of the state that the live page reads: the stages that give advice, shadows, and the follower."""

KAFKA, REDIS, VICTORIA_METRICS = "kafka", "redis", "victoria-metrics"


@dataclass(frozen=True)
class Role:
    """Rights of one kind of process.

    Parameters
    ----------
    name
        Name of the user in Kafka and in Redis.
    reads, writes
        Topics that the role may read and write.
    group
        The consumer group that the role may join. With `*` at its end it is a prefix. None for readers without a group.
    keeps, asks
        Owners of keys in Redis: stages, the follower, or shadows. The role reads and writes the keys of `keeps`, and
        only reads the keys of `asks`.
    samples
        Whether the role has the password of VictoriaMetrics. There is one user only, who may read and write.
    administers
        Whether the role may do everything.
    """

    name: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    group: str | None = None
    keeps: str | None = None
    asks: tuple[str, ...] = ()
    samples: bool = False
    administers: bool = False

    @property
    def servers(self) -> tuple[str, ...]:
        """Servers that the role uses, each with its own password."""
        kafka = self.administers or bool(self.reads or self.writes)
        redis = self.administers or bool(self.keeps or self.asks) or self.name == HEALTH
        samples = self.administers or self.samples
        known = {KAFKA: kafka, REDIS: redis, VICTORIA_METRICS: samples}
        return tuple(server for server, knows in known.items() if knows)

    def secret(self, server: str) -> str:
        """Return the name of the role's password for a server.

        >>> Role("scheduler").secret(KAFKA)
        'kafka-scheduler'
        """
        return f"{server}-{self.name}"

    @property
    def seal(self) -> str | None:
        """The name of the secret that seals the role's state in Redis; None if it keeps none there."""
        return None if self.keeps is None else f"seal-{self.name}"


def roles(stages: Sequence[str]) -> tuple[Role, ...]:
    """Return all roles. `stages` are the stages of the pipeline, in the order of the flow.

    An operator who rebuilds a stage uses the role of the stage.

    >>> [role.name for role in roles(["first", "second"])]
    ['admin', 'replayer', 'follow', 'shadow', 'first', 'second', 'metrics', 'live', 'subscriber', 'ask', 'health']
    >>> roles(["first", "second"])[5].reads
    ('runtime-distributions', 'walltime-adjustments')
    """
    everything = (*FLOW, DEAD_LETTERS)
    return (
        Role(ADMIN, administers=True),
        Role(REPLAYER, reads=(JOBS, DECISIONS, SCORES), writes=(JOBS,)),
        Role(FOLLOW, reads=(JOBS,), writes=(JOBS,), keeps=FOLLOW),
        Role(SHADOW, reads=(JOBS, DECISIONS), writes=(JOBS,), keeps=SHADOW),
        *(
            Role(stage, (source, target), (target, DEAD_LETTERS), group=f"{NAME}-{stage}", keeps=stage)
            for stage, (source, target) in zip(stages, pairwise(FLOW), strict=False)
        ),
        Role(METRICS, reads=(SCORES, DECISIONS), group=f"{NAME}-{METRICS}", samples=True),
        Role(LIVE, reads=everything, asks=SHOWN),
        Role(SUBSCRIBER, reads=everything, group=f"{SUBSCRIBER}-*"),  # each subscriber has its own group
        Role(ASK, asks=ASKED),
        Role(HEALTH),
    )


def secret_names(all_roles: Sequence[Role]) -> list[str]:
    """Return the name of every password, and of every secret that seals state.

    >>> secret_names(roles(["first"]))[:4]
    ['kafka-admin', 'redis-admin', 'victoria-metrics-admin', 'kafka-replayer']
    """
    return [role.secret(server) for role in all_roles for server in role.servers] + seals(all_roles)


def seals(all_roles: Sequence[Role]) -> list[str]:
    """Return the names of the secrets that seal state. They are never renewed: stored state needs its old seal.

    >>> seals(roles(["first"]))
    ['seal-follow', 'seal-shadow', 'seal-first']
    """
    return [role.seal for role in all_roles if role.seal is not None]


class Binding(NamedTuple):
    """An ACL of Kafka that allows an operation from any host, in the terms of Kafka's own tools."""

    principal: str
    resource: str
    name: str
    pattern: str
    operation: str


def kafka_acls(all_roles: Sequence[Role]) -> list[Binding]:
    """Return the ACLs of Kafka. Everything else is refused, except to an administrator, who is among `super.users`.

    The right to write includes idempotent writes.

    >>> for binding in kafka_acls([Role("metrics", reads=("scores",), group="shadowtime-metrics")])[-2:]:
    ...     print(*binding)
    User:metrics TOPIC scores LITERAL READ
    User:metrics GROUP shadowtime-metrics LITERAL READ
    """
    return [binding for role in all_roles if KAFKA in role.servers for binding in _bindings(role)]


def _bindings(role: Role) -> Iterator[Binding]:
    if role.administers:
        return
    user = f"User:{role.name}"
    topics = {"DESCRIBE": (*FLOW, DEAD_LETTERS), "READ": role.reads, "WRITE": role.writes}
    yield from (Binding(user, "TOPIC", topic, "LITERAL", right) for right, of in topics.items() for topic in of)
    if role.group is not None:
        prefix = role.group.removesuffix("*")
        yield Binding(user, "GROUP", prefix, "LITERAL" if prefix == role.group else "PREFIXED", "READ")


KEYS = "+@hash +@list +@set +del +unlink +exists +type +expire +pexpire +expireat +ttl +pttl +persist"
"""Commands that name the keys that they access."""

SCRIPTS = "+eval +evalsha +script|load +script|exists +multi +exec +discard +watch +unwatch +cluster|slots"
LOOKING = "+@hash +@list +@set +exists +type +ttl +pttl +scan +multi +exec +discard +cluster|slots"
"""Commands of a reader, which may read the granted keys only. `SCAN` shows the names of all keys, though."""


NOBODY = "user default off ~* &* +@all"
"""Redis' default user is off, so no client can log in without a name. Yet this user has all rights: Redis reads its own
append-only file as this user, and would drop every transaction with a forbidden command
(https://github.com/redis/redis/issues/14541)."""


def redis_user(role: Role, digest: str) -> str:
    """Return the line of Redis' `aclfile` for a role; `digest` is the SHA-256 of its password, in hexadecimal.

    >>> redis_user(Role("health"), "ab")
    'user health reset on #ab resetchannels -@all +@connection -@dangerous'
    """
    granted = ""
    if role.administers:
        return f"user {role.name} reset on #{digest} ~* &* +@all"
    if role.keeps is not None:
        granted = f"~{NAME}:{{{role.keeps}}}:* {KEYS} {SCRIPTS} "
    elif role.asks:
        granted = " ".join(f"%R~{NAME}:{{{stage}}}:*" for stage in role.asks) + f" {LOOKING} "

    return f"user {role.name} reset on #{digest} resetchannels -@all {granted}+@connection -@dangerous"


def redis_acl(all_roles: Sequence[Role], digests: dict[str, str]) -> str:
    """Return Redis' `aclfile`: the disabled default user, and one user for each role with the digest of its secret."""
    users = [redis_user(role, digests[role.secret(REDIS)]) for role in all_roles if REDIS in role.servers]
    return "\n".join([NOBODY, *users]) + "\n"
