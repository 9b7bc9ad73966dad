"""A follower that cannot publish says so on its health page, and its lag grows."""

import asyncio
from typing import Any, cast

import pytest

from shadowtime.services.follower.cluster import SourceLoad
from shadowtime.services.follower.io import follower as follower_module
from shadowtime.services.follower.io.follower import Follower
from shadowtime.services.follower.io.process import health_of
from shadowtime.services.shadows.io import pages
from shadowtime.shared.errors import FollowError, StoreError
from shadowtime.shared.messages.envelope import ClusterOpened
from shadowtime.shared.streaming.settings import Settings

OPENED = ClusterOpened(time=0, cluster="mine", processors=1, mode="recorded", wait_bound="none")


class Claimed:
    """A store that grants every claim."""

    async def claim(self, run: str, owner: bytes, seconds: int) -> bytes:
        return owner

    async def release(self, run: str, owner: bytes) -> None:
        pass


class Quiet:
    """A source without news."""

    name, seen_once, over = "quiet", False, False

    def __init__(self) -> None:
        self.load = SourceLoad(behind=2.0)

    def next_time(self) -> None:
        return None

    async def listen(self) -> None:
        await asyncio.sleep(0.01)

    async def close(self) -> None:
        pass


class Loading(Follower):
    """A follower whose state is loaded once `errors` is empty."""

    errors: list[Exception]

    async def _load(self) -> None:
        self.sequence = 0
        if self.errors:
            raise self.errors[0]


@pytest.fixture
def follower(monkeypatch: pytest.MonkeyPatch) -> Loading:
    async def prepared(settings: Settings) -> int:
        return 8

    monkeypatch.setattr(follower_module.topic_admin, "prepare_topics", prepared)
    monkeypatch.setattr(follower_module, "AWAY", 0.05)
    loading = Loading("mine/live", OPENED, cast("Any", Quiet()), cast("Any", Claimed()), Settings())
    loading._stored_at = 1e12  # noqa: SLF001 - no snapshot is due
    return loading


async def until(follower: Follower, *, healthy: bool) -> dict[str, Any]:
    async with asyncio.timeout(20.0):
        while True:
            well, page = health_of(follower)
            if well == healthy:
                return page
            await asyncio.sleep(0.01)


def test_a_follower_without_redis_is_unhealthy_until_it_publishes_again(follower: Loading) -> None:
    async def run() -> None:
        follower.errors = [StoreError("Redis cannot be used: LOADING")]
        task = asyncio.create_task(follower.follow())
        page = await until(follower, healthy=False)
        assert page["reason"].startswith("has published nothing for 0 s: Redis cannot be used: LOADING")
        assert follower.behind > 2.0
        assert not pages.health_of([follower])[0]
        follower.errors = []
        page = await until(follower, healthy=True)
        assert (page["behind_seconds"], "reason" in page) == (2.0, False)
        assert pages.health_of([follower])[0]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_a_follower_that_has_ended_is_unhealthy_while_others_go_on(follower: Loading) -> None:
    async def run() -> None:
        follower.errors = [FollowError("the log has a gap")]
        with pytest.raises(FollowError):
            await follower.follow()
        well, page = pages.health_of([follower])
        assert (well, page["shadows"]["mine/live"]["reason"]) == (False, "has ended: the log has a gap")

    asyncio.run(run())
