"""Shadows as a process: each a follower of its own, with one page of figures for all."""

from collections.abc import Sequence

import orjson

from shadowtime.services.follower import Follower, follow_all, with_store
from shadowtime.services.shadows.comparison import STORE
from shadowtime.services.shadows.io.pages import health_of, registry_of
from shadowtime.services.shadows.io.source import ShadowSource
from shadowtime.services.shadows.options import ShadowOptions
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.streaming import RedisStore


async def play(shadows: Sequence[ShadowOptions]) -> None:
    """Play shadows until the process is ended, or the run whose shadows they are is closed.

    Raises
    ------
    FollowError
        If one of them cannot be played; the others are played to their ends.
    SettingsError
        If one of them would not be known by its settings.
    BusError, StoreError
        If Kafka or Redis do not answer at the start.
    """
    settings = shadows[0].of.settings

    async def played(store: RedisStore) -> None:
        followers, real = [], None  # all are of one run, which is looked for once
        for wanted in shadows:
            source = ShadowSource(wanted.of)
            like = await known(store, wanted.of.run)
            if like is None:
                like = real = real or await first_of(source)
            opened = wanted.opened(like)
            followers.append(Follower(wanted.of.run, opened, source, store, settings))

        await follow_all(followers, settings, lambda: health_of(followers), registry_of(followers))

    await with_store(settings, STORE, played)


async def known(store: RedisStore, run: str) -> ClusterOpened | None:
    """Return how a shadow was opened that goes on; None of a new one."""
    saved = await store.load(run)
    return None if saved is None else ClusterOpened.model_validate(orjson.loads(saved.snapshot or b"{}")["opened"])


async def first_of(source: ShadowSource) -> ClusterOpened:
    """Return how the real run was opened."""
    try:
        return await source.first_event()
    finally:
        await source.close()
