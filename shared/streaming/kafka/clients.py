"""The Kafka clients of this project: idempotent producers, readers outside any group, messages keyed by run."""

import ssl
from typing import Any, Literal
from zlib import crc32

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from shadowtime.shared.errors import BusError, SettingsError, reason_of
from shadowtime.shared.streaming.kafka.record_batches import read_safely
from shadowtime.shared.streaming.settings import Settings

read_safely()

SLACK = 100_000
"""Allowance in bytes for the parts of a message besides its value: key, headers, Kafka's own fields."""


def partition_of(run: str, partitions: int) -> int:
    """Return the partition of a run, the same on every topic.

    >>> partition_of("kth/easy", 8)
    5
    """
    return crc32(run.encode()) % partitions


def connection(settings: Settings) -> dict[str, Any]:
    """Return the arguments that all Kafka clients need. Raise `SettingsError` if a login lacks its user or password."""
    arguments: dict[str, Any] = {
        "bootstrap_servers": settings.kafka_bootstrap,
        "security_protocol": settings.kafka_security_protocol,
    }
    if "SSL" in settings.kafka_security_protocol:
        arguments["ssl_context"] = ssl_context(settings)
    if "SASL" in settings.kafka_security_protocol:
        if settings.kafka_username is None or settings.kafka_password is None:
            raise SettingsError(
                f"Kafka at {settings.kafka_bootstrap} needs a login, as the setting kafka_security_protocol is "
                f"{settings.kafka_security_protocol}; set kafka_username and kafka_password, or kafka_password_file"
            )
        arguments |= {
            "sasl_mechanism": settings.kafka_sasl_mechanism,
            "sasl_plain_username": settings.kafka_username,
            "sasl_plain_password": settings.kafka_password.get_secret_value(),
        }

    return arguments


def ssl_context(settings: Settings) -> ssl.SSLContext:
    """Return the context for TLS to Kafka. Raise `BusError` if a file of the settings cannot be used."""
    try:
        context = ssl.create_default_context(cafile=settings.kafka_ca_file)
        if settings.kafka_certificate_file is not None:
            context.load_cert_chain(settings.kafka_certificate_file, settings.kafka_key_file, _password_of_key)
    except OSError as error:
        files = (settings.kafka_ca_file, settings.kafka_certificate_file, settings.kafka_key_file)
        named = ", ".join(str(file) for file in files if file is not None)
        raise BusError(f"TLS to Kafka cannot be set up with {named}: {error}") from None
    return context


def _password_of_key() -> str:
    """Refuse a key that has a password. By default, OpenSSL would ask for it on the terminal, for ever."""
    raise BusError("TLS to Kafka cannot be set up: kafka_key_file is encrypted; expected a key without a password")


def unusable(settings: Settings, error: Exception) -> BusError:
    """Return an error with the address of Kafka, and the reason."""
    return BusError(f"Kafka at {settings.kafka_bootstrap} cannot be used: {reason_of(error)}")


def producer(settings: Settings, patience: float = 60.0) -> AIOKafkaProducer:
    """Return a producer, not yet started, that neither loses, duplicates nor reorders messages.

    After `patience` seconds without an answer, it sends a request again. By default, that outlasts an outage of half a
    minute.
    """
    return AIOKafkaProducer(
        **connection(settings),
        enable_idempotence=True,
        acks="all",
        max_batch_size=200_000,  # one batch per partition is under way at a time; a slice of a run is smaller
        max_request_size=settings.max_output_bytes + SLACK,
        request_timeout_ms=int(1000 * patience),
    )


async def started(consumer: AIOKafkaConsumer) -> AIOKafkaConsumer:
    """Start a consumer and return it. If the start fails, stop the consumer and raise the error."""
    try:
        await consumer.start()
    except BaseException:
        await consumer.stop()
        raise
    return consumer


def reader(
    settings: Settings, *, begin: Literal["earliest", "latest"] = "earliest", wait_ms: int = 500
) -> AIOKafkaConsumer:
    """Return a consumer outside any group, not yet started.

    Parameters
    ----------
    begin
        Whether it begins to read at the earliest record of a partition, or after the latest.
    wait_ms
        Milliseconds that Kafka waits for records if there are none. Each answer costs the process about 1 ms.
    """
    return AIOKafkaConsumer(
        **connection(settings),
        enable_auto_commit=False,
        auto_offset_reset=begin,
        max_partition_fetch_bytes=4 * settings.max_message_bytes,
        fetch_max_wait_ms=wait_ms,
    )
