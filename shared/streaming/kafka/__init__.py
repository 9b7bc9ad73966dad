"""Clients of Kafka: producers, readers of logs, topics, bounded decompression."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.kafka import clients, topic_admin
    from shadowtime.shared.streaming.kafka.clients import partition_of
    from shadowtime.shared.streaming.kafka.decompression import NotUnpacked
    from shadowtime.shared.streaming.kafka.log_reader import LogReader, read_log
    from shadowtime.shared.streaming.kafka.shared_clients import PartitionFeed, RunClients, released, shared
    from shadowtime.shared.streaming.kafka.stage_stream import KafkaStream
    from shadowtime.shared.streaming.kafka.topic_admin import keep_topics, partitions_of, prepare_topics
    from shadowtime.shared.streaming.kafka.topic_follower import (
        GroupFollower,
        Message,
        Offsets,
        TopicFollower,
        subscribe,
    )

__all__ = [
    "GroupFollower",
    "KafkaStream",
    "LogReader",
    "Message",
    "NotUnpacked",
    "Offsets",
    "PartitionFeed",
    "RunClients",
    "TopicFollower",
    "clients",
    "keep_topics",
    "partition_of",
    "partitions_of",
    "prepare_topics",
    "read_log",
    "released",
    "shared",
    "subscribe",
    "topic_admin",
]

__getattr__ = lazy_exports(
    __name__,
    {
        "clients": ("partition_of",),
        "decompression": ("NotUnpacked",),
        "log_reader": (
            "LogReader",
            "read_log",
        ),
        "shared_clients": (
            "PartitionFeed",
            "RunClients",
            "released",
            "shared",
        ),
        "stage_stream": ("KafkaStream",),
        "topic_admin": (
            "keep_topics",
            "partitions_of",
            "prepare_topics",
        ),
        "topic_follower": (
            "GroupFollower",
            "Message",
            "Offsets",
            "TopicFollower",
            "subscribe",
        ),
    },
    modules=(
        "clients",
        "topic_admin",
    ),
)
