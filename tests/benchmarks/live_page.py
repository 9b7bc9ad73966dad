"""The live page in a real Chromium: until something is seen, the work of an update, and the bytes that it takes."""

import asyncio
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp

from shadowtime.services.processes.live import page as live
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.shared.streaming.web.server import address_of, listening
from tests.support.browser import Page, browser
from tests.support.full_machine import full_machine

WORK = ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")


async def measure(waiting: int, updates: int, per_second: int) -> dict[str, Any]:
    """Show so many waiting jobs, then so many updates; return what that cost."""
    live.REST_SECONDS, rest = 1 / per_second, live.REST_SECONDS
    page, log = LivePage(LiveRuns()), full_machine(waiting)
    try:
        for envelope in next(log):
            page.runs.push(envelope)
        with tempfile.TemporaryDirectory() as folder:
            async with listening(page.application(), "127.0.0.1", 0) as runner, browser(Path(folder)) as tab:
                found = await _shown(page, log, tab, address_of(runner), updates, per_second)
                page.end()
    finally:
        live.REST_SECONDS = rest
    return {"benchmark": "live-page", "waiting": waiting, "updates_per_second": per_second, **found}


async def _shown(
    page: LivePage, log: Iterator[list[Envelope]], tab: Page, address: str, updates: int, per_second: int
) -> dict[str, Any]:
    await tab.look(1280, dark=False)
    await tab.call("Performance.enable", timeDomain="threadTicks")  # of the processor: others may use the machine, too
    await tab.open(address)
    await tab.wait_for("performance.getEntriesByName('first rows').length > 0")
    paints = await tab.evaluate(
        "['first-contentful-paint', 'first rows'].map((each) => performance.getEntriesByName(each)[0]?.startTime)"
    )
    sent = asyncio.create_task(_bytes(address))
    await asyncio.sleep(1)
    before = await _work(tab)
    began = asyncio.get_running_loop().time()
    for at in range(updates):
        for envelope in next(log):
            page.runs.push(envelope)
        page.tell()
        await asyncio.sleep(max(0.0, began + (at + 1) / per_second - asyncio.get_running_loop().time()))
    took = asyncio.get_running_loop().time() - began
    after = await _work(tab)
    sent.cancel()
    counted = await sent
    return {
        "first_paint_ms": round(paints[0] or 0),
        "first_rows_ms": round(paints[1] or 0),
        "work_per_update_ms": {
            name.removesuffix("Duration").lower(): round(1000 * (after[name] - before[name]) / max(1, counted[0]), 2)
            for name in WORK
        },
        "messages": counted[0],
        "bytes_per_message": round(counted[1] / max(1, counted[0])),
        "bytes_a_minute": round(60 * counted[1] / took),
    }


async def _work(tab: Page) -> dict[str, float]:
    told = await tab.call("Performance.getMetrics")
    return {each["name"]: each["value"] for each in told["metrics"]}


async def _bytes(address: str) -> tuple[int, int]:
    """Return how many messages another visitor gets until he is cancelled, and of how many bytes, but for the first."""
    messages, size = -1, 0
    try:
        async with aiohttp.ClientSession(read_bufsize=2**20) as session, session.get(address + "events") as response:
            async for line in response.content:
                if line.startswith(b"data: "):
                    messages += 1
                    size += len(line) * (messages > 0)
    except asyncio.CancelledError:
        pass
    return messages, size


def live_page() -> dict[str, Any]:
    """Measure ten thousand waiting jobs at twenty updates a second, for half a minute."""
    return asyncio.run(measure(10_000, 600, 20))
