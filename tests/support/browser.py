"""A page in headless Chromium, spoken to over its own debugging protocol: what a visitor sees and what goes wrong.

Where there is no Chromium or no axe-core, a test that needs them skips with the reason, and fails when CI is set.
"""

import asyncio
import base64
import itertools
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shadowtime.stack.install import CHROMIUM, axe_file, missing
from tests.support.patience import PATIENCE

FLAGS = (
    "--headless=new",
    "--no-sandbox",  # tests may run as root
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)


def require_browser() -> None:
    """Skip the test where there is no browser; in CI fail it."""
    reason = missing()
    if reason is None:
        return
    if os.environ.get("CI"):
        pytest.fail(f"CI needs it: {reason}", pytrace=False)
    pytest.skip(reason)


class Page:
    """One tab; `errors` are what its console and its network complained of."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = itertools.count(1)
        self._awaited: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: dict[str, asyncio.Event] = {}
        self.errors: list[str] = []

    async def listen(self) -> None:
        """Take in what the browser says, for ever."""
        async for message in self._socket:
            said = message.json()
            if "id" in said:
                self._awaited.pop(said["id"]).set_result(said)
                continue
            method, told = said["method"], said["params"]
            self._events.setdefault(method, asyncio.Event()).set()
            if method == "Runtime.exceptionThrown":
                self.errors.append(str(told["exceptionDetails"]))
            elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning", "assert"):
                self.errors.append(str(told["args"]))
            elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
                self.errors.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._awaited[number] = asyncio.get_running_loop().create_future()
        await self._socket.send_json({"id": number, "method": method, "params": parameters})
        said = await asyncio.wait_for(answer, PATIENCE)
        assert "error" not in said, said
        found: dict[str, Any] = said["result"]
        return found

    async def open(self, url: str) -> None:
        """Go to a page and wait until it has loaded."""
        loaded = self._events["Page.loadEventFired"] = asyncio.Event()
        await self.call("Page.navigate", url=url)
        await asyncio.wait_for(loaded.wait(), PATIENCE)

    async def look(self, width: int, *, dark: bool, height: int = 900) -> None:
        """Be a screen so wide, whose owner prefers dark pages or light ones."""
        await self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        await self.call("Emulation.setEmulatedMedia", features=[scheme])

    async def evaluate(self, expression: str) -> Any:
        """Return what a script in the page gives, promises awaited."""
        said = await self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in said, said
        return said["result"].get("value")

    async def wait_for(self, expression: str) -> Any:
        """Return what a script in the page gives, once that is true."""
        async with asyncio.timeout(PATIENCE):
            while not (found := await self.evaluate(expression)):
                await asyncio.sleep(0.05)
        return found

    async def whole(self, path: Path) -> None:
        """Save the page in its whole length."""
        size = (await self.call("Page.getLayoutMetrics"))["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        said = await self.call("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(said["data"]))

    async def pdf(self) -> bytes:
        """Return the page as it is printed."""
        said = await self.call("Page.printToPDF", preferCSSPageSize=True)
        return base64.b64decode(said["data"])

    async def wider_than_screen(self) -> int:
        """Return by how many pixels the page is wider than the screen."""
        return int(await self.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))

    async def accessibility(self, *, every: bool = False) -> list[str]:
        """Return what axe-core finds that is serious or worse, or whatever it finds, one line each."""
        await self.evaluate(axe_file().read_text() + "; 0")
        found = await self.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']}: {[node['html'][:120] for node in each['nodes'][:3]]}"
            for each in found["violations"]
            if every or each["impact"] in ("serious", "critical")
        ]


@asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Page]:
    """Start Chromium on an empty profile in `folder`, and yield a tab."""
    profile = folder / "profile"
    process = await asyncio.create_subprocess_exec(
        shutil.which(CHROMIUM) or CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        async with asyncio.timeout(PATIENCE):
            while not (profile / "DevToolsActivePort").exists() or not (profile / "DevToolsActivePort").read_text():
                assert process.returncode is None, f"chromium ended with {process.returncode}"
                await asyncio.sleep(0.05)
        port = (profile / "DevToolsActivePort").read_text().splitlines()[0]
        async with aiohttp.ClientSession() as session:
            async with session.put(f"http://127.0.0.1:{port}/json/new?about:blank") as answer:
                address = (await answer.json())["webSocketDebuggerUrl"]
            async with session.ws_connect(address, max_msg_size=0) as socket:
                page = Page(socket)
                listening = asyncio.create_task(page.listen())
                for domain in ("Page", "Runtime", "Log", "Network"):
                    await page.call(f"{domain}.enable")
                yield page
                listening.cancel()
    finally:
        process.terminate()
        await process.wait()
