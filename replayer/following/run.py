"""A follower as a process: until SIGTERM or Ctrl-C, with its pages."""

import asyncio
from contextlib import AsyncExitStack

from shadowtime.replayer.following.follower import STORE, Follower
from shadowtime.replayer.following.live_source import LiveSource
from shadowtime.replayer.following.pages import health_of, registry_of
from shadowtime.shared.events import ClusterOpened
from shadowtime.shared.streaming.redis_store import RedisStore, connect
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.web import listening, shutdown_event
from shadowtime.shared.streaming.web_names import split_names
from shadowtime.shared.streaming.worker_pages import worker_pages


async def follow_source(run: str, opened: ClusterOpened, source: LiveSource, settings: Settings) -> None:
    """Follow a source until the process is ended.

    Raises
    ------
    FollowError
        If the run cannot be followed.
    BusError, StoreError
        If Kafka or Redis do not answer at the start.
    """
    client = connect(settings)
    try:
        store = RedisStore(client, STORE)
        await store.wait_for(settings.connect_seconds)
        follower = Follower(run, opened, source, store, settings)
        async with AsyncExitStack() as stack:
            ended = shutdown_event()
            if settings.web_port:
                pages = worker_pages(lambda: health_of(follower), registry_of(follower))
                routes = source.routes()
                pages.add_routes(routes)
                await stack.enter_async_context(
                    listening(
                        *(pages, settings.web_host, settings.web_port, split_names(settings.web_names)),
                        bodies={route.path for route in routes},
                    )
                )
            work = asyncio.create_task(follower.follow())
            waiting = asyncio.create_task(ended.wait())
            await asyncio.wait([waiting, work], return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if work.done():
                await work
            work.cancel()
            await asyncio.gather(waiting, work, return_exceptions=True)
    finally:
        await client.aclose()
