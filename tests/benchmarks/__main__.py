"""Benchmarks, one JSON line each: `python -m tests.benchmarks [NAME…]`; a NAME stands for all that begin with it."""

import json
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

from shadowtime.shared.cli.command_line import run_app, say
from shadowtime.shared.errors import TraceError
from tests.benchmarks.accounting import accounting
from tests.benchmarks.adjusted_requests import BENCHMARKS as ADJUSTMENTS
from tests.benchmarks.large_machine import coarsening, large_machine
from tests.benchmarks.live_page import live_page
from tests.benchmarks.logs import SIZES
from tests.benchmarks.many_runs import MANY, many_runs
from tests.benchmarks.memory import memory
from tests.benchmarks.probabilistic_pass import probabilistic_pass
from tests.benchmarks.replay import replay, stages
from tests.benchmarks.scheduling_pass import PLANNED_QUEUES, PLANS, queue_changes, scheduling_pass
from tests.benchmarks.similar_jobs import BENCHMARKS as SIMILAR_JOBS
from tests.benchmarks.store_away import store_away
from tests.benchmarks.stream import stream, stream_with_access
from tests.benchmarks.stream_memory import stream_memory
from tests.benchmarks.tuned import regret
from tests.benchmarks.wait_forecasts import BENCHMARKS as FORECASTS
from tests.benchmarks.worst_messages import worst_messages
from tests.support.watcher import watch

BENCHMARKS: dict[str, Callable[[], dict[str, Any] | list[dict[str, Any]]]] = {
    **{f"replay-{trace.lower()}": partial(replay, trace) for trace in SIZES},
    **{f"stages-kth-{policy}": partial(stages, "KTH", policy) for policy in ("easy", "best")},
    "stages-ctc-best": partial(stages, "CTC", "best"),
    "memory-hpc2n": partial(memory, "HPC2N"),
    **{f"scheduling-pass-{policy}": partial(scheduling_pass, policy) for policy in ("fcfs", "easy", "easy-sjbf")},
    **{f"scheduling-pass-{name}": partial(scheduling_pass, spec, PLANNED_QUEUES) for name, spec in PLANS.items()},
    "queue-changes": queue_changes,
    "probabilistic-pass": probabilistic_pass,
    "large-machine": large_machine,
    "large-machine-coarsening": coarsening,
    **ADJUSTMENTS,
    **SIMILAR_JOBS,
    **FORECASTS,
    **{f"tuned-{trace.lower()}": partial(regret, trace) for trace in ("KTH", "SDSC-SP2", "CTC")},
    "accounting": accounting,
    "live-page": live_page,
    "stream": stream,
    "access-stream": stream_with_access,
    **{f"many-runs-{partitions}x{each}": partial(many_runs, partitions, each) for partitions, each in MANY},
    "store-away": store_away,
    "worst-messages": worst_messages,
    "memory-stream": partial(stream_memory, "HPC2N", 200_000),
}


def main(names: list[str]) -> int:
    """Run the benchmarks that are named, or all; the status is 2 if a log was missing."""
    status = 0
    for name in names:
        if not any(each.startswith(name) for each in BENCHMARKS):
            print(f"unknown benchmark {name!r}; known: {', '.join(BENCHMARKS)}", file=sys.stderr)
            return 2
    for name, benchmark in BENCHMARKS.items():
        if not names or name.startswith(tuple(names)):
            try:
                found = benchmark()
            except TraceError as error:
                say(f"error: {name}: {error}")
                status = 2
                continue
            for line in found if isinstance(found, list) else [found]:
                print(json.dumps({"benchmark": name} | line), flush=True)
    return status


if __name__ == "__main__":
    watch()
    run_app(lambda: main(sys.argv[1:]))
