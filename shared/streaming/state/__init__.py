"""The state of runs in Redis: the store with its fence, and readers that follow it."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.state.redis_client import connect
    from shadowtime.shared.streaming.state.redis_store import RedisStore
    from shadowtime.shared.streaming.state.run_follower import (
        Position,
        RedisReader,
        RunFollower,
        RunReader,
        reading,
        reading_later,
    )

__getattr__ = lazy_exports(__name__)
