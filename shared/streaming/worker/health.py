"""Health of a worker: its lag, its watchdog, and its pages `/health` and `/metrics`."""

import asyncio
import logging
import os
import time
from collections.abc import Awaitable, Callable
from itertools import islice
from typing import TYPE_CHECKING, Any

from aiohttp import web
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from shadowtime.shared.streaming.kafka import name_of

if TYPE_CHECKING:  # other processes show these pages, too, and need no faust
    from shadowtime.shared.streaming.worker.loop import WorkerLoop

log = logging.getLogger("shadowtime.runner")

STALLED = 75
"""Exit status of a worker that its watchdog has ended (EX_TEMPFAIL). A supervisor then starts it again."""

UNASSIGNED_SECONDS = 20
"""Seconds after which a worker without a partition ends itself. Do not run more workers of a stage than partitions."""

UNREAD_SECONDS = 60
"""Seconds after which a worker ends itself if it owns a partition and has had no answer to a fetch of it. After a
rebalance on a busy machine, faust sometimes does not resume reading. Then only a new member of the group reads."""

GRACE_SECONDS = 10
"""Seconds for which a worker without a partition, or with an unread one, still counts as healthy, as in a rebalance."""

OLD_SECONDS = 300
"""Seconds after which a worker is not healthy if a record has waited so long for its turn."""

FAILED_TURNS = 3
"""The number of failed turns in a row after which a worker is not healthy."""

SHOWN = 20
"""The maximum number of runs that /health names in a list."""


def _place_of(task: "asyncio.Task[Any] | None") -> str:
    """Return where a task waits: the functions that wait for each other, each with its file and line."""
    places = []
    waiting: Any = None if task is None else task.get_coro()
    while (frame := getattr(waiting, "cr_frame", None)) is not None:
        places.append(f"{waiting.__name__} ({os.path.basename(frame.f_code.co_filename)}:{frame.f_lineno})")
        waiting = waiting.cr_await
    return " > ".join(places) or "nothing"


