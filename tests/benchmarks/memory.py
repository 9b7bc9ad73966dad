"""Memory of a long replay in a fresh process: what grows with the jobs seen, and what only with those in the system."""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.services.catalogue import configure
from shadowtime.shared.cli.command_line import run_app
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.envelope import Envelope, JobEnded, JobSubmitted
from tests.benchmarks.logs import log, require

EVERY = 50_000  # jobs seen between two looks
MEGABYTE = 1 << 20


def memory(trace: str) -> dict[str, Any]:
    """Replay a log in a process of its own and return what that measured."""
    require(trace)
    command = [sys.executable, "-m", "tests.benchmarks.memory", trace]
    done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def resident(process: int | str = "self") -> float:
    """Return the memory that a process holds now, in MiB."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / MEGABYTE, 1)


def peak(process: int | str = "self") -> float:
    """Return the most memory that a process ever held, in MiB; not that of the one it was forked from."""
    (line,) = (each for each in Path(f"/proc/{process}/status").read_text().splitlines() if each.startswith("VmHWM"))
    return round(int(line.split()[1]) / 1024, 1)


def measure(trace: str) -> dict[str, Any]:
    """Replay a log under EASY and look at the memory now and then."""
    imported = resident()
    name, workload = log(trace)
    gc.collect()
    loaded, loading_peak = resident(), peak()
    seen: list[dict[str, float]] = []
    submitted = in_system = most_in_system = 0

    def watch(envelope: Envelope) -> None:
        nonlocal submitted, in_system, most_in_system
        if isinstance(envelope.event, JobSubmitted):
            submitted += 1
            in_system += 1
            most_in_system = max(most_in_system, in_system)
            if submitted % EVERY == 0:
                gc.collect()
                seen.append({"jobs_seen": submitted, "jobs_in_system": in_system, "resident": resident()})
        elif isinstance(envelope.event, JobEnded) and not envelope.event.requeued:
            in_system -= 1

    replay = RunPlan("easy", name, workload, configure("easy")).replay([watch])
    prepared = resident()
    replay.run_to_end()
    return {
        "trace": name,
        "jobs": len(workload),
        "unit": "MiB",
        "imported": imported,
        "trace_columns": round(sum(each.nbytes for each in workload.columns.values()) / MEGABYTE, 1),
        "loaded": loaded,
        "peak_of_loading": loading_peak,
        "before_first_event": prepared,
        "seen": seen,
        "growth_from_first_to_last_look": round(seen[-1]["resident"] - seen[0]["resident"], 1),
        "most_jobs_in_system": most_in_system,
        "peak": peak(),
    }


if __name__ == "__main__":
    run_app(lambda: print(json.dumps(measure(sys.argv[1]))))
