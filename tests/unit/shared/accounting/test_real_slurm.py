"""What a real Slurm 22.05 accounted of three times some 80 jobs with everything that happens to jobs."""

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shadowtime.replayer.comparison.document import requests_as_run_times
from shadowtime.replayer.comparison.plan import Plan
from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.shared.accounting.numbers import LIFE, number_of
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Envelope,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    moment,
)

SAMPLES = Path(__file__).with_name("samples")
SACCT = SAMPLES / "slurm-22.05.txt"
NODES = SAMPLES / "slurm-22.05-nodes.txt"

OUTCOMES = {
    "COMPLETED": "completed",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
    "TIMEOUT": "limit",
    **dict.fromkeys(("NODE_FAIL", "PREEMPTED", "REQUEUED"), "killed"),
}


class Life(NamedTuple):
    """What is known of one job, or of one of its lives; times in seconds of Unix."""

    submit: int
    eligible: int
    start: int | None
    end: int
    state: str
    limit: int | None
    processors: int
    resized: tuple[tuple[int, int], ...] = ()


def printed(text: str = SACCT.read_text()) -> dict[int, Life]:
    """Return the rows as they were printed, read plainly; those of one job in order, a resized one joined."""
    head, *lines = text.splitlines()
    names = head.split("|")
    rows: dict[tuple[int, int | None], list[dict[str, str]]] = {}
    for line in lines:
        row = dict(zip(names, line.split("|", len(names) - 1), strict=True))
        job, _, tasks = row["JobID"].partition("_")
        of_array = [None] if not tasks else [int(tasks)] if tasks.isdecimal() else spelled_out(tasks)
        for task in of_array:
            rows.setdefault((int(job) if tasks else int(row["JobIDRaw"]), task), []).append(row)
    found: dict[int, Life] = {}
    for (number, task), of_job in rows.items():
        life, parts = 0, []
        for row in sorted(of_job, key=lambda each: int(each["Submit"])):
            parts.append(row)
            if row["State"] == "RESIZING":
                continue
            found[number_of(number, task, life)] = joined(parts)
            life, parts = life + 1, []
    return found


def spelled_out(tasks: str) -> list[int]:
    """Return the tasks of an array of which sacct prints one row, as in [3,5-7%2]."""
    parts = [part.split("-") for part in tasks.strip("[]").split("%")[0].split(",")]
    return [task for part in parts for task in range(int(part[0]), int(part[-1]) + 1)]


def joined(parts: list[dict[str, str]]) -> Life:
    first, last = parts[0], parts[-1]
    never = first["NodeList"] == "None assigned"
    limit = last["TimelimitRaw"]
    return Life(
        int(first["Submit"]),
        int(first["Eligible"]),
        None if never else int(first["Start"]),
        int(last["End"]),
        "cancelled" if never else OUTCOMES[last["State"].split(" ")[0]],
        None if limit == "UNLIMITED" else 60 * int(limit),
        int(first["ReqCPUS" if never else "AllocCPUS"]),
        tuple((int(before["End"]), int(after["AllocCPUS"])) for before, after in pairwise(parts)),
    )


@pytest.fixture(scope="module", params=["whole machine", "with pools"])
def workload(request: pytest.FixtureRequest) -> Workload:
    reading = Reading(pools=NODES) if request.param == "with pools" else Reading()
    return prepare(read_trace(SACCT, reading), recorded=True)


def told(workload: Workload) -> Iterator[tuple[int, Life]]:
    """Yield what a recorded replay, through all stages, told of each job."""
    zero = workload.unix_start_time
    assert zero is not None
    envelopes: list[Envelope] = []
    opened = ClusterOpened(
        time=0,
        cluster="c",
        processors=workload.processors,
        pools=workload.pools,
        mode="recorded",
        policy="conservative",
        runtime="experts",
        adjustment="auto",
        wait_bound="bmbp",
    )
    EmbeddedReplay(opened, Recorded(workload), [envelopes.append]).run_to_end()
    events: dict[int, dict[str, Any]] = {}
    changes: dict[int, list[tuple[int, int]]] = {}
    for event in (each.event for each in envelopes):
        if isinstance(event, JobChanged):
            assert event.requested_processors is not None
            changes.setdefault(event.job_number, []).append((zero + event.time, event.requested_processors))
        elif isinstance(event, JobSubmitted | JobStarted | JobEnded | JobWithdrawn):
            events.setdefault(event.job_number, {})[event.kind] = event
    for number, of_job in events.items():
        submitted, started = of_job["JobSubmitted"], of_job.get("JobStarted")
        over = of_job.get("JobEnded") or of_job["JobWithdrawn"]
        handed_in = submitted.time if submitted.submit_time is None else submitted.submit_time
        yield (
            number,
            Life(
                zero + handed_in,
                zero + submitted.since,
                None if started is None else zero + moment(started),
                zero + moment(over),
                over.outcome if isinstance(over, JobEnded) else over.reason,
                submitted.requested_time,
                submitted.requested_processors if started is None else started.processors,
                tuple(changes.get(number, ())),
            ),
        )


def test_every_job_is_told_as_slurm_printed_it(workload: Workload) -> None:
    assert dict(told(workload)) == printed()


def test_arrays_het_jobs_and_requeues_are_among_them() -> None:
    lines = [line.split("|") for line in SACCT.read_text().splitlines()[1:]]
    assert sum("_" in line[1] for line in lines) == 30
    assert sum("+" in line[1] for line in lines) == 6
    again = [number for number in printed() if LIFE < number < 2 * LIFE and (number - LIFE) in printed()]
    assert len(again) == 18  # requeued by hand, by preemption and by lost nodes
    assert sum(bool(life.resized) for life in printed().values()) == 3
    assert sum(life.limit is None for life in printed().values()) == 6


def test_requests_are_scored_of_jobs_that_ran_and_had_a_limit(workload: Workload) -> None:
    scored = requests_as_run_times(Plan("recorded", "c", workload, configure("easy"), "recorded"))
    lives = [life for life in printed().values() if life.limit is not None and life.start is not None]
    errors = [abs(life.limit - (life.end - life.start)) for life in lives if life.limit and life.start]
    assert scored["mean_absolute_error"] == pytest.approx(sum(errors) / len(errors), rel=0.01)  # one was suspended


def test_dates_of_a_zone_are_the_same_instants() -> None:
    theirs = read_trace(SAMPLES / "slurm-22.05-berlin.txt", Reading(time_zone="Europe/Berlin"))
    ours = read_trace(SACCT)
    assert theirs.unix_start_time == ours.unix_start_time
    assert (theirs.table == ours.table).all()


def test_the_pools_are_those_that_share_nodes() -> None:
    (pool,) = read_trace(SACCT, Reading(pools=NODES)).pools or ()
    assert (pool.processors, pool.nodes, pool.memory, pool.gpus) == (64, 16, 64_000, 4)
    assert set(pool.name.split("+")) == {"batch", "debug", "gpu", "low"}
