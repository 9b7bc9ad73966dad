"""The live page as a process: it follows the stream, and queries Redis for advice and shadows."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress

from shadowtime.services.processes.ask import NAMES_OF, Gate, WordReader, advising
from shadowtime.services.processes.live.asked import asked
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.services.shadows import LiveShadows, shadows_of
from shadowtime.shared.errors import StoreError
from shadowtime.shared.kernels import get_ready
from shadowtime.shared.messages import Envelope
from shadowtime.shared.stages import SCORES
from shadowtime.shared.streaming import (
    Settings,
    TopicFollower,
    address_of,
    listening,
    prepare_topics,
    reading_later,
    shutdown_event,
)

log = logging.getLogger("shadowtime.live")


FOLLOWED = 4
"""The maximum number of runs whose state is kept for advice. That of other runs is loaded for each question."""

LOOK_SECONDS = 15.0
"""Seconds between two polls for shadows while there are visitors."""

IDLE_SECONDS = 1.0


async def serve_live(
    settings: Settings,
    host: str,
    port: int,
    names: Sequence[str] = (),
    gate: Gate | None = None,
) -> None:
    """Follow the stream and show it until SIGTERM or Ctrl-C.

    Parameters
    ----------
    settings
        Addresses of Kafka and Redis. Redis may be unavailable.
    host, port, names
        Address of the page, and names of its host, as in `listening`.
    gate
        Identification of visitors. Without it, everybody sees all jobs.

    Raises
    ------
    BusError
        If Kafka cannot be used.
    SettingsError
        If the port is taken, or one of `names` is no name of a host.
    """
    get_ready()
    await prepare_topics(settings)
    ended = shutdown_event()
    async with AsyncExitStack() as stack:
        advises = await stack.enter_async_context(advising(settings, reading_later, FOLLOWED))
        shadows = await stack.enter_async_context(shadows_of(settings))
        words = WordReader(await stack.enter_async_context(reading_later(settings, NAMES_OF)))
        live = LivePage(LiveRuns(), asked(advises, shadows, words), gate, words)
        waiting = asyncio.create_task(ended.wait())
        following = asyncio.create_task(follow(settings, live))
        looking = asyncio.create_task(look_for_shadows(live, shadows))
        try:
            async with listening(live.application(), host, port, names, cancelling=True) as server:
                log.info("the live page is at %s", address_of(server))
                await asyncio.wait({following, waiting}, return_when=asyncio.FIRST_COMPLETED)
                live.end()
        finally:
            waiting.cancel()
            looking.cancel()
            if not following.done():
                following.cancel()
            with suppress(asyncio.CancelledError):
                await following


async def follow(settings: Settings, live: LivePage) -> None:
    """Apply the log of every run from its beginning on, for ever."""
    behind: dict[int, int] = {}
    async with TopicFollower(settings, SCORES, beginning=True) as follower:
        while True:
            batch = await follower.messages()
            live.silence = follower.silence
            for message in batch:
                behind[message.partition] = message.behind
                envelope = Envelope.read(message.value)
                if envelope is not None:
                    live.runs.push(envelope)

            live.runs.behind = behind
            if batch:
                live.tell()
            await asyncio.sleep(0)  # serve visitors also while there is much to catch up on


async def look_for_shadows(live: LivePage, shadows: LiveShadows) -> None:
    """Poll for clusters with shadows, for ever. While Redis is unavailable, the last answer stays."""
    while True:
        if visited := live.visitors > 0:
            with suppress(StoreError):
                if live.runs.note_shadows(await shadows.counts()):
                    live.tell()
        await asyncio.sleep(LOOK_SECONDS if visited else IDLE_SECONDS)
