"""Clients of Kafka: producers, batches, readers of logs, topics."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.kafka import clients, topic_admin
    from shadowtime.shared.streaming.kafka.clients import partition_of
    from shadowtime.shared.streaming.kafka.log_reader import LogReader, read_log
    from shadowtime.shared.streaming.kafka.offset_commits import deliver_batches
    from shadowtime.shared.streaming.kafka.partition_log import MAX_KEY_LENGTH, PartitionLog, name_of
    from shadowtime.shared.streaming.kafka.record_batches import UnreadableReason, UnsupportedReason
    from shadowtime.shared.streaming.kafka.shared_clients import PartitionFeed, RunClients, released, shared
    from shadowtime.shared.streaming.kafka.stage_stream import KafkaStream
    from shadowtime.shared.streaming.kafka.topic_admin import (
        keep_compression,
        keep_topics,
        partitions_of,
        prepare_topics,
    )
    from shadowtime.shared.streaming.kafka.topic_follower import (
        GroupFollower,
        Message,
        Offsets,
        TopicFollower,
        seconds_since_answer,
        silence_reason,
        subscribe,
    )

__getattr__ = lazy_exports(__name__)
