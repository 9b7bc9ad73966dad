"""Tests of the claim on a run: a second follower is refused, and the first one goes on."""

import asyncio

import pytest

from shadowtime.services.follower.io import follower as follower_module
from shadowtime.services.follower.io.follower import STORE, Follower
from shadowtime.shared.errors import FollowError
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.state.redis_client import connect
from shadowtime.shared.streaming.state.redis_store import RedisStore
from shadowtime.stack.servers.servers import Redis

OPENED = ClusterOpened(time=0, cluster="mine", processors=1, mode="recorded", wait_bound="none")


def test_a_run_has_one_follower(empty_redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower_module, "CLAIM", 2)
    settings = Settings(redis_url=empty_redis.url)

    async def run() -> None:
        client = connect(settings)
        store = RedisStore(client, STORE)
        first, second, third = (Follower("mine/live", OPENED, None, store, settings) for _ in range(3))  # type: ignore[arg-type]
        await first.claim()
        renewing = asyncio.create_task(first.renew())
        with pytest.raises(FollowError, match=r"'mine/live' has a follower already: 'process \d+ on .*stop it first"):
            await second.claim()
        assert await store.claim("mine/live", first.owner, 2) == first.owner
        renewing.cancel()  # killed: the claim lapses
        await third.claim()
        await store.release("mine/live", first.owner)  # no longer its own
        assert await store.claim("mine/live", second.owner, 2) == third.owner
        await store.release("mine/live", third.owner)
        assert await store.claim("mine/live", second.owner, 2) == second.owner
        await client.aclose()

    asyncio.run(run())
