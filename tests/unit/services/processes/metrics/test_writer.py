"""What the writer makes of a VictoriaMetrics that is busy, in repair, or takes a batch for nonsense."""

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from prometheus_client import Counter

from shadowtime.services.processes.metrics.writer import MetricsWriter
from shadowtime.services.processes.metrics.writer_health import MetricsHealth
from shadowtime.shared.messages.envelope import Envelope, SchedulingPoint
from shadowtime.shared.messages.samples import Sample

SAMPLE = Sample(time=60, cluster="k", policy="easy", figures=(("shadowtime_running_jobs", (), 3.0),))
VALUE = Envelope(run="r", sequence=1, event=SchedulingPoint(time=61), samples=(SAMPLE,)).to_bytes()


def count_of(counter: Counter) -> int:
    (metric,) = counter.collect()
    return next(int(each.value) for each in metric.samples if each.name.endswith("_total"))


@pytest.mark.parametrize(
    ("statuses", "figures"),
    [
        ([204], (1, 0, 0)),
        ([429, 503, 500, 204], (1, 0, 3)),
        ([401, 404, 204], (1, 0, 2)),  # a password or a path that is mended while it waits
        ([503, 400], (0, 1, 1)),
        ([413], (0, 1, 0)),
    ],
)
def test_a_batch_is_written_until_it_is_taken_or_refused(statuses: list[int], figures: tuple[int, int, int]) -> None:
    health, left = MetricsHealth(), statuses.copy()

    async def take(request: web.Request) -> web.Response:
        assert b"shadowtime_running_jobs" in await request.read()
        return web.Response(status=left.pop(0), text="because")

    async def go() -> None:
        store = web.Application()
        store.add_routes([web.post("/api/v1/import", take)])
        async with TestServer(store) as server, aiohttp.ClientSession(str(server.make_url("/"))) as session:
            await MetricsWriter(cast("Any", None), session, health).write([SimpleNamespace(value=VALUE)])

    asyncio.run(go())
    assert left == []
    told = tuple(count_of(each) for each in (health.written, health.refused, health.retries))
    assert told == figures
