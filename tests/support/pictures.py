"""Make the pictures of README and docs anew, from real runs in a real browser: `python -m tests.support.pictures`.

`docs/pictures/made-of.json` tells of each picture from which code it was made; a test compares.
"""

import asyncio
import base64
import hashlib
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import parse_qs, urlsplit
from urllib.request import urlopen

from rich.console import Console
from rich.text import Text

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import VictoriaMetrics
from tests.support import grafana
from tests.support.browser import Page, browser
from tests.support.dashboard_pictures import draw as drawn
from tests.support.dashboard_pictures import drawing
from tests.support.dashboard_queries import boards
from tests.support.dashboard_store import BEST, Filled, fill
from tests.support.local_stack import new_plan, options, stack

PICTURES = ROOT / "docs" / "pictures"
MADE_OF = PICTURES / "made-of.json"

LIVE = ("services/processes/live/*.py", "services/processes/live/assets/*", "shared/text/*.py")
SHOWN = {
    "terminal.svg": ("replayer/presentation/*.py", "shared/cli/fitted_table.py", "shared/text/columns.py"),
    "watch.svg": ("services/processes/watch.py", "shared/text/events.py"),
    "report.webp": ("replayer/report/*.py", "replayer/report/*.css", "shared/text/colours.py"),
    "live.webp": LIVE,
    "advice.webp": (
        "services/processes/live/assets/*",
        "services/processes/ask/ad*.py",
        "services/processes/ask/alternatives.py",
    ),
    "job.webp": LIVE,
    **{
        f"dashboard-{name}.webp": (
            f"dashboards/screens/{name}.py",
            "dashboards/panel_kinds.py",
            "dashboards/queries.py",
        )
        for name in boards()
    },
}
"""Which code each picture shows."""

COLUMNS = 80
WIDTH = 1_280
SPEED = 20_000
SAID = ("--policy", "best", "--runtime", "empirical", "--adjustment", "auto", "--wait-bound", "bmbp")
JOBS = 5_000
"""Jobs of the log that the dashboards show."""

POLICIES = {"fcfs": "fcfs", "easy": "easy", "best": "best", "cautious": BEST}
"""Policies that the dashboards show, by name; those of one policy show the last."""

OF_PROCESSES = ("home", "health", "twin")
SAMPLES = 30
MINUTES = 3
"""Minutes before now that dashboards of processes show."""

UNTIL = 400
"""Jobs that have ended in the run that the live page shows."""


def made_of(picture: str) -> str:
    """Return the SHA-256 of the code that a picture shows."""
    found = {pattern: set(ROOT.glob(pattern)) for pattern in SHOWN[picture]}
    assert all(found.values()), f"{picture}: a pattern finds nothing: {found}"
    files = sorted(set[Path]().union(*found.values()))
    digests = (f"{path.relative_to(ROOT)} {hashlib.sha256(path.read_bytes()).hexdigest()}" for path in files)
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def told(*arguments: str) -> str:
    """Return what a command prints on a terminal of 80 columns."""
    controller, terminal = pty.openpty()
    termios.tcsetwinsize(terminal, (50, COLUMNS))
    environment = os.environ | {"FORCE_COLOR": "1", "COLUMNS": str(COLUMNS)}
    command = [sys.executable, "-m", "shadowtime", *arguments]
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=terminal, text=True) as run:
        os.close(terminal)
        printed = b"".join(iter(lambda: _read(controller), b""))
    os.close(controller)
    assert run.returncode == 0, arguments
    return printed.decode().replace("\r\n", "\n")


def _read(controller: int) -> bytes:
    try:
        return os.read(controller, 65_536)
    except OSError:  # Linux says EIO when the last who wrote is gone
        return b""


def draw(name: str, typed: str, printed: str) -> None:
    """Draw a terminal; without the fonts that rich would fetch from elsewhere."""
    console = Console(record=True, width=COLUMNS, file=open(os.devnull, "w"), force_terminal=True)  # noqa: SIM115
    console.print(f"$ {typed}", style="bold", markup=False, highlight=False)
    console.print(Text.from_ansi(printed.rstrip()))
    drawn = re.sub(r"@font-face \{.*?\}", "", console.export_svg(title="Shadowtime"), flags=re.DOTALL)
    (PICTURES / name).write_text(drawn)


async def photograph(page: Page, name: str, height: int) -> None:
    """Save the upper part of the page as it is shown."""
    said = await page.call("Page.captureScreenshot", format="webp", quality=80, captureBeyondViewport=True, clip={
        "x": 0, "y": 0, "width": WIDTH, "height": height, "scale": 1,
    })  # fmt: skip
    (PICTURES / name).write_bytes(base64.b64decode(said["data"]))


