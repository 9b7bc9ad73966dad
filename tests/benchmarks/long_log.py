"""What an event costs, and what memory is held, along a log of ten million jobs that is read while it is replayed.

`python -m tests.benchmarks.long_log [--jobs N] [--mode MODE]`: one JSON line after 10,000, 30,000, 100,000, … jobs.
"""

import gc
import json
import time
from collections.abc import Iterator
from itertools import cycle
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.chunked_workload import read_in_pieces
from shadowtime.replayer.logs.swf import FIELDS, write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.messages.envelope import JobEnded
from tests.benchmarks.memory import peak, resident
from tests.benchmarks.start_forecasts import fixed_loop

PROCESSORS = 1024
WINDOW = 10_000
"""Jobs that end in the time over which an event's cost is taken."""


def looks(jobs: int) -> Iterator[int]:
    """Yield after how many ended jobs to look: 10,000, 30,000, 100,000, … and all of them."""
    look = WINDOW
    for by in cycle((3, 10 / 3)):
        if look > 0.9 * jobs:  # some are left out
            break
        yield look
        look = round(look * by)
    yield jobs


def write_log(path: Path, jobs: int) -> None:
    """Write a generated log; recorded, each job starts ten minutes after its submission."""
    header, table = generate(jobs, PROCESSORS, seed=1, load=0.7)
    table[:, FIELDS.index("wait_time")] = 600
    write_swf(path, header, table)


def long_log(path: Path, mode: str) -> Iterator[dict[str, Any]]:
    """Yield, at each look, what an event has cost since some jobs before, and what memory is held."""
    workload, _ = read_in_pieces(path, recorded=mode == "recorded")
    replay = RunPlan("easy", "long", workload, configure("easy"), mode).replay()
    ended = 0
    for look in looks(len(workload)):
        began = None
        while ended < look and replay.step():
            if began is None and ended >= look - WINDOW:
                began = time.process_time(), replay.last.sequence if replay.last else 0
            ended += replay.last is not None and isinstance(replay.last.event, JobEnded)
        if began is None or replay.last is None:
            continue
        spent, events = time.process_time() - began[0], replay.last.sequence - began[1]
        loop = min(fixed_loop() for _ in range(9))
        gc.collect()
        yield {
            "mode": mode,
            "jobs": look,
            "events": replay.last.sequence + 1,
            "microseconds_per_event": round(1e6 * spent / events, 1),
            "fixed_loops_per_event": round(spent / events / loop, 3),
            "resident_mib": resident(),
            "peak_mib": peak(),
            "snapshot_kb": round(len(replay.snapshot()) / 1000, 1),
        }


def main(
    jobs: Annotated[int, typer.Option(metavar="N", min=2 * WINDOW)] = 10_000_000,
    mode: Annotated[str, typer.Option(metavar="closed|recorded")] = "closed",
    log: Annotated[
        Path | None,
        typer.Option(metavar="FILE.swf", help="Written if it is not there."),
    ] = None,
) -> None:
    """Print what an event costs along a log."""
    with TemporaryDirectory() as folder:
        path = log or Path(folder, "long.swf")
        if not path.exists():  # by another process, whose memory is not counted
            with get_context("spawn").Pool(1) as pool:
                pool.apply(write_log, (path, jobs))
        for look in long_log(path, mode):
            print(json.dumps(look), flush=True)


if __name__ == "__main__":
    run_app(application(main))
