"""The identity of a topic: Kafka gives a new one to a topic that is deleted and made again.

aiokafka's own requests for metadata are older than topic ids. This module has the first version with them (KIP-516,
Kafka 2.8), with the fields of https://kafka.apache.org/protocol#The_Messages_Metadata.
"""

from io import BytesIO
from typing import Any
from uuid import UUID

from aiokafka.errors import for_code
from aiokafka.protocol.api import Request, RequestStruct, Response
from aiokafka.protocol.types import Boolean, CompactArray, CompactString, Int16, Int32, Schema, TaggedFields

NAME = CompactString("utf-8")
NOBODY = UUID(int=0)
"""The id that means none. Requests by name have it, and topics of a broker without ids."""


class _Uuid:
    """16 bytes."""

    @classmethod
    def encode(cls, value: UUID) -> bytes:
        return value.bytes

    @classmethod
    def decode(cls, data: BytesIO) -> UUID:
        return UUID(bytes=data.read(16))

    @classmethod
    def repr(cls, value: UUID) -> str:
        return str(value)


BROKER = (("node_id", Int32), ("host", NAME), ("port", Int32), ("rack", NAME), ("tags", TaggedFields))
PARTITION = (
    ("error_code", Int16),
    ("partition", Int32),
    ("leader", Int32),
    ("leader_epoch", Int32),
    ("replicas", CompactArray(Int32)),
    ("isr", CompactArray(Int32)),
    ("offline", CompactArray(Int32)),
    ("tags", TaggedFields),
)
TOPIC = (
    ("error_code", Int16),
    ("name", NAME),
    ("id", _Uuid),
    ("is_internal", Boolean),
    ("partitions", CompactArray(*PARTITION)),
    ("authorized_operations", Int32),
    ("tags", TaggedFields),
)


class _Response(Response):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 10
    SCHEMA = Schema(
        ("throttle_time_ms", Int32),
        ("brokers", CompactArray(*BROKER)),
        ("cluster_id", NAME),
        ("controller_id", Int32),
        ("topics", CompactArray(*TOPIC)),
        ("authorized_operations", Int32),
        ("tags", TaggedFields),
    )


class _Struct(RequestStruct):  # type: ignore[misc]
    API_KEY = 3
    API_VERSION = 10
    FLEXIBLE_VERSION = True
    RESPONSE_TYPE = _Response
    SCHEMA = Schema(
        ("topics", CompactArray(("id", _Uuid), ("name", NAME), ("tags", TaggedFields))),
        ("allow_auto_topic_creation", Boolean),
        ("include_cluster_authorized_operations", Boolean),
        ("include_topic_authorized_operations", Boolean),
        ("tags", TaggedFields),
    )


class _TopicRequest(Request[_Struct]):  # type: ignore[misc]
    API_KEY = 3

    def __init__(self, topic: str) -> None:
        self._topic = topic

    def build(self, request_struct_class: type[_Struct]) -> _Struct:
        """Return the request; see `Request.build`."""
        return request_struct_class([(NOBODY, self._topic, {})], False, False, False, {})


async def topic_id(client: Any, topic: str) -> str:
    """Return the id of a topic, by one request of `client`, a connected `AIOKafkaClient`.

    A broker older than Kafka 2.8 has no ids. Then every topic has the id `NOBODY`.

    Raise `KafkaError` if Kafka does not answer, or does not know the topic.
    """
    try:
        answer = await client.send(client.get_random_node(), _TopicRequest(topic))
    except NotImplementedError:  # client and broker have no common version of the request
        return str(NOBODY)
    ((code, _, identity, *_),) = answer.topics
    if code:
        raise for_code(code)(topic)
    return str(identity)
