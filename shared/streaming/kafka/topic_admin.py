"""Administration of topics: create missing ones, set their retention, wait for the leaders of their partitions."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aiokafka import TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
from aiokafka.client import AIOKafkaClient
from aiokafka.conn import collect_hosts, create_conn
from aiokafka.errors import (
    AuthenticationFailedError,
    ClusterAuthorizationFailedError,
    KafkaError,
    SaslAuthenticationFailed,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    UnsupportedSaslMechanismError,
    for_code,
)

from shadowtime.shared.errors import BusError
from shadowtime.shared.stages import DEAD_LETTERS, FLOW
from shadowtime.shared.streaming.kafka.clients import SLACK, connection, reader, unusable
from shadowtime.shared.streaming.kafka.topic_identity import topic_id
from shadowtime.shared.streaming.settings import Settings

REFUSALS = (ssl.SSLError, AuthenticationFailedError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)
"""Errors for which a retry is useless: an untrusted certificate, a wrong password."""

WORK_SECONDS = 60.0
"""Timeout in seconds for a broker that is working on topics."""

OF_TOPIC = 1
"""The source, in Kafka's answers about configuration, of a value that is set for the topic itself."""

AS_SENT = {"compression.type": "producer"}
"""Configuration by which a broker does not compress messages by itself."""

FORBIDDEN = (TopicAuthorizationFailedError.errno, ClusterAuthorizationFailedError.errno)


async def prepare_topics(settings: Settings) -> int:
    """Create missing topics, wait for the leader of each partition, and return the number of partitions of a topic.

    Raise `BusError` if Kafka cannot be reached within `connect_seconds`, refuses a request, or has topics with
    different numbers of partitions.
    """
    return await _administer(settings, lambda admin: _prepare(admin, settings))


async def keep_topics(settings: Settings) -> None:
    """Give all existing topics the configuration of new ones, with the retention `retention_hours`.

    Raise the same errors as `prepare_topics`.
    """

    async def alter(admin: AIOKafkaAdminClient) -> int:
        kinds = [
            ConfigResource(
                ConfigResourceType.TOPIC, topic["topic"], _configs(settings, len(topic["partitions"][0]["replicas"]))
            )
            for topic in await admin.describe_topics([*FLOW, DEAD_LETTERS])
        ]
        return await _alter(admin, kinds, "the new retention of its topics")

    await _administer(settings, alter)


async def keep_compression(settings: Settings) -> None:
    """Let Kafka store messages as producers send them. Change existing topics that it compresses on its own.

    All other configuration of the topics stays. Readers support no codec but gzip, so they could not read messages that
    the broker compresses (`compression.type=lz4`). Raise the same errors as `prepare_topics`.
    """

    async def alter(admin: AIOKafkaAdminClient) -> int:
        topics = [ConfigResource(ConfigResourceType.TOPIC, name) for name in (*FLOW, DEAD_LETTERS)]
        kinds: list[ConfigResource] = []
        for answer in await admin.describe_configs(topics):
            for code, why, _, name, entries in answer.resources:
                if code:
                    raise BusError(f"Kafka returned no configuration of topic {name}: {why}")
                values = {entry[0]: entry[1] for entry in entries}
                own = {entry[0]: entry[1] for entry in entries if entry[3] == OF_TOPIC}
                if values.get("compression.type") not in (None, AS_SENT["compression.type"]):
                    kinds.append(ConfigResource(ConfigResourceType.TOPIC, name, own | AS_SENT))
        return await _alter(admin, kinds, f"{AS_SENT} for its topics") if kinds else 0

    await _administer(settings, alter)


async def _alter(admin: AIOKafkaAdminClient, kinds: Sequence[ConfigResource], what: str) -> int:
    for answer in await admin.alter_configs(kinds):
        for why in (why for code, why, *_ in answer.resources if code):
            raise BusError(f"Kafka rejected {what}: {why}")
    return len(kinds)


async def identity_of(settings: Settings, topic: str) -> str:
    """Return the id that Kafka gave an existing topic when the topic was made; see `topic_id`.

    Raise `BusError` if Kafka does not answer, or has no such topic.
    """
    client = AIOKafkaClient(**connection(settings))
    try:
        await client.bootstrap()
        return await topic_id(client, topic)
    except (KafkaError, OSError) as error:
        raise unusable(settings, error) from None
    finally:
        await client.close()


async def partitions_of(settings: Settings, topic: str) -> int:
    """Wait for the leader of each partition of a topic, and return their number; 0 if there is no such topic.

    Raise `BusError` if Kafka cannot be reached within `connect_seconds`.
    """
    return await _administer(settings, lambda admin: _count(admin, settings, topic))


