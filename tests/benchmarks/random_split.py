"""What a random split hides: the same trees on the same jobs, held out at random, and held out as the future is.

Claims of errors below 41 % of the mean run time split at random, with start times among their features: the jobs that a
job is like, which ended after it was submitted, are learned from. `python -m tests.benchmarks.random_split [LOG…]`
"""

import json
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.runtime_distribution.ensembles.boosted import POINT
from shadowtime.services.runtime_distribution.ensembles.features import FEATURES, JobGroups
from shadowtime.services.runtime_distribution.ensembles.outcomes import scale
from shadowtime.services.runtime_distribution.history import RememberedJob, remembered
from shadowtime.shared.cli.command_line import application, run_app
from shadowtime.shared.distributions.boosted_trees import Fit, Growth, asked, tree_scores
from shadowtime.shared.distributions.outcome_rows import Rows
from shadowtime.shared.kernels.arrays import Floats, Integers
from shadowtime.shared.messages.envelope import JobEnded, JobStarted, JobSubmitted
from tests.benchmarks.logs import HELP, METAVAR, log

TREES = 500
LEAVES = 64
HELD_OUT = 0.2
"""Share of the jobs on which trees are judged."""


def known(workload: Workload) -> tuple[Rows, Floats, Floats]:
    """Return features of each job, in order of submission, its run time, and its request.

    The features are those of `boosted` at submission, then when it was submitted and how long it waited.
    """
    groups, jobs = JobGroups(len(workload)), dict[int, tuple[int, RememberedJob, JobSubmitted]]()
    rows = np.zeros((len(workload), FEATURES + 2), np.float32)
    run_times, requests = np.zeros(len(workload)), np.zeros(len(workload))
    source = Recorded(workload)
    for events in iter(source.next_instant, ()):
        for event in events:
            if isinstance(event, JobSubmitted):
                at, job = len(jobs), remembered(event)
                jobs[event.job_number] = at, job, event
                rows[at, :FEATURES], rows[at, FEATURES] = groups.features(job, event.time), event.time
                requests[at] = scale(event.requested_time)
                groups.submitted(job, event.time)
            elif isinstance(event, JobStarted):
                at, job, submitted = jobs[event.job_number]
                rows[at, FEATURES + 1] = event.time - submitted.time
                groups.started(job, event.time)
            elif isinstance(event, JobEnded):
                at, job, _ = jobs[event.job_number]
                run_times[at] = event.run_time
                groups.learn(job, event.run_time)
                groups.left(job, event.time)
    return rows[: len(jobs)], run_times[: len(jobs)], requests[: len(jobs)]


def error(rows: Rows, run_times: Floats, requests: Floats, held_out: Integers) -> float:
    """Return the mean absolute error on the held-out jobs as a share of their mean run time."""
    learned = np.setdiff1d(np.arange(len(rows)), held_out)
    weights = requests[learned] / requests[learned].mean()
    labels = run_times[learned] / requests[learned]
    settings = {**POINT, "num_leaves": LEAVES, "min_data_in_leaf": 20}
    [grown] = Growth(rows[learned], [Fit(labels, TREES, settings, weights)]).run()
    trees = asked(*grown)
    found = np.array([tree_scores(trees, 1, row)[0] for row in rows[held_out].astype(np.float64)])
    return float(np.abs(found * requests[held_out] - run_times[held_out]).sum() / run_times[held_out].sum())


def compared(trace: str) -> Iterator[dict[str, Any]]:
    """Yield the errors of a log by how its jobs are split, and by whether start times are known."""
    name, workload = log(trace)
    rows, run_times, requests = known(workload)
    count, hidden = len(rows), int(HELD_OUT * len(rows))
    at_random = np.sort(np.random.default_rng(1).permutation(count)[:hidden])
    for features, table in (("at submission", rows[:, :FEATURES]), ("also when it came and started", rows)):
        for split, held_out in (("at random", at_random), ("the last fifth", np.arange(count - hidden, count))):
            told = error(np.ascontiguousarray(table), run_times, requests, held_out)
            yield {"trace": name, "features": features, "held out": split, "error": round(told, 4)}


def main(traces: Annotated[list[str] | None, typer.Argument(metavar=f"[{METAVAR}]…", help=HELP)] = None) -> None:
    """Print one JSON line per split."""
    for trace in traces or ("KTH", "SDSC-SP2", "CTC"):
        for row in compared(trace):
            print(json.dumps(row), flush=True)


if __name__ == "__main__":
    run_app(application(main))
