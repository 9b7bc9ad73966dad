"""Tests of lives that Slurm does not tell apart by their submission: the lines that a real Slurm 22.05 printed."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from shadowtime.services.follower.cluster.accounted_lives import observations_of_rows
from shadowtime.services.follower.cluster.mirror import Mirror
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey, Node
from shadowtime.services.follower.slurm.squeue import observations_of, rows_of
from shadowtime.shared.accounting.machine_parts import MachineParts
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.messages import (
    Event,
    JobEnded,
    JobExpected,
    JobStarted,
    JobSubmitted,
    OfJob,
    SchedulingPoint,
    moment,
)
from shadowtime.shared.messages.machine_capacity import Pool
from tests.unit.services.follower.slurm_texts import END, RUNS, TRES, printed, row

ZERO = 1795720000
PARTS = MachineParts((Pool(name="batch", processors=16),), {"batch": 0}, {"n05": 0, "n08": 0})


def mirror() -> Mirror:
    return Mirror(PARTS, NameTable(Names()), ZERO)


def look(seen: Mirror, at: int, *jobs: dict[str, str], accounted: Sequence[str] | None = ()) -> list[Event]:
    """Return what is told after a picture of squeue, in which doubts are resolved by rows of sacct."""
    pictured = observations_of(rows_of(printed(*jobs), END), {"batch": 0})
    seen.take(pictured, at, whole=True)
    if seen.doubts and accounted is not None:
        answer = rows(*accounted)
        seen.take(answer, at)
        seen.answered(answer, at - 1)
    seen.release(at - 1)
    told: list[Event] = []
    while seen.next_time() is not None:
        told += seen.next_instant()
    return [event for event in told if not isinstance(event, SchedulingPoint)]


def rows(*lines: str) -> list[JobObservation]:
    """Return the observations of rows `job|state|submit|eligible|start|end|seconds`."""
    return observations_of_rows([row(*line.split("|")) for line in lines], "sacct")[0]


def job(text: str, **changes: str) -> dict[str, str]:
    """Return a line of squeue as the operator's report has it: number, state, four times, restarts, used, nodes."""
    names = ("JobID", "State", "SubmitTime", "EligibleTime", "StartTime", "EndTime", "RestartCnt", "TimeUsed")
    values = dict(zip((*names, "NodeList"), text.split("|"), strict=True))
    size = {"NumCPUs": "4", "tres-alloc": TRES}
    return RUNS | values | {"ArrayJobID": values["JobID"], "TimeLimit": "1:00:00"} | size | changes


def kinds(events: Sequence[Event]) -> list[tuple[type, int, int]]:
    """Return the kind, the job and the true second of each event."""
    return [
        (type(event), event.job_number, (event.since if isinstance(event, JobSubmitted) else moment(event)) - ZERO)
        for event in events
        if isinstance(event, JobSubmitted | OfJob)
    ]


COMPLETING = "3813|COMPLETING|1795724096|1795724096|1795724118|1795727718|1|0:00|n05"
"""The literal line of the report, of a job that was requeued at 1795724117: its end is now and its limit of an hour."""

RAN = "3813|RUNNING|1795724096|1795724096|1795724097|1795727697|0|0:18|n05"
ACCOUNTED = "3813|PREEMPTED|1795724096|1795724096|1795724097|1795724117|20"
AGAIN = "3813|PENDING|1795724128|1795724249|1795724249|1795727849|1|0:00|"


@pytest.mark.parametrize("end", ["1795727718", "N/A"])
def test_the_end_of_a_job_that_is_requeued_while_an_epilog_runs_is_that_of_accounting(end: str) -> None:
    seen = mirror()
    assert kinds(look(seen, 1795724110, job(RAN))) == [(JobSubmitted, 3813, 4096), (JobStarted, 3813, 4097)]
    (ended,) = look(seen, 1795724119, job(COMPLETING, EndTime=end), accounted=[ACCOUNTED])
    assert ended == JobEnded(time=1795724117, job_number=3813, run_time=20, outcome="killed")
    assert look(seen, 1795724135, job(AGAIN)) == []
    runs = job("3813|RUNNING|1795724128|1795724249|1795724250|1795727850|1|0:05|n05")
    later = look(seen, 1795724255, runs)
    assert kinds(later) == [(JobSubmitted, 100003813, 4249), (JobStarted, 100003813, 4250)]


def test_while_accounting_is_silent_the_log_waits() -> None:
    seen = mirror()
    look(seen, 1795724110, job(RAN))
    for at in (1795724119, 1795724125):
        assert look(seen, at, job(COMPLETING), accounted=None) == []
        assert seen.doubts == {LifeKey(3813, -1, 1795724096)}
    assert seen.held_back == 0


