"""What the writer makes of a VictoriaMetrics that is busy, in repair, or takes a batch for nonsense."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import orjson
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


def record(value: bytes, offset: int) -> SimpleNamespace:
    return SimpleNamespace(value=value, topic="scores", partition=0, offset=offset)


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
            await MetricsWriter(cast("Any", None), session, health).write([record(VALUE, 0)])

    asyncio.run(go())
    assert left == []
    assert health.report(0.0)[0]
    told = tuple(count_of(each) for each in (health.written, health.refused, health.retries))
    assert told == figures


@pytest.mark.parametrize("culprits", [{0}, {6}, {3, 4}, set(range(7))])
def test_only_the_refused_records_of_a_batch_are_left_out(culprits: set[int], caplog: pytest.LogCaptureFixture) -> None:
    health = MetricsHealth()
    taken: list[str] = []
    envelopes = [
        Envelope(run=f"r{place}", sequence=1, event=SchedulingPoint(time=61), samples=(SAMPLE,)) for place in range(7)
    ]

    async def take(request: web.Request) -> web.Response:
        runs = {orjson.loads(line)["metric"]["run"] for line in (await request.read()).splitlines()}
        if runs & {f"r{place}" for place in culprits}:
            return web.Response(status=400, text="because")
        taken.extend(runs)
        return web.Response(status=204)

    async def go() -> None:
        store = web.Application()
        store.add_routes([web.post("/api/v1/import", take)])
        async with TestServer(store) as server, aiohttp.ClientSession(str(server.make_url("/"))) as session:
            records = [record(envelope.to_bytes(), place) for place, envelope in enumerate(envelopes)]
            await MetricsWriter(cast("Any", None), session, health).write(records)

    asyncio.run(go())
    assert sorted(taken) == [f"r{place}" for place in range(7) if place not in culprits]
    assert (count_of(health.written), count_of(health.refused)) == (7 - len(culprits), len(culprits))
    named = [text for text in caplog.messages if "left out" in text]
    assert named == [
        f"VictoriaMetrics refuses the samples of scores, partition 0, offset {place}, which are left out: 400 because"
        for place in sorted(culprits)
    ]


def test_a_batch_above_the_limit_of_a_proxy_is_written_in_parts() -> None:
    health = MetricsHealth()

    async def take(request: web.Request) -> web.Response:
        await request.read()  # answers 413 above the limit
        return web.Response(status=204)

    async def go() -> None:
        store = web.Application(client_max_size=1_000)
        store.add_routes([web.post("/api/v1/import", take)])
        async with TestServer(store) as server, aiohttp.ClientSession(str(server.make_url("/"))) as session:
            envelopes = [
                Envelope(run=f"r{place}", sequence=1, event=SchedulingPoint(time=61), samples=(SAMPLE,))
                for place in range(50)
            ]
            records = [record(envelope.to_bytes(), place) for place, envelope in enumerate(envelopes)]
            await MetricsWriter(cast("Any", None), session, health).write(records)

    asyncio.run(go())
    assert (count_of(health.written), count_of(health.refused)) == (50, 0)


def test_health_names_the_server_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    health = MetricsHealth()
    assert health.report(29.0) == (True, {"stage": "metrics", "healthy": True, "reason": None})
    assert health.report(31.0)[1]["reason"] == "Kafka has not answered for 31 s"
    health.failed("503 full")
    assert health.report(0.0)[0]
    now += 61.0
    assert health.report(0.0)[1]["reason"] == "VictoriaMetrics has accepted nothing for 61 s: 503 full"
    health.answered()
    assert health.report(0.0)[0]