class WorkerHealth:
    """The watchdog of a worker's loop, and the content of its page `/health`."""

    def __init__(self, loop: "WorkerLoop") -> None:
        self._loop = loop
        self._serving = time.monotonic()
        """The last time at which the worker owned partitions and had read from all of them."""

    async def watch_progress(self) -> None:
        """End the process if there is work and no progress. The supervisor starts it again.

        A stage that works on an event counts as making progress, however long the work takes. The thread has its own
        time limit. Right after the loss of a broker, the group's leader may not know the topic, and then assigns no
        partitions. Only a new member makes the leader assign them again. So a worker without any partition, or with one
        that it does not read, ends itself, too.
        """
        while True:
            await asyncio.sleep(1.0)
            fault, seconds = self._not_serving()
            if fault is not None and seconds > (UNREAD_SECONDS if self._owned() else UNASSIGNED_SECONDS):
                log.critical("%s: %s for %d s; restarting", self._loop.stage.name, fault, seconds)
                os._exit(STALLED)

            behind = self._lag()
            self._loop.metrics.lag.set(behind)
            idle = time.monotonic() - self._loop.last_progress
            if self._at_work() or (not behind and not self._loop.busy):
                self._loop.last_progress = time.monotonic()
            elif idle > self._loop.settings.watchdog_seconds:
                log.critical(
                    "%s: %d messages wait, no progress for %.0f s; restarting; it waits in %s",
                    *(self._loop.stage.name, behind, idle, _place_of(self._loop.task)),
                )
                os._exit(STALLED)

    def _at_work(self) -> bool:
        """Return whether the stage itself is at work."""
        return self._loop.worker is not None and self._loop.worker.thread.busy_seconds > 0

    def _owned(self) -> list[Any]:
        """Return the partitions of the stage's topic that this worker owns."""
        consumer = self._loop.app.consumer
        return [tp for tp in (consumer.assignment() if consumer else ()) if tp.topic == self._loop.stage.reads]

    def _not_serving(self) -> tuple[str | None, float]:
        """Return why this worker does not serve all its partitions, or None; and the seconds since it last did."""
        owned, now = self._owned(), time.monotonic()
        unread = [tp.partition for tp in owned if self._loop.app.consumer.highwater(tp) is None]
        if owned and not unread:
            self._serving = now
            return None, 0.0
        fault = f"partitions {', '.join(map(str, sorted(unread)))} are not read" if unread else "no partition"
        return fault, now - self._serving

    def _lag(self) -> int:
        """Return the number of records of the topic that are not handled yet."""
        waiting = len(self._loop.turns) + self._loop.left
        for tp in self._owned():
            high, read = self._loop.app.consumer.highwater(tp), self._loop.read_offsets.get(tp)
            if high and read is not None:
                waiting += max(0, high - 1 - read)
        return waiting

    def _costly(self) -> list[str]:
        """Return some of the runs that wait because their records are costly."""
        return [name_of(key) for key in self._loop.turns.waiting_costly[:SHOWN] if key is not None]

    def report(self) -> tuple[bool, dict[str, Any]]:
        """Return whether the worker is healthy, and the content of /health.

        A worker is healthy if it has started, serves its partitions, can read the messages, and makes progress or has
        nothing to do.
        """
        worker = self._loop.worker
        quarantined = {} if worker is None else worker.quarantined
        idle, oldest = time.monotonic() - self._loop.last_progress, self._loop.oldest_wait()
        reason = None
        if worker is None:
            reason = "it is starting"
        elif idle >= self._loop.settings.watchdog_seconds / 2:
            reason = f"no progress for {idle:.0f} s"
        elif self._loop.failed_turns >= FAILED_TURNS:
            reason = f"its last {self._loop.failed_turns} turns failed: {self._loop.failure}"
        elif worker.unsupported is not None:
            reason = f"topic {self._loop.stage.reads}: {worker.unsupported}; {SET_COMPRESSION}"
        elif oldest > OLD_SECONDS:
            reason = f"a message has waited for {oldest:.0f} s for its turn"
        else:
            fault, seconds = self._not_serving()
            if fault is not None and seconds > GRACE_SECONDS:
                reason = f"{fault} for {seconds:.0f} s"

        healthy = reason is None
        return healthy, {
            "stage": self._loop.stage.name,
            "healthy": healthy,
            "reason": reason,
            "state": "starting" if worker is None else "running",
            "seconds_since_progress": round(idle, 1),
            "seconds_at_work": 0.0 if worker is None else round(worker.thread.busy_seconds, 1),
            "waiting": len(self._loop.turns),
            "left_in_log": self._loop.left,
            "oldest_waiting_seconds": round(oldest, 1),
            "costly_runs": self._costly(),
            "untaken_runs": 0 if worker is None else worker.untaken,
            "waiting_for_redis": 0 if self._loop.store is None else self._loop.store.waiting_requests,
            "replaced_logs": {} if worker is None else worker.replaced_logs,
            "altered_runs": {} if worker is None else dict([*worker.altered.items()][-SHOWN:]),
            "quarantined_runs": len(quarantined),
            "quarantined": dict(islice(quarantined.items(), SHOWN)),
        }


SET_COMPRESSION = "set compression.type=producer on the topic: shadowtime topics"
"""The advice if Kafka compresses messages by a codec that readers do not support."""

SAFE = {"X-Content-Type-Options": "nosniff", "Cache-Control": "no-store"}


def worker_pages(health: Callable[[], tuple[bool, dict[str, Any]]], registry: CollectorRegistry) -> web.Application:
    """Return the HTTP application of the pages.

    Parameters
    ----------
    health
        Returns whether the process is healthy (status 200, else 503), and the content of the page.
    registry
        The metrics to scrape.
    """

    async def healthy(request: web.Request) -> web.Response:
        well, text = health()
        return web.json_response(text, status=200 if well else 503, headers=SAFE)

    async def scrape(request: web.Request) -> web.Response:
        return web.Response(body=generate_latest(registry), headers=SAFE | {"Content-Type": CONTENT_TYPE_LATEST})

    made = web.Application(middlewares=[_on_one_line])
    made.add_routes([web.get("/health", healthy), web.get("/metrics", scrape)])
    return made


@web.middleware
async def _on_one_line(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPException as error:
        return web.Response(status=error.status, text=f"{error.reason}\n", headers=SAFE)
