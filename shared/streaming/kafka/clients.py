"""Kafka as everyone here uses it: idempotent producers, readers outside any group, messages keyed by run."""

import ssl
from typing import Any, Literal
from zlib import crc32

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from shadowtime.shared.errors import BusError, reason_of
from shadowtime.shared.streaming.kafka.decompression import limit_decompression
from shadowtime.shared.streaming.settings import Settings

limit_decompression()

SLACK = 100_000
"""Bytes of a message beside its value: key, headers, Kafka's own."""


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


def reader(
    settings: Settings, *, begin: Literal["earliest", "latest"] = "earliest", wait_ms: int = 100
) -> AIOKafkaConsumer:
    """Return a consumer outside any group, not yet started.

    Parameters
    ----------
    begin
        Where it reads a partition first.
    wait_ms
        How long Kafka waits for records, in milliseconds, where there are none.
    """
    return AIOKafkaConsumer(
        **connection(settings),
        enable_auto_commit=False,
        auto_offset_reset=begin,
        max_partition_fetch_bytes=4 * settings.max_message_bytes,
        fetch_max_wait_ms=wait_ms,
    )