def test_a_job_that_is_first_seen_while_it_is_requeued_has_the_times_of_accounting() -> None:
    """As job 184 of the report, whose start was told 12 s off, with a run time of 0."""
    seen = mirror()
    look(seen, 1795724090)
    told = look(seen, 1795724119, job(COMPLETING), accounted=[ACCOUNTED])
    assert kinds(told) == [(JobSubmitted, 3813, 4096), (JobStarted, 3813, 4097), (JobEnded, 3813, 4117)]
    assert told[-1].run_time == 20  # type: ignore[union-attr]


def test_a_job_that_completes_just_after_the_clock_was_read_is_not_in_doubt() -> None:
    seen = mirror()
    look(seen, 1795724110, job(RAN))
    over = job("3813|COMPLETING|1795724096|1795724096|1795724097|1795724121|0|0:24|n05")
    assert look(seen, 1795724120, over) == []
    assert seen.doubts == set()
    assert kinds(look(seen, 1795724130, over)) == [(JobEnded, 3813, 4121)]


def test_a_start_that_slurm_has_moved_makes_no_second_life() -> None:
    """Accounting has stated the end before a picture shows the job completing, with the later start."""
    seen = mirror()
    told = look(seen, 1795724090)
    for at, line in (
        (1795724110, ACCOUNTED.replace("PREEMPTED", "RUNNING").replace("1795724117|20", "Unknown|0")),
        (1795724120, "3813|COMPLETED|1795724096|1795724096|1795724107|1795724117|10"),
    ):
        seen.take(rows(line), at)
        seen.release(at - 1)
        while seen.next_time() is not None:
            told += seen.next_instant()
    told += look(seen, 1795724125, job("3813|COMPLETING|1795724096|1795724096|1795724107|1795724117|0|0:10|n05"))
    assert kinds(told) == [(JobSubmitted, 3813, 4096), (JobStarted, 3813, 4097), (JobEnded, 3813, 4117)]


DEAD = "9|RUNNING|1795721762|1795721762|1795721763|1795722063|0|0:05|n08"
"""A job sent to a node whose slurmd is dead. Slurm requeues it, and the next life keeps the submission."""

PUT_BACK = "9|COMPLETING|1795721762|1795721762|1795721775|1795722075|1|0:00|n08"
WAITS_AGAIN = "9|PENDING|1795721762|1795721762|N/A|N/A|1|0:00|n08"
RUNS_AGAIN = "9|RUNNING|1795721762|1795721762|1795721819|1795722119|1|0:05|n08"
OVER_AGAIN = "9|COMPLETED|1795721762|1795721762|1795721819|1795721839|1|0:20|n08"
FAILED = "9|NODE_FAIL|1795721762|1795721762|1795721763|1795721774|11"
OVERWRITTEN = "9|NODE_FAIL|1795721762|1795721762|1795721774|1795721774|0"
FINALLY = "9|COMPLETED|1795721762|1795721762|1795721819|1795721839|20"
TWO_LIVES = [
    (JobSubmitted, 9, 1762),
    (JobStarted, 9, 1763),
    (JobEnded, 9, 1774),
    (JobSubmitted, 100000009, 1774),
    (JobStarted, 100000009, 1819),
    (JobEnded, 100000009, 1839),
]


def test_two_lives_with_one_submission_are_told_apart_by_their_restarts() -> None:
    seen = mirror()
    told = look(seen, 1795721768, job(DEAD))
    told += look(seen, 1795721780, job(PUT_BACK), accounted=[FAILED])
    told += look(seen, 1795721800, job(WAITS_AGAIN))
    told += look(seen, 1795721825, job(RUNS_AGAIN))
    told += look(seen, 1795721845, job(OVER_AGAIN))
    assert kinds(told) == TWO_LIVES
    assert look(seen, 1795721860, job(OVER_AGAIN)) == []


def test_the_end_of_the_first_one_is_found_in_a_row_that_the_second_one_has_overwritten() -> None:
    seen = mirror()
    told = look(seen, 1795721768, job(DEAD))
    told += look(seen, 1795721825, job(RUNS_AGAIN), accounted=[OVERWRITTEN])
    told += look(seen, 1795721845, job(OVER_AGAIN))
    assert kinds(told) == TWO_LIVES
    assert [event.run_time for event in told if isinstance(event, JobEnded)] == [11, 20]


def test_if_accounting_has_lost_the_first_end_it_is_guessed_before_the_second_start() -> None:
    seen = mirror()
    look(seen, 1795721768, job(DEAD))
    told: list[Event] = []
    for at in range(1795721845, 1795721945, 15):
        told += look(seen, at, job(OVER_AGAIN), accounted=[FINALLY])
    ends = [event for event in told if isinstance(event, JobEnded)]
    assert kinds(ends) == [(JobEnded, 9, 1819), (JobEnded, 100000009, 1839)]
    assert seen.guessed == 1


