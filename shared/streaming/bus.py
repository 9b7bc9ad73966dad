"""Kafka as everyone here uses it: explicit topics, idempotent producers, messages keyed by run."""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal
from zlib import crc32

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic
from aiokafka.admin.config_resource import ConfigResource, ConfigResourceType
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

from shadowtime.shared.errors import BusError, reason_of
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.unpacking import bound_unpacking
from shadowtime.shared.topics import DEAD_LETTERS, FLOW

bound_unpacking()

REFUSALS = (ssl.SSLError, AuthenticationFailedError, SaslAuthenticationFailed, UnsupportedSaslMechanismError)
"""What no patience cures: a certificate that is not trusted, a password that is not right."""

SLACK = 100_000
"""Bytes of a message beside its value: key, headers, Kafka's own."""

WORK_SECONDS = 60.0
"""Patience with a broker that is at work on topics."""

FORBIDDEN = (TopicAuthorizationFailedError.errno, ClusterAuthorizationFailedError.errno)


def partition_of(run: str, partitions: int) -> int:
    """Return the partition of a run, the same on every topic.

    >>> partition_of("kth/easy", 8)
    5
    """
    return crc32(run.encode()) % partitions


def connection(settings: Settings) -> dict[str, Any]:
    """Return the arguments that every Kafka client takes."""
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap,
        "security_protocol": settings.kafka_security_protocol,
    }
    if "SSL" in settings.kafka_security_protocol:
        arguments["ssl_context"] = ssl_context(settings)
    if "SASL" in settings.kafka_security_protocol:
        password = settings.kafka_password
        arguments |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": None if password is None else password.get_secret_value(),
        }
    return arguments


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """Return the context for TLS to Kafka."""
    try:
        context = ssl.create_default_context(cafile=settings.kafka_ca_file)
        if settings.kafka_certificate_file is not None:
            context.load_cert_chain(settings.kafka_certificate_file, settings.kafka_key_file)
    except OSError as error:
        raise BusError(f"TLS to Kafka: {settings.kafka_ca_file or settings.kafka_certificate_file}: {error}") from None
    return context


def unusable(settings: Settings, error: Exception) -> BusError:
    """Return the error that tells which Kafka it was, and what it said."""
    return BusError(f"Kafka at {settings.kafka_bootstrap} cannot be used: {reason_of(error)}")


def producer(settings: Settings) -> AIOKafkaProducer:
    """Return a producer that neither loses, doubles nor reorders; not yet started."""
    return AIOKafkaProducer(
        **connection(settings),
        enable_idempotence=True,
        acks="all",
        max_batch_size=200_000,  # of a partition one is under way at a time; a slice of a run is smaller
        max_request_size=settings.max_output_bytes + SLACK,
        request_timeout_ms=60_000,  # an outage of half a minute is waited for
    )


def reader(settings: Settings, *, begin: Literal["earliest", "latest"] = "earliest") -> AIOKafkaConsumer:
    """Return a consumer outside any group, not yet started; `begin` is where it reads a partition first."""
    return AIOKafkaConsumer(
        **connection(settings),
        enable_auto_commit=False,
        auto_offset_reset=begin,
        max_partition_fetch_bytes=4 * settings.max_message_bytes,
        fetch_max_wait_ms=100,
    )


async def prepare_topics(settings: Settings) -> int:
    """Create the topics that are missing and return how many partitions they have, once each has a leader.

    Raises
    ------
    BusError
        If Kafka cannot be reached within `connect_seconds`, refuses, or has topics of unequal partitions.
    """
    return await _administer(settings, lambda admin: _prepare(admin, settings))


async def keep_topics(settings: Settings) -> None:
    """Have all topics, also those that are there, kept for `retention_hours`; see `prepare_topics` for errors."""

    async def alter(admin: AIOKafkaAdminClient) -> int:
        kinds = [ConfigResource(ConfigResourceType.TOPIC, name, _configs(settings)) for name in (*FLOW, DEAD_LETTERS)]
        for answer in await admin.alter_configs(kinds):
            for why in (why for code, why, *_ in answer.resources if code):
                raise BusError(f"Kafka does not change its topics: {why}")
        return len(kinds)

    await _administer(settings, alter)


async def partitions_of(settings: Settings, topic: str) -> int:
    """Return how many partitions a topic has, once each has a leader; 0 if there is no such topic.

    Raises
    ------
    BusError
        If Kafka cannot be reached within `connect_seconds`.
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

    Of a topic that was just made the metadata name leaders that do not yet know it; only their answers tell.
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
    """Do `work` with an administrator; a broker that is not there yet is asked again for `connect_seconds`.

    One that is there has longer: on a busy machine new topics take their time.
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
    """Wait for a broker that lets us in: a bare connection tells why one does not, where a client only logs it."""
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
    names = (*FLOW, DEAD_LETTERS)
    existing = set(await admin.list_topics())
    new = [
        NewTopic(name, settings.partitions, settings.replication_factor, topic_configs=_configs(settings))
        for name in names
        if name not in existing
    ]
    if new:
        _require_created(await admin.create_topics(new), settings)
    while True:  # new topics take a moment to be known
        described = {each["topic"]: len(each["partitions"]) for each in await admin.describe_topics(list(FLOW))}
        if all(described.get(name) for name in FLOW):
            break
        await asyncio.sleep(0.1)
    if len(set(described.values())) > 1:
        raise BusError(f"topics have unequal numbers of partitions: {described}")
    await _wait_for_leaders(settings, described)
    return described[FLOW[0]]


def _configs(settings: Settings) -> dict[str, str]:
    """Return how a topic is kept."""
    return {
        "retention.ms": str(-1 if settings.retention_hours < 0 else settings.retention_hours * 3_600_000),
        "retention.bytes": "-1",
        "cleanup.policy": "delete",
        "max.message.bytes": str(settings.max_output_bytes + SLACK),
    }


def _require_created(response: Any, settings: Settings) -> None:
    """Raise unless the topics are there now; that another worker was quicker is fine."""
    refused = {name: code for name, code, *_ in response.topic_errors if code not in (0, TopicAlreadyExistsError.errno)}
    if forbidden := [name for name, code in refused.items() if code in FORBIDDEN]:
        user = "whoever gives no name" if settings.kafka_username is None else f"user {settings.kafka_username!r}"
        raise BusError(
            f"Kafka at {settings.kafka_bootstrap} shows {user} no topic {', '.join(forbidden)}, nor may it create one; "
            "do that first, as a user who may: shadowtime topics"
        )
    for name, code in refused.items():
        raise for_code(code)(name)
