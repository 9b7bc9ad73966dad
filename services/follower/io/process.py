"""The process of followers, with its HTTP pages. It runs until SIGTERM or Ctrl-C, or until all sources have ended."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from shadowtime.services.follower.cluster import LiveSource, exporter_figures
from shadowtime.services.follower.io.follower import STORE, Follower
from shadowtime.services.follower.io.json_lines import Lines
from shadowtime.services.follower.io.pbs import Pbs
from shadowtime.services.follower.io.slurm import SlurmSource
from shadowtime.shared import metric_names as names
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.kernels import get_ready
from shadowtime.shared.messages import ClusterOpened
from shadowtime.shared.streaming import (
    RedisStore,
    Route,
    Settings,
    connect,
    listening,
    shutdown_event,
    split_names,
    worker_pages,
)

# Pages of a follower: `/health`, and figures at `/metrics`.

STALE = 600.0
"""Least lag of the log behind the cluster, in seconds, at which a follower is unhealthy."""


class FollowerCollector(Collector):
    """Prometheus collector of the metrics of a follower. It reads them at each scrape."""

    def __init__(self, follower: Follower) -> None:
        self._follower = follower

    def collect(self) -> Iterator[CounterMetricFamily | GaugeMetricFamily]:
        """Yield each metric with its value."""
        load = self._follower.source.load
        values = {
            names.FOLLOW_EVENTS: self._follower.sequence + 1,
            names.FOLLOW_ANSWERS: load.answers,
            names.FOLLOW_FAILURES: load.failures,
            names.FOLLOW_SECONDS: load.seconds,
            names.FOLLOW_LATE: load.late,
            names.FOLLOW_GUESSED: load.guessed,
            names.FOLLOW_LEFT_OUT: load.left_out,
            names.FOLLOW_REFUSED: load.refused,
            names.FOLLOW_HELD_BACK: load.held_back,
            names.FOLLOW_CONTRADICTED: int(load.contradicted),
            names.FOLLOW_BEHIND: self._follower.behind,
            names.FOLLOW_SHARE: load.share,
        }
        for metric, value in values.items():
            if value is not None:
                kind = CounterMetricFamily if metric.name.endswith("_total") else GaugeMetricFamily
                family = kind(metric.name, metric.meaning, labels=metric.labels)
                family.add_metric([self._follower.opened.cluster], float(value))
                yield family
        yield from self._as_exporters()

    def _as_exporters(self) -> Iterator[GaugeMetricFamily]:
        """Yield the figures of the last picture of a Slurm cluster under the names of common exporters."""
        source = self._follower.source
        if not isinstance(source, SlurmSource) or (picture := source.mirror.picture) is None:
            return
        for name, meaning, label, values in exporter_figures(picture, source.names.names.shown):
            family = GaugeMetricFamily(name, meaning, labels=("cluster", label) if label else ("cluster",))
            for value, count in values.items():
                cluster = self._follower.opened.cluster
                family.add_metric([cluster, value] if label else [cluster], count)
            yield family


def health_of(follower: Follower) -> tuple[bool, dict[str, Any]]:
    """Return whether the follower is healthy, and the content of its health page.

    It is unhealthy if it has failed, lags by `STALE` seconds or more, or is contradicted by its cluster.
    """
    load = follower.source.load
    reason = follower.failure() or load.failure
    well = follower.behind < STALE and follower.failure() is None and not load.contradicted
    return well, {
        "healthy": well,
        "source": follower.source.name,
        "run": follower.run,
        "sequence": follower.sequence,
        "behind_seconds": round(follower.behind, 1),
        "failures": load.failures,
        **({"reason": reason} if reason else {}),
    }


log = logging.getLogger("shadowtime.follow")


async def follow_source(run: str, opened: ClusterOpened, source: LiveSource, settings: Settings) -> None:
    """Follow a source until the process is ended.

    Raises
    ------
    FollowError
        If the run cannot be followed.
    BusError, StoreError
        If Kafka or Redis does not answer at the start.
    """

    async def followed(store: RedisStore) -> None:
        follower = Follower(run, opened, source, store, settings)
        await follow_all(
            [follower], settings, lambda: health_of(follower), FollowerCollector(follower), source.routes()
        )

    await with_store(settings, STORE, followed)


async def with_store(settings: Settings, name: str, work: Callable[[RedisStore], Awaitable[None]]) -> None:
    """Run `work` with a store once Redis answers. `name` is the prefix of the store's keys.

    Raise `StoreError` if Redis does not answer within `connect_seconds`.
    """
    client = connect(settings)
    try:
        store = RedisStore(client, name, secret=settings.state_key)
        await store.wait_for(settings.connect_seconds)
        await work(store)
    finally:
        await client.aclose()


async def follow_all(
    followers: Sequence[Follower],
    settings: Settings,
    health: Callable[[], tuple[bool, dict[str, Any]]],
    metrics: Collector,
    routes: Sequence[Route] = (),
) -> None:
    """Run followers until the process is ended, or all followers are done. A failed follower does not end the others.

    `health` returns whether the process is healthy, and the content of the health page. At the end, the error of the
    first failed follower, in the order of `followers`, is raised; see `Follower.follow`.
    """
    get_ready()
    async with AsyncExitStack() as stack:
        ended = shutdown_event()
        if settings.web_port:
            registry = CollectorRegistry()
            registry.register(metrics)
            pages = worker_pages(health, registry)
            pages.add_routes(routes)
            await stack.enter_async_context(
                listening(
                    *(pages, settings.web_host, settings.web_port, split_names(settings.web_names)),
                    bodies={route.path for route in routes},
                )
            )

        works = [asyncio.create_task(_followed(follower, alone=len(followers) == 1)) for follower in followers]
        waiting = asyncio.create_task(ended.wait())
        left: set[asyncio.Task[Any]] = set(works)
        while left and not ended.is_set():
            _, left = await asyncio.wait({waiting, *left}, return_when=asyncio.FIRST_COMPLETED)
            left.discard(waiting)
        for task in (waiting, *works):
            task.cancel()
        for result in await asyncio.gather(*works, waiting, return_exceptions=True):
            if isinstance(result, Exception):
                raise result


async def _followed(follower: Follower, *, alone: bool) -> None:
    try:
        await follower.follow()
    except ShadowtimeError as error:
        if not alone:  # the others continue, and the error is raised only once all are done
            log.error("run %s stopped: %s", follower.run, error)
        raise


# All sources that can be followed, by name.

FOLLOWED: dict[str, type[LiveSource]] = {source.name: source for source in (SlurmSource, Pbs, Lines)}