def test_a_follower_that_starts_anew_goes_on_with_two_such_lives() -> None:
    seen, again = mirror(), mirror()
    told = look(seen, 1795721768, job(DEAD))
    told += look(seen, 1795721780, job(PUT_BACK), accounted=[FAILED])
    told += look(seen, 1795721800, job(WAITS_AGAIN))
    again.restore(seen.snapshot())
    told += look(again, 1795721825, job(RUNS_AGAIN))
    told += look(again, 1795721845, job(OVER_AGAIN))
    assert kinds(told) == TWO_LIVES


def test_the_rest_of_a_cancelled_array_does_not_override_its_tasks() -> None:
    """sacct prints 1427_[0-29] for the rest, although tasks have rows of their own."""
    seen = observations_of_rows(
        [
            row("1427_[0-3]", "CANCELLED by 0", "1795721000", "1795721000", "Unknown", "1795721050", "0"),
            row("1427_0", "COMPLETED", "1795721000", "1795721000", "1795721001", "1795721031", "30"),
            row("1427_1", "CANCELLED", "1795721000", "1795721000", "1795721002", "1795721050", "48"),
        ],
        "sacct",
    )[0]
    assert {each.key.task: each.start for each in seen} == {
        0: 1795721001, 1: 1795721002, 2: None, 3: None,
    }  # fmt: skip
    assert len(seen) == 4


def test_no_two_lives_of_a_job_run_at_once() -> None:
    """If a source says so, the second start waits for accounting, and then ends the first life."""
    seen = mirror()
    first = replace(rows(FAILED.replace("1795721774|11", "Unknown|0"))[0], life=None)
    second = replace(first, key=first.key._replace(submit=ZERO + 1800), eligible=ZERO + 1800, start=ZERO + 1810)
    seen.take([first], ZERO + 1790)
    seen.release(ZERO + 1789)
    while seen.next_time() is not None:
        seen.next_instant()
    told: list[Event] = []
    for at in range(1820, 1920, 15):
        seen.take([first, second], ZERO + at)
        seen.release(ZERO + at - 1)
        while seen.next_time() is not None:
            told += seen.next_instant()
    assert kinds(told) == [
        (JobSubmitted, 100000009, 1800),
        (JobEnded, 9, 1810),
        (JobStarted, 100000009, 1810),
    ]
    assert (seen.held_back, seen.guessed) == (1, 1)


def test_jobs_never_hold_more_than_the_pool_has_but_where_slurm_shares_processors() -> None:
    seen = mirror()
    runs = [job(RAN, JobID=str(number), ArrayJobID=str(number), NumCPUs="8") for number in (1, 2, 3)]
    assert kinds(look(seen, 1795724110, *runs[:2]))[-1] == (JobStarted, 2, 4097)
    held = look(seen, 1795724125, *runs)
    assert held == []
    assert seen.held_back == 1
    assert {key.job for key in seen.doubts} == {3}
    told = look(seen, 1795724125 + 61, *runs)  # accounting has been asked
    assert kinds(told)[-1][:2] == (JobStarted, 3)
    assert seen.doubts == set()


def test_a_draining_node_still_runs_its_jobs() -> None:
    seen = mirror()
    seen.capacity.see([Node(name, ("batch",), 8, 0, 0, usable=4, held=4) for name in ("n05", "n08")])
    runs = [job(RAN, JobID=str(number), ArrayJobID=str(number), NumCPUs="4") for number in (1, 2, 3)]
    look(seen, 1795724110, *runs)
    assert (seen.held_back, seen.capacity.configured) == (0, [16])


def test_a_partition_that_is_made_later_is_followed() -> None:
    seen = mirror()
    fresh = job(AGAIN, Partition="fresh", EligibleTime="1795724128", RestartCnt="0")
    assert look(seen, 1795724135, fresh) == []
    assert seen.named == {"on a node and in a partition of no pool": ["3813 in 'fresh'"]}
    seen.capacity.see([Node("n08", ("batch", "fresh"), 8, 0, 0, 8), Node("x", ("elsewhere",), 8, 0, 0, 8)])
    assert (seen.parts.of_partition["fresh"], seen.capacity.unknown) == (0, frozenset({"elsewhere"}))
    assert kinds(look(seen, 1795724150, fresh))[0][:2] == (JobSubmitted, 3813)


