"""What orders, guarantees, speculation, test runs and shapes make of a log: the figures of Perković 2000.

`python -m tests.benchmarks.plans LOG[@PROCESSORS] [--seeds N] [--only TEXT]`; one JSON line per variant and seed.
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt
import typer

from shadowtime.replayer.arguments import split_size
from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.workload import Workload
from shadowtime.services.catalogue import configure
from shadowtime.shared.arrays import Floats
from shadowtime.shared.command_line import application, run_app
from shadowtime.shared.events import Decided, Envelope, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.reasons import Reserved
from tests.benchmarks.logs import HELP, METAVAR, log

ORDERS = ("BF", "P", "R", "1/L", "P/L", "R/L")
BEST = "order=R/L,guarantees=no"
EXPECTED = "speculate=expected,plan=requested,runtime=empirical"
VARIANTS = (
    *(f"order={order},guarantees={kept}" for order in ORDERS for kept in ("yes", "no")),
    *(
        f"{base}speculate={share},test_runs={tests}"
        for base in ("", f"{BEST},")
        for share in (0.2, 0.4, 0.6, 0.8)
        for tests in ("no", "yes")
    ),
    "test_runs=yes",
    EXPECTED,
    f"{EXPECTED},{BEST}",
    *(
        f"{base}shape={shape}"
        for base in ("", f"{BEST},")
        for shape in ("half", "quarter", "greedy", "greedy-narrow", "half,widen=yes")
    ),
    *(
        f"{BEST},speculate=0.8,test_runs=yes,shape={shape}"
        for shape in ("half", "quarter", "half,widen=yes", "quarter,widen=yes")
    ),
    *(f"{EXPECTED},{BEST},test_runs=yes,shape={shape}" for shape in ("half", "quarter,widen=yes")),
)


class Delays:
    """Notes of each job its slowdown, and the delay that it was promised beside the one it had; seconds."""

    def __init__(self) -> None:
        self.submitted: dict[int, JobSubmitted] = {}
        self.started: dict[int, JobStarted] = {}
        self.guaranteed: dict[int, int] = {}
        self.slowdowns: dict[int, float] = {}
        self.ratios: list[float] = []
        self.at_once = 0

    def __call__(self, envelope: Envelope) -> None:
        """Take in an envelope."""
        event = envelope.event
        if isinstance(event, JobSubmitted):
            self.submitted[event.job_number] = event
        elif isinstance(event, JobStarted):
            self.started[event.job_number] = event
        elif isinstance(event, Decided):
            for start in event.starts:
                if isinstance(start.reason, Reserved) and start.reason.guaranteed_start is not None:
                    self.guaranteed[start.job_number] = start.reason.guaranteed_start
        elif isinstance(event, JobEnded) and not event.requeued:
            number = event.job_number
            submitted = self.submitted[number].time
            delay = self.started[number].time - submitted
            self.slowdowns[number] = (event.time - submitted) / max(event.own_run_time, 10)
            self.at_once += delay == 0
            if delay and number in self.guaranteed:
                self.ratios.append((self.guaranteed[number] - submitted) / delay)


def groups(workload: Workload) -> dict[str, npt.NDArray[np.bool_]]:
    """Return which jobs are short or long, narrow or wide: up to the log's median or above (Perković 2000, Table 2)."""
    sizes, times = workload.columns["processors"], workload.columns["requested_time"]
    narrow, short = sizes <= np.median(sizes), times <= np.median(times)
    return {"SN": short & narrow, "SW": short & ~narrow, "LN": ~short & narrow, "LW": ~short & ~narrow}


def variant(trace: str, workload: Workload, keys: str, seed: int) -> dict[str, Any]:
    """Return the figures of one variant."""
    policy, delays = f"conservative:{keys}", Delays()
    scores = carry_out(Plan(keys, trace, workload, configure(policy), seed=seed), [delays]).scores.policy
    slowdowns = np.array([delays.slowdowns[number] for number in workload.columns["job_number"].tolist()])
    ratios: Floats = np.array(delays.ratios or [np.nan])
    return {
        "policy": keys,
        "seed": seed,
        "bounded_slowdown": scores.mean_bounded_slowdown_unclamped,
        "delay_minutes": (scores.mean_wait or 0) / 60,
        "response_minutes": (scores.mean_response or 0) / 60,
        "longest_wait_hours": (scores.max_wait or 0) / 3600,
        "waste_processor_days": scores.wasted_processor_seconds / 86_400,
        "killed": scores.killed,
        "utilization": scores.utilization,
        "started_at_once": delays.at_once / len(workload),
        "guaranteed_to_actual": {
            "mean": float(ratios.mean()),
            **{f"{share}%": float(np.quantile(ratios, share / 100)) for share in (15, 50, 85)},
        },
        "groups": {name: [int(rows.sum()), float(slowdowns[rows].mean())] for name, rows in groups(workload).items()},
    }


def table(trace: str, seeds: int, only: str) -> Iterator[dict[str, Any]]:
    """Yield the figures of every variant, of those that draw for every seed."""
    name, workload = log(trace)
    for keys in VARIANTS:
        if only in keys:
            draws = any(f"order={order}" in keys for order in ("P", "R"))
            for seed in range(seeds if draws else 1):
                yield {"trace": f"{split_size(name)[0]}@{workload.processors}"} | variant(name, workload, keys, seed)


def main(
    trace: Annotated[str, typer.Argument(metavar=METAVAR, help=HELP)],
    seeds: int = 1,
    only: Annotated[str, typer.Option(help="Only variants that contain this text.")] = "",
) -> None:
    """Print one JSON line per variant and seed."""
    for row in table(trace, seeds, only):
        print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
