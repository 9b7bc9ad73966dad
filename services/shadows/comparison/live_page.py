"""Comparisons of a cluster with its shadows, as the live page shows them."""

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

from pydantic import Field

from shadowtime.services.shadows.comparison.schema import Comparison
from shadowtime.services.shadows.comparison.stored import (
    STORE,
    StoredShadow,
    StoredShadowCache,
    none_of,
    shadows_beside,
)
from shadowtime.services.shadows.comparison.text import MAX_USERS_SHOWN, SHAPES_MEAN, notes_of, verdict
from shadowtime.shared.errors import Unanswerable
from shadowtime.shared.messages import FrozenModel
from shadowtime.shared.streaming import Settings, reading_later


class Beside(FrozenModel):
    """A shadow compared with the real cluster, with a verdict and notes.

    `compared` has only the users with the most work. `more_users` is the number of the others.
    """

    run: str
    real: str
    name: str
    unix_start: int
    verdict: str | None
    notes: tuple[str, ...]
    more_users: int
    compared: Comparison


class Twin(FrozenModel):
    """A cluster compared with its shadows. The shadow with the greatest reduction of the mean wait comes first.

    `names` has the names of the users in the tables, by number; empty if no names are known.
    """

    cluster: str
    classes_mean: str = SHAPES_MEAN
    shadows: tuple[Beside, ...]
    names: Mapping[int, str] = Field(default_factory=dict)

    def without_users(self) -> "Twin":
        """Return the comparison without the tables of users, for visitors who do not see all jobs."""
        hidden = {"users": ()}
        shadows = (
            shadow.replaced(compared=shadow.compared.model_copy(update=hidden), more_users=0) for shadow in self.shadows
        )
        return self.replaced(shadows=tuple(shadows), names={})

    def users(self) -> set[int]:
        """Return the numbers of the users in the tables."""
        every = (user.user for shadow in self.shadows for user in shadow.compared.users)
        return {number for number in every if number is not None}


class LiveShadows:
    """Source of the live page's data on shadows."""

    def __init__(self, kept: StoredShadowCache) -> None:
        self._kept = kept

    async def counts(self) -> Mapping[str, int]:
        """Return the number of shadows of each cluster that has any. Raise `StoreError` if Redis cannot be used."""
        return Counter(shadow.cluster for shadow in await self._kept.shadows())

    async def twin(self, cluster: str) -> Twin:
        """Return a cluster compared with its shadows. `cluster` may also be the name of a real run.

        Raises
        ------
        Unanswerable
            If the cluster has no shadow. The message names clusters that have shadows.
        StoreError
            If Redis cannot be used.
        """
        every = await self._kept.shadows()
        chosen = shadows_beside(cluster, every)
        if not chosen:
            raise Unanswerable(404, none_of(cluster, every))
        return Twin(cluster=cluster, shadows=tuple(map(beside, sorted(chosen, key=_longer))))


def beside(shadow: StoredShadow) -> Beside:
    """Return a shadow compared with its cluster."""
    compared = shadow.compared
    return Beside(
        run=shadow.run,
        real=shadow.real,
        name=shadow.name,
        unix_start=shadow.unix_start,
        verdict=verdict(compared, shadow.unix_start),
        notes=tuple(notes_of(shadow.name, compared)),
        more_users=max(len(compared.users) - MAX_USERS_SHOWN, 0),
        compared=compared.model_copy(update={"users": compared.users[:MAX_USERS_SHOWN]}),
    )


def _longer(shadow: StoredShadow) -> float:
    """Return the relative increase of the mean wait in a shadow; infinity if no day is compared yet."""
    result = shadow.compared.all
    return float("inf") if result is None or result.wait_change is None else result.wait_change.mean


@asynccontextmanager
async def shadows_of(settings: Settings) -> AsyncIterator[LiveShadows]:
    """Yield the source of the live page's data on shadows. Redis need not answer yet."""
    async with reading_later(settings, STORE) as reader:
        yield LiveShadows(StoredShadowCache(reader))