def test_a_job_too_large_is_named_and_included_once_it_fits() -> None:
    seen = mirror()
    large = job(AGAIN, NumCPUs="40", EligibleTime="1795724128", RestartCnt="0")
    for at in (1795724135, 1795724150):
        assert look(seen, at, large) == []
    assert dict(seen.left_out) == {"larger than its pool": 1}
    told = look(seen, 1795724165, large | {"NumCPUs": "4", "State": "RUNNING", "StartTime": "1795724160"})
    assert [type(event) for event in told] == [JobSubmitted, JobStarted]


def test_a_job_that_is_left_out_in_the_history_is_counted_once() -> None:
    seen = mirror()
    waits = row("77", "PENDING", "1795721000", "1795721000", "Unknown", "Unknown", "0")
    waits[FIELDS.index("ReqCPUS")] = waits[FIELDS.index("AllocCPUS")] = "40"
    history = observations_of_rows([waits], "sacct")[0]
    for at in range(ZERO + 10_000, ZERO + 100_000, 10_000):
        seen.take(history, at)
        seen.release(at - 1)
        while seen.next_time() is not None:
            seen.next_instant()
    large = job("77|PENDING|1795721000|1795721000|N/A|N/A|0|0:00|", NumCPUs="40")
    look(seen, ZERO + 100_000, large)
    assert seen.left_out.total() == 1


def test_a_job_that_squeue_lost_and_that_runs_by_accounting_is_not_ended_before_patience_is_over() -> None:
    seen = mirror()
    look(seen, 1795724110, job(RAN))
    going_on = ACCOUNTED.replace("PREEMPTED", "RUNNING").replace("1795724117|20", "Unknown|20")
    for at in range(1795724125, 1795724125 + 600, 60):
        assert look(seen, at, accounted=[going_on]) == []
    assert JobEnded in {type(event) for event in look(seen, 1795724125 + 660, accounted=[going_on])}


def test_a_job_waits_until_its_nodes_are_up() -> None:
    """Slurm moves the start of such a job to the second in which its nodes are up."""
    seen = mirror()
    boots = printed(job("12|CONFIGURING|1795721767|1795721767|1795721768|1795722068|0|0:05|n[08-09]"))
    (waits,) = observations_of(rows_of(boots, END), {})
    assert (waits.state, waits.start, waits.expected, waits.blocked) == ("waiting", None, None, True)
    runs = job("12|RUNNING|1795721767|1795721767|1795721784|1795722084|0|0:05|n08")
    told = look(seen, 1795721775, job("12|CONFIGURING|1795721767|1795721767|1795721768|1795722068|0|0:05|n08"))
    told += look(seen, 1795721790, runs)
    assert kinds(told) == [(JobSubmitted, 12, 1767), (JobStarted, 12, 1784)]


def test_a_job_that_is_cancelled_while_it_is_requeued_has_no_further_life() -> None:
    """As job 497 of a run: it ran for a second, was requeued, and cancelled while an epilog ran."""
    seen = mirror()
    told = look(seen, 1795724110, job("497|PENDING|1795724096|1795724096|1795724300|N/A|0|0:00|"))
    over = job("497|CANCELLED|1795724096|1795724096|1795724127|1795724127|1|0:00|n05")
    row = "497|REQUEUED|1795724096|1795724096|1795724121|1795724122|1"
    for at in (1795724128, 1795724140, 1795724220):
        told += look(seen, at, over, accounted=[row])
    assert [kind for kind in kinds(told) if kind[0] is not JobExpected] == [
        (JobSubmitted, 497, 4096),
        (JobStarted, 497, 4121),
        (JobEnded, 497, 4122),
    ]


def test_a_job_that_shows_its_old_submission_for_a_moment_has_no_life_in_between() -> None:
    seen = mirror()
    told = look(seen, 1795721768, job(DEAD))
    told += look(seen, 1795721780, job(WAITS_AGAIN), accounted=[FAILED])
    new = job("9|PENDING|1795721785|1795721906|N/A|N/A|1|0:00|")
    told += look(seen, 1795721795, new)
    told += look(seen, 1795721910, new)
    assert kinds(told) == [*TWO_LIVES[:3], (JobSubmitted, 100000009, 1906)]


def test_a_job_that_waits_on_with_its_old_submission_is_told_after_a_minute() -> None:
    seen = mirror()
    told = look(seen, 1795721768, job(DEAD))
    for at in range(1795721780, 1795721860, 15):
        told += look(seen, at, job(WAITS_AGAIN), accounted=[FAILED])
    assert kinds(told) == TWO_LIVES[:4]


def test_a_federated_array_that_is_too_large_is_named() -> None:
    seen = mirror()
    (task,) = rows(f"{2**27}_4600|RUNNING|1795721000|1795721000|1795721001|Unknown|9")
    seen.take([task], 1795721010)
    assert seen.named == {"with too large a number": ["134217728_4600 in 'batch'"]}
