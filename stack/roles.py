"""Roles: one line each, from which rights in Kafka and Redis and names of secrets follow.

A stage reads its own topic (and what it wrote), writes the next one and dead letters, and keeps its state in Redis
under its own name; nobody else does. Everyone may know that a topic exists and how many partitions it has, which is how
the place of a run is found. What is not granted is refused.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from shadowtime.shared.stages import DEAD_LETTERS, DECISIONS, FLOW, JOBS, SCORES

NAME = "shadowtime"
"""With what groups and keys begin."""

ADMIN, REPLAYER, FOLLOW, SHADOW, METRICS, LIVE, SUBSCRIBER, ASK, HEALTH = (
    *("admin", "replayer", "follow", "shadow", "metrics", "live", "subscriber", "ask", "health"),
)
ASKED = ("runtime_distribution", "wait_bound", "scheduler", "scoreboard", "shadow")
"""Stages whose state answers questions, and shadows."""

SHOWN = ("runtime_distribution", "wait_bound", "scheduler", "shadow")
"""Stages whose state the live page reads: those that advise, and shadows."""

KAFKA, REDIS, VICTORIA_METRICS = "kafka", "redis", "victoria-metrics"


@dataclass(frozen=True)
class Role:
    """Rights of one kind of process.

    Parameters
    ----------
    name
        User of Kafka and of Redis.
    reads, writes
        Topics.
    group
        The consumer group that it may be a member of, `*` at its end for all that begin so; none for a reader of its
        own.
    keeps, asks
        Whose keys in Redis it reads and writes, or only reads: those of stages, of the follower, or of shadows.
    samples
        Whether it has the password of VictoriaMetrics, which knows one user: who reads there may write, too.
    administers
        Whether it may do everything.
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
        """Servers that know it, each with a password of its own."""
        kafka = self.administers or bool(self.reads or self.writes)
        redis = self.administers or bool(self.keeps or self.asks) or self.name == HEALTH
        samples = self.administers or self.samples
        known = {KAFKA: kafka, REDIS: redis, VICTORIA_METRICS: samples}
        return tuple(server for server, knows in known.items() if knows)

    def secret(self, server: str) -> str:
        """Return the name of its password there.

        >>> Role("scheduler").secret(KAFKA)
        'kafka-scheduler'
        """
        return f"{server}-{self.name}"


def roles(stages: Sequence[str]) -> tuple[Role, ...]:
    """Return all roles; `stages` are those of the pipeline, in the order of the flow.

    An operator who rebuilds a stage takes the role of the stage.

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
        Role(SUBSCRIBER, reads=everything, group=f"{SUBSCRIBER}-*"),  # each reads for itself
        Role(ASK, asks=ASKED),
        Role(HEALTH),
    )


def secret_names(all_roles: Sequence[Role]) -> list[str]:
    """Return the name of every password.

    >>> secret_names(roles(["first"]))[:4]
    ['kafka-admin', 'redis-admin', 'victoria-metrics-admin', 'kafka-replayer']
    """
    return [role.secret(server) for role in all_roles for server in role.servers]


class Binding(NamedTuple):
    """An ACL of Kafka that allows something from any host, in the words of its own tools."""

    principal: str
    resource: str
    name: str
    pattern: str
    operation: str


def kafka_acls(all_roles: Sequence[Role]) -> list[Binding]:
    """Return what Kafka shall allow; an administrator is among `super.users` instead, and all else is refused.

    To write idempotently, the right to write is enough.

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
    for topic in (*FLOW, DEAD_LETTERS):
        yield Binding(user, "TOPIC", topic, "LITERAL", "DESCRIBE")
    for topic in role.reads:
        yield Binding(user, "TOPIC", topic, "LITERAL", "READ")
    for topic in role.writes:
        yield Binding(user, "TOPIC", topic, "LITERAL", "WRITE")
    if role.group is not None:
        prefix = role.group.removesuffix("*")
        yield Binding(user, "GROUP", prefix, "LITERAL" if prefix == role.group else "PREFIXED", "READ")


KEYS = "+@hash +@list +@set +del +unlink +exists +type +expire +pexpire +expireat +ttl +pttl +persist"
"""Commands that name the keys they touch."""

SCRIPTS = "+eval +evalsha +script|load +script|exists +multi +exec +discard +watch +unwatch +cluster|slots"
LOOKING = "+@hash +@list +@set +exists +type +ttl +pttl +scan +multi +exec +discard +cluster|slots"
"""Commands of a reader, with a right to read its own keys only; `SCAN` shows names, of other keys too."""


NOBODY = "user default off ~* &* +@all"
"""A user without a name gets in nowhere. Yet that user may do everything. As this user Redis reads its own append-only
file, and it would keep nothing of a transaction with a forbidden command
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
    """Return Redis' `aclfile`: nobody without a name, and one user for each role, by the digests of their secrets."""
    users = [redis_user(role, digests[role.secret(REDIS)]) for role in all_roles if REDIS in role.servers]
    return "\n".join([NOBODY, *users]) + "\n"
