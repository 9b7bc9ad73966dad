"""What a real Slurm 22.05 accounted of three times some 80 jobs with everything that happens to jobs."""

from collections.abc import Iterator
from typing import Any

import pytest

from shadowtime.replayer.comparison.document import requests_as_run_times
from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.shared.accounting.job_numbers import LIFE
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.messages import (
    ClusterOpened,
    Envelope,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    moment,
)
from tests.support.slurm_samples import NODES, SACCT, SAMPLES, Life, printed


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
    scored = requests_as_run_times(RunPlan("recorded", "c", workload, configure("easy"), "recorded"))
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
