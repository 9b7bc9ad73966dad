"""Mean bounded slowdown against longest wait, over what bounds the risk that backfilling puts heads to.

`python -m tests.benchmarks.frontier KTH SDSC-SP2 CTC --html frontier.html`; `--help` tells of the grid.
"""

import json
import math
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import typer

from shadowtime.dashboards.report.statistics import undominated
from shadowtime.replayer.comparison import Plan, carry_out
from shadowtime.replayer.output import result_file
from shadowtime.services.catalogue import configure
from shadowtime.shared.command_line import application, run_app, say
from tests.benchmarks.frontier_page import page
from tests.benchmarks.logs import HELP, METAVAR, log

KEYS = "order=expected,accept_easy_safe=yes,mass=censor,runtime=empirical"
BASELINES = ("easy", "easy-sjbf", "best")
JOBS = 10_000
"""The first so many, where all benchmarks are run."""


class Grid(NamedTuple):
    """Values of the keys of `probabilistic` that are varied; infinite patience bounds nothing."""

    criteria: Sequence[str] = ("exact", "gain")
    taus: Sequence[float] = (0.05, 0.2, 0.5, 1.0)
    budgets: Sequence[float] = (0.9, 1.0)
    patiences: Sequence[float] = (0.5, 0.75, 1.0, math.inf)

    def policies(self, keys: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield each SPEC with the values that it has."""
        for criterion, tau, budget, patience in product(*self):
            varied = {"criterion": criterion, "tau": tau, "budget": budget, "patience": patience}
            spec = ",".join(f"{key}={value}" for key, value in varied.items())
            yield f"probabilistic:{keys},{spec}", varied | {"patience": None if patience == math.inf else patience}


def frontier(trace: str, grid: Grid | None = None, keys: str = KEYS, jobs: int | None = None) -> dict[str, Any]:
    """Replay a log, or its first jobs, under every policy of a grid and those that it is to be measured by."""
    name, workload = log(trace, jobs)
    cases: list[tuple[str, dict[str, Any]]] = [(name, {"policy": name}) for name in BASELINES]
    rows = []
    cases += (grid or Grid()).policies(keys)
    for number, (policy, row) in enumerate(cases, 1):
        say(f"{name}: {number} of {len(cases)}: {policy}")
        result = carry_out(Plan(policy, name, workload, configure(policy)))
        scores = result.scores.policy
        figures = {name: getattr(scores, name) for name in ("mean_bounded_slowdown", "max_wait", "mean_wait")}
        rows.append(row | figures | {"cpu_seconds": round(result.cpu_seconds, 2)})
    best = undominated([(row["mean_bounded_slowdown"], row["max_wait"]) for row in rows])
    return {
        "trace": name,
        "processors": workload.processors,
        "jobs": len(workload),
        "keys": keys,
        "points": [row | {"undominated": flag} for row, flag in zip(rows, best, strict=True)],
    }


def main(
    traces: Annotated[list[str], typer.Argument(metavar=f"{METAVAR}…", help=HELP)],
    html: Annotated[Path | None, typer.Option(help="write a page with plot and table")] = None,
    jobs: Annotated[int | None, typer.Option(help="the first so many jobs")] = None,
    keys: Annotated[str, typer.Option(help="keys of `probabilistic` that stay")] = KEYS,
    criterion: Annotated[list[str] | None, typer.Option()] = None,
    tau: Annotated[list[float] | None, typer.Option()] = None,
    budget: Annotated[list[float] | None, typer.Option()] = None,
    patience: Annotated[list[float] | None, typer.Option(help="`inf` for none")] = None,
) -> None:
    """Print the table of each log as a JSON line."""
    whole, documents = Grid(), []
    grid = Grid(criterion or whole.criteria, tau or whole.taus, budget or whole.budgets, patience or whole.patiences)
    for trace in traces:
        documents.append(frontier(trace, grid, keys, jobs))
        print(json.dumps({"benchmark": f"frontier-{documents[-1]['trace'].lower()}"} | documents[-1]), flush=True)
    if html is not None:
        with result_file(html) as file:
            file.write(page(documents).encode())


BENCHMARKS = {f"frontier-{trace.lower()}": partial(frontier, trace, jobs=JOBS) for trace in ("KTH", "SDSC-SP2", "CTC")}

if __name__ == "__main__":
    run_app(application(main))
