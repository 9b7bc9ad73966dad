"""Followers as a process: until SIGTERM or Ctrl-C, or all is told, with its pages."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Any

from prometheus_client import CollectorRegistry

from shadowtime.replayer.following.follower import STORE, Follower
from shadowtime.replayer.following.live_source import LiveSource
from shadowtime.replayer.following.pages import health_of, registry_of
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.events import ClusterOpened
from shadowtime.shared.kernel import get_ready
from shadowtime.shared.streaming.redis_client import connect
from shadowtime.shared.streaming.redis_store import RedisStore
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import Route, listening, shutdown_event
from shadowtime.shared.streaming.web_names import split_names
from shadowtime.shared.streaming.worker_pages import worker_pages

log = logging.getLogger("shadowtime.follow")


async def follow_source(run: str, opened: ClusterOpened, source: LiveSource, settings: Settings) -> None:
    """Follow a source until the process is ended.

    Raises
    ------
    FollowError
        If the run cannot be followed.
    BusError, StoreError
        If Kafka or Redis do not answer at the start.
    """

    async def followed(store: RedisStore) -> None:
        follower = Follower(run, opened, source, store, settings)
        await follow_all([follower], settings, lambda: health_of(follower), registry_of(follower), source.routes())

    await with_store(settings, STORE, followed)


async def with_store(settings: Settings, name: str, work: Callable[[RedisStore], Awaitable[None]]) -> None:
    """Work with a store of this name, once Redis answers; raises `StoreError` if it does not."""
    client = connect(settings)
    try:
        store = RedisStore(client, name)
        await store.wait_for(settings.connect_seconds)
        await work(store)
    finally:
        await client.aclose()


async def follow_all(
    followers: Sequence[Follower],
    settings: Settings,
    health: Callable[[], tuple[bool, dict[str, Any]]],
    registry: CollectorRegistry,
    routes: Sequence[Route] = (),
) -> None:
    """Follow until the process is ended, or all followers are through; one that fails does not end the others.

    Raises
    ------
    FollowError
        Once all are through, what the first of them failed at.
    """
    get_ready()
    async with AsyncExitStack() as stack:
        ended = shutdown_event()
        if settings.web_port:
            pages = worker_pages(health, registry)
            pages.add_routes(routes)
            await stack.enter_async_context(
                listening(
                    *(pages, settings.web_host, settings.web_port, split_names(settings.web_names)),
                    bodies={route.path for route in routes},
                )
            )
        works = [asyncio.create_task(_followed(each, alone=len(followers) == 1)) for each in followers]
        waiting = asyncio.create_task(ended.wait())
        left: set[asyncio.Task[Any]] = set(works)
        while left and not ended.is_set():
            _, left = await asyncio.wait({waiting, *left}, return_when=asyncio.FIRST_COMPLETED)
            left.discard(waiting)
        for task in (waiting, *works):
            task.cancel()
        for found in await asyncio.gather(*works, waiting, return_exceptions=True):
            if isinstance(found, Exception):
                raise found


async def _followed(follower: Follower, *, alone: bool) -> None:
    try:
        await follower.follow()
    except ShadowtimeError as error:
        if not alone:  # the others go on
            log.error("run %s ends: %s", follower.run, error)
        raise