@contextmanager
def running(folder: Path) -> Iterator[StackPlan]:
    """Start a whole stack, and end it."""
    plan = new_plan(folder)
    up = stack("up", *options(plan))
    try:
        assert up.returncode == 0, up.stdout + up.stderr
        yield plan
    finally:
        stack("down", "--folder", plan.folder)


async def live(plan: StackPlan, page: Page) -> str:
    """Photograph the live page in the midst of a run, advice, and the page of a job that waits. Return the run."""
    await page.open(f"http://127.0.0.1:{plan.live_port}/")
    ended = "document.getElementById('figures').textContent.match(/([\\d,]+) jobs ended/)"
    await page.wait_for(
        f"Number(({ended}?.[1] ?? '0').replaceAll(',', '')) >= {UNTIL} && document.querySelector('#queue a') !== null"
    )
    await photograph(page, "live.webp", 900)
    waits = await page.evaluate("document.querySelector('#queue a').href")
    advice = await page.evaluate("document.getElementById('to-advice').href")
    await page.open(f"{advice}&processors=16&requested_time=14400&user=3")
    await page.wait_for("document.getElementById('advice-head').textContent !== ''")
    await photograph(page, "advice.webp", 700)
    await page.open(waits)
    await page.wait_for("document.querySelector('#job-story li') !== null")
    await photograph(page, "job.webp", 700)
    return str(parse_qs(urlsplit(waits).query)["run"][0])


def shadowed(plan: StackPlan, run: str) -> None:
    """Play two shadows beside a run for a while, and put their metrics into the store of the stack."""
    settings = plan.role_settings()["shadow"]
    port = free_port()
    flags = [f"--{name.replace('_', '-')}={value}" for name, value in (settings | {"web_port": str(port)}).items()]
    command = [sys.executable, "-m", "shadowtime", "shadow", "--cluster", "bundled", "--of", run, *flags]
    process = subprocess.Popen([*command, "--policy", "easy", "--policy", "fcfs"], cwd=ROOT)
    store = f"http://127.0.0.1:{plan.victoria_metrics_port}/api/v1/import/prometheus"
    try:
        for _ in range(SAMPLES):
            time.sleep(2)
            with (
                suppress(OSError),
                urlopen(f"http://127.0.0.1:{port}/metrics") as answer,
                urlopen(store, answer.read()),
            ):
                pass
    finally:
        process.terminate()
        process.wait()


async def dashboards(page: Page, folder: Path, plan: StackPlan) -> None:
    """Photograph each dashboard as Grafana's packages draw it: those of the present with the processes of a stack."""
    file = grafana.build_page(folder)
    now = int(time.time())
    (of_stack,) = (server for server in plan.make_servers() if isinstance(server, VictoriaMetrics))
    present = Filled(of_stack, {}, (0, now), (now - MINUTES * 60, now))
    with VictoriaMetrics(folder / "store", settings={"search.latencyOffset": "0s"}) as store:
        for filled in fill(store, JOBS, POLICIES):
            for name in boards():
                board = drawing(present if name in OF_PROCESSES else filled, name)
                await drawn(page, file, board)
                height = await page.evaluate("document.body.scrollHeight")
                await photograph(page, f"dashboard-{name}.webp", height)


async def main() -> None:
    """Make all pictures, and note what they were made of."""
    PICTURES.mkdir(exist_ok=True)
    typed = "shadowtime replay --policy easy --policy best --predictions"
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        draw("terminal.svg", typed, told(*typed.split()[1:], "--report", str(folder / "report.html")))
        with running(folder / "stack") as plan:
            bus = f"kafka-bootstrap=127.0.0.1:{plan.kafka_port}"
            streamed = ["--transport", "kafka", "--speed", str(SPEED), *SAID, "--set", bus]
            replay = [sys.executable, "-m", "shadowtime", "replay", *streamed]
            run = subprocess.Popen(replay, cwd=ROOT, stdout=subprocess.DEVNULL)
            try:
                async with browser(folder) as page:
                    await page.look(WIDTH, dark=False)
                    await page.open((folder / "report.html").as_uri())
                    await photograph(page, "report.webp", 900)
                    real = await live(plan, page)
                    typed = "shadowtime watch decisions --count 24"
                    draw("watch.svg", typed, told(*typed.split()[1:], f"--{bus}"))
                    shadowed(plan, real)
                    await page.look(WIDTH, dark=True)
                    await dashboards(page, folder, plan)
            finally:
                run.kill()
                run.wait()
    MADE_OF.write_text(json.dumps({name: made_of(name) for name in SHOWN}, indent=1) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