async def _count(admin: AIOKafkaAdminClient, settings: Settings, topic: str) -> int:
    if topic not in await admin.list_topics():
        return 0
    (described,) = await admin.describe_topics([topic])
    count = len(described["partitions"])
    await _wait_for_leaders(settings, {topic: count})
    return count


async def _wait_for_leaders(settings: Settings, partitions: Mapping[str, int]) -> None:
    """Wait until every partition of these topics is led by a broker that knows of it.

    The metadata of a new topic may name leaders that do not know it yet. Only an answer from the leaders themselves is
    reliable.
    """
    consumer = reader(settings)
    try:
        await consumer.start()
        await consumer.end_offsets(
            [TopicPartition(topic, number) for topic, count in partitions.items() for number in range(count)]
        )
    finally:
        await consumer.stop()


async def _administer(settings: Settings, work: Callable[[AIOKafkaAdminClient], Awaitable[int]]) -> int:
    """Run `work` with an admin client. Retry for `connect_seconds` while the broker cannot be reached.

    A broker that can be reached has longer for the work: on a busy machine, new topics take time.
    """
    loop = asyncio.get_running_loop()
    until = loop.time() + settings.connect_seconds
    await _reach(settings, until)
    patience = max(settings.connect_seconds, WORK_SECONDS)
    while True:
        admin = AIOKafkaAdminClient(**connection(settings), request_timeout_ms=int(patience * 1000))
        try:
            async with asyncio.timeout(patience):
                await admin.start()
                return await work(admin)
        except (KafkaError, OSError, TimeoutError) as error:
            if loop.time() + 0.5 > until:
                raise unusable(settings, error) from None
        finally:
            await admin.close()

        await asyncio.sleep(0.5)


async def _reach(settings: Settings, until: float) -> None:
    """Wait for a broker that accepts us. A bare connection raises the reason of a refusal; a client only logs it."""
    arguments = connection(settings)
    hosts = collect_hosts(arguments.pop("bootstrap_servers"))
    while True:
        for host, port, _ in hosts:
            try:
                async with asyncio.timeout_at(until):
                    await (await create_conn(host, port, **arguments)).close()
                    return
            except (KafkaError, OSError, TimeoutError) as error:
                why = error

        refused = isinstance(why, REFUSALS)
        if refused or asyncio.get_running_loop().time() + 0.5 > until:
            raise unusable(settings, why) from None
        await asyncio.sleep(0.5)


async def _prepare(admin: AIOKafkaAdminClient, settings: Settings) -> int:
    existing, replicas = set(await admin.list_topics()), settings.replication_factor
    new = [
        NewTopic(name, settings.partitions, replicas, topic_configs=_configs(settings, replicas))
        for name in (*FLOW, DEAD_LETTERS)
        if name not in existing
    ]
    if new:
        _require_created(await admin.create_topics(new), settings)
    while True:  # new topics take a moment to be known
        described = {topic["topic"]: len(topic["partitions"]) for topic in await admin.describe_topics(list(FLOW))}
        if all(described.get(name) for name in FLOW):
            break
        await asyncio.sleep(0.1)

    if len(set(described.values())) > 1:
        raise BusError(f"expected topics with equal numbers of partitions, found {described}")
    await _wait_for_leaders(settings, described)
    return described[FLOW[0]]


def _configs(settings: Settings, replicas: int) -> dict[str, str]:
    """Return the configuration of a topic. An acknowledged message is on all replicas but one, at least."""
    return {
        "min.insync.replicas": str(max(1, replicas - 1)),
        "retention.ms": str(-1 if settings.retention_hours < 0 else settings.retention_hours * 3_600_000),
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        **AS_SENT,
        "max.message.bytes": str(settings.max_output_bytes + SLACK),
    }


def _require_created(response: Any, settings: Settings) -> None:
    """Raise an error unless the topics exist now. Another worker may have created them first."""
    refused = {name: code for name, code, *_ in response.topic_errors if code not in (0, TopicAlreadyExistsError.errno)}
    if forbidden := [name for name, code in refused.items() if code in FORBIDDEN]:
        user = "a client without a user" if settings.kafka_username is None else f"user {settings.kafka_username!r}"
        raise BusError(
            f"Kafka at {settings.kafka_bootstrap}: {user} may neither see nor create topic {', '.join(forbidden)}; "
            "create it first, as a user who may: shadowtime topics"
        )
    for name, code in refused.items():
        raise for_code(code)(name)
