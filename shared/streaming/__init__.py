"""All that talks to Kafka, Redis or HTTP: workers and their state, readers of the stream, servers of pages."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.kafka import (
        GroupFollower,
        Message,
        Offsets,
        PartitionFeed,
        RunClients,
        TopicFollower,
        clients,
        keep_compression,
        keep_topics,
        prepare_topics,
        read_log,
        released,
        seconds_since_answer,
        shared,
        silence_reason,
        subscribe,
        topic_admin,
    )
    from shadowtime.shared.streaming.protocols import Transaction
    from shadowtime.shared.streaming.role_settings import (
        FOLLOW_PORT,
        SHADOW_PORT,
        VARIABLE,
        format_env_file,
        read_secret,
    )
    from shadowtime.shared.streaming.server_checks import CHECKS
    from shadowtime.shared.streaming.settings import Settings, read_settings, settings_of_other_kafka
    from shadowtime.shared.streaming.state import (
        Position,
        RedisReader,
        RedisStore,
        RunFollower,
        RunReader,
        connect,
        reading,
        reading_later,
    )
    from shadowtime.shared.streaming.state_rebuild import rebuild
    from shadowtime.shared.streaming.urls import bearer_token, has_password, http_url, kafka_servers, redis_url
    from shadowtime.shared.streaming.web import (
        Handler,
        Route,
        address_of,
        listening,
        require_port,
        shutdown_event,
        split_names,
    )
    from shadowtime.shared.streaming.worker import memory_limit, run_stage, worker_pages

__getattr__ = lazy_exports(__name__)
