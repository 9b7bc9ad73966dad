"""The decision log and the schedule of a replay."""

import json
from io import BytesIO

from shadowtime.replayer.comparison.records import DecisionLog, Schedule
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from tests.support.small_logs import generated, job, plan_of, workload_of


def decision_log_of(run: str) -> bytes:
    plan, file = plan_of(generated()), BytesIO()
    EmbeddedReplay(plan.opened(), plan.source(), [DecisionLog(file)], run=run).run_to_end()
    return file.getvalue()


def test_decision_log_does_not_depend_on_the_name_of_the_run() -> None:
    assert decision_log_of("a") == decision_log_of("another name")


def test_decision_log_has_the_settings_then_one_line_per_scheduling_point() -> None:
    lines = [json.loads(line) for line in decision_log_of("a").splitlines()]
    assert lines[0]["kind"] == "ClusterOpened"
    assert (lines[0]["sequence"], lines[0]["policy"], lines[0]["processors"]) == (0, "easy", 16)
    assert "run" not in lines[0]
    assert {line["kind"] for line in lines[1:]} == {"Decided"}
    sequences = [line["sequence"] for line in lines]
    assert sequences == sorted(set(sequences))
    starts = [start for line in lines[1:] for start in line["starts"]]
    assert sorted(start["job_number"] for start in starts) == list(range(1, 61))
    assert {start["reason"]["kind"] for start in starts} == {"fits-now", "backfilled"}
    assert any(not line["starts"] for line in lines[1:]), "an empty decision has its line too"


def schedule_of(*events: Event) -> list[str]:
    schedule, file = Schedule(), BytesIO()
    for sequence, event in enumerate(events):
        schedule(Envelope(run="r", sequence=sequence, event=event))
    schedule.write(file)
    return file.getvalue().decode().splitlines()


def test_schedule_is_in_order_of_job_number() -> None:
    file, schedule = BytesIO(), Schedule()
    jobs = [
        job(7, 0, processors=4, run_time=10),
        job(3, 1, processors=2, run_time=300, requested_time=100),
        job(5, 2, processors=2, run_time=5, status=5),
    ]
    plan_of(workload_of(*jobs)).replay([schedule]).run_to_end()
    schedule.write(file)
    assert file.getvalue().decode() == (
        "job_number,submit_time,start_time,end_time,processors,status\n"
        "3,1,10,110,2,0\n"  # ended at the limit of its start
        "5,2,10,15,2,5\n"
        "7,0,0,10,4,1\n"
    )


def test_schedule_tells_of_the_run_that_counts() -> None:
    """A requeued job appears once, with its last start; one that never ended not at all."""
    rows = schedule_of(
        JobSubmitted(time=0, job_number=1, requested_processors=2),
        JobSubmitted(time=0, job_number=2, requested_processors=2),
        JobStarted(time=3, job_number=1, processors=2, limit=5),
        CapacityChanged(time=4, processors=9),
        JobEnded(time=8, job_number=1, run_time=5, outcome="limit", requeued=True),
        SchedulingPoint(time=8),
        JobStarted(time=20, job_number=1, processors=2),
        JobStarted(time=20, job_number=2, processors=2),
        JobEnded(time=30, job_number=1, run_time=10, outcome="killed"),
    )
    assert rows[1:] == ["1,0,20,30,2,5"]


def test_schedule_of_nothing_has_its_header() -> None:
    assert schedule_of() == ["job_number,submit_time,start_time,end_time,processors,status"]
