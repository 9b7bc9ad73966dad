"""The process of shadows. Each shadow has a follower of its own; all share one metrics page."""

from collections.abc import Sequence

import orjson

from shadowtime.services.follower import Follower, follow_all, with_store
from shadowtime.services.shadows.comparison import STORE
from shadowtime.services.shadows.io.pages import ShadowCollector, health_of
from shadowtime.services.shadows.io.source import ShadowSource
from shadowtime.services.shadows.options import ShadowOptions
from shadowtime.shared.errors import FollowError, StateAltered
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.streaming import RedisStore


async def play(shadows: Sequence[ShadowOptions]) -> None:
    """Play shadows until the process is ended, or the real run is closed. All shadows must be of one real run.

    Raises
    ------
    FollowError
        If a shadow cannot be played. The other shadows are played to their ends.
    SettingsError
        If the settings of a shadow are invalid.
    BusError, StoreError
        If Kafka or Redis does not answer at the start.
    """
    settings = shadows[0].of.settings

    async def played(store: RedisStore) -> None:
        followers, real = [], None  # all shadows are of one real run: read its first event once
        for wanted in shadows:
            source = ShadowSource(wanted.of)
            like = await known(store, wanted.of.run)
            if like is None:
                like = real = real or await first_of(source)
            opened = wanted.opened(like)
            followers.append(Follower(wanted.of.run, opened, source, store, settings))

        await follow_all(followers, settings, lambda: health_of(followers), ShadowCollector(followers))

    await with_store(settings, STORE, played)


async def known(store: RedisStore, run: str) -> ClusterOpened | None:
    """Return the opening event of a stored shadow; None for a new shadow.

    Raise `FollowError` if the stored state is not what a shadow has written.
    """
    try:
        saved = await store.load(run)
    except StateAltered as error:
        raise FollowError(f"{error}; start the shadow under another name: --name NAME") from None
    return None if saved is None else ClusterOpened.model_validate(orjson.loads(saved.snapshot or b"{}")["opened"])


async def first_of(source: ShadowSource) -> ClusterOpened:
    """Return the opening event of the real run, and close the source."""
    try:
        return await source.first_event()
    finally:
        await source.close()
