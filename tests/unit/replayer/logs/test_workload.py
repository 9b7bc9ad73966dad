"""Which jobs of a log a replay uses, and as what."""

from dataclasses import replace

import numpy as np
import pytest

from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.replayer.logs.trace import BUNDLED, Trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.replayer.options import Oversized, Requests, Sizes
from shadowtime.shared.errors import SettingsError, TraceError


def trace_of(*rows: dict[str, int], header: dict[str, str] | None = None) -> Trace:
    """Return a trace on 10 processors; each row overrides the fields of an ordinary job."""
    usual = dict.fromkeys(FIELDS, -1) | {"run_time": 60, "requested_time": 600, "requested_processors": 4}
    numbered = [usual | {"job_number": i, "submit_time": i} | row for i, row in enumerate(rows, 1)]
    table = np.array([[row[field] for field in FIELDS] for row in numbered], dtype=np.int64)
    return Trace("made", {"MaxProcs": "10"} if header is None else header, table)


def numbers(workload: Workload) -> list[int]:
    return [job.job_number for job in workload]


def test_filter_counts_each_job_once_under_its_first_reason() -> None:
    trace = trace_of(
        {},
        {"submit_time": -1, "run_time": 0},
        {"requested_processors": -1},
        {"requested_processors": 0, "allocated_processors": 0, "requested_time": -1},
        {"run_time": 0},
        {"run_time": -1},
        {"requested_time": -1},
        {"requested_processors": 11},
        {"requested_processors": -1, "allocated_processors": 3},
    )
    workload = prepare(trace)
    assert numbers(workload) == [1, 9]
    assert [job.processors for job in workload] == [4, 3]
    assert workload.skipped == {
        "submit time negative": 1,
        "no processors": 2,
        "run time not positive": 2,
        "no request": 1,
        "larger than the machine": 1,
    }


def test_a_machine_of_another_size() -> None:
    trace = trace_of({"requested_processors": 12}, {"requested_processors": 10}, {})
    assert numbers(prepare(trace)) == [2, 3]
    assert numbers(prepare(trace, 12)) == [1, 2, 3]
    assert numbers(prepare(trace, 4)) == [3]


def test_align_cuts_larger_jobs_to_the_machine() -> None:
    trace = trace_of({"requested_processors": 12}, {"requested_processors": 12, "run_time": 0}, {})
    workload = prepare(trace, oversized="align")
    assert [job.processors for job in workload] == [10, 4]
    assert (workload.aligned, workload.skipped) == (1, {"run time not positive": 1})
    assert prepare(trace).aligned == 0


@pytest.mark.parametrize(
    ("requests", "times"),
    [
        ("as-logged", [(60, 600), (900, 600)]),
        ("at-least-run", [(60, 600), (900, 900)]),
        ("actual", [(60, 60), (900, 600)]),
        ("doubled", [(60, 1200), (600, 1200)]),
    ],
)
def test_requests(requests: Requests, times: list[tuple[int, int]]) -> None:
    trace = trace_of({}, {"run_time": 900})
    before = trace.table.copy()
    workload = prepare(trace, requests=requests)
    assert [(job.run_time, job.requested_time) for job in workload] == times
    assert np.array_equal(trace.table, before)


@pytest.mark.parametrize(("sizes", "processors"), [("requested", [4, 4, 3]), ("allocated", [8, 4, 3])])
def test_sizes(sizes: Sizes, processors: list[int]) -> None:
    """Intrepid gave every job a whole partition: requested work is two thirds of allocated work."""
    only_allocated = {"requested_processors": -1, "allocated_processors": 3}
    trace = trace_of({"allocated_processors": 8}, {"allocated_processors": -1}, only_allocated)
    assert [job.processors for job in prepare(trace, sizes=sizes)] == processors


def test_a_job_that_got_more_than_the_machine_has_is_left_out() -> None:
    trace = trace_of({"allocated_processors": 12}, {})
    assert numbers(prepare(trace)) == [1, 2]
    assert prepare(trace, sizes="allocated").skipped == {"larger than the machine": 1}


def test_requests_by_the_maximum_of_the_queue_keep_all_jobs() -> None:
    trace = trace_of(
        {"queue_number": 1, "requested_time": -1},
        {"queue_number": 1, "run_time": 900},
        {"queue_number": 1, "run_time": 9000, "requested_processors": 11},
        {"requested_time": -1, "run_time": 70},
        {"requested_time": -1, "run_time": 80},
    )
    for limit in (None, 1):
        workload = prepare(trace, requests="queue-maximum", limit=limit)
        assert [(job.run_time, job.requested_time) for job in workload] == [(60, 900), (900, 900), (70, 80), (80, 80)][
            :limit
        ]


def test_actual_requests_keep_all_jobs_only_of_a_log_without_requests() -> None:
    assert [job.requested_time for job in prepare(trace_of({"requested_time": -1}), requests="actual")] == [60]
    assert numbers(prepare(trace_of({"requested_time": -1}, {}), requests="actual")) == [2]


def test_load_compresses_submissions() -> None:
    trace = trace_of({"submit_time": 0}, {"submit_time": 7, "wait_time": 5}, {"submit_time": 100})
    assert [(job.submit_time, job.run_time, job.wait_time) for job in prepare(trace, load=2)] == [
        (0, 60, None),
        (3, 60, None),
        (50, 60, None),
    ]
    assert [job.submit_time for job in prepare(trace, load=0.5)] == [0, 14, 200]
    later_first = trace_of({"submit_time": 6, "job_number": 9}, {"submit_time": 7, "job_number": 4})
    assert numbers(prepare(later_first)) == [9, 4]
    assert numbers(prepare(later_first, load=2)) == [4, 9]  # both at 3 s


def test_load_is_refused_where_instants_would_stay() -> None:
    trace = trace_of({})
    with pytest.raises(SettingsError, match=r"^load 0: expected a factor of 0\.01 to 100$"):
        prepare(trace, load=0)
    with pytest.raises(SettingsError, match=r"^load 2: jobs start as recorded"):
        prepare(trace, load=2, recorded=True)
    unknown = replace(trace, more={"left_time": np.array([-1])}, resized=np.empty((3, 0), dtype=np.int64))
    assert len(prepare(unknown, load=2)) == 1  # an accounting file or table without such instants
    for own in (replace(trace, more={"handed_in": np.array([0])}), replace(trace, resized=np.array([[1], [5], [2]]))):
        with pytest.raises(SettingsError, match="load 2: expected a log whose only times are submissions"):
            prepare(own, load=2)
        assert len(prepare(own)) == 1


def test_limit_counts_the_jobs_that_are_kept() -> None:
    trace = trace_of({}, {"run_time": 0}, {}, {})
    assert numbers(prepare(trace, limit=2)) == [1, 3]
    assert numbers(prepare(trace, limit=99)) == [1, 3, 4]


def test_workload_is_a_sequence_of_jobs_that_nobody_can_write_to() -> None:
    workload = prepare(trace_of(*[{}] * 5000))  # more than one block of the iteration
    assert len(workload) == 5000
    assert [workload[i] for i in range(5000)] == list(workload)
    assert workload[-1].job_number == 5000
    with pytest.raises(IndexError):
        workload[5000]
    with pytest.raises(ValueError, match="read-only"):
        workload.columns["run_time"][0] = 1


def test_a_negative_wait_is_kept_as_logged() -> None:
    waits = [job.wait_time for job in prepare(trace_of({"wait_time": -7}, {"wait_time": -1}, {"wait_time": 0}))]
    assert waits == [-7, None, 0]


def test_no_job_left() -> None:
    trace = trace_of({"run_time": 0}, {"requested_processors": 12})
    message = (
        "^made: no job left to replay on 10 processors; skipped: 1 run time not positive, 1 larger than the machine$"
    )
    with pytest.raises(TraceError, match=message):
        prepare(trace)


def test_machine_of_unknown_size() -> None:
    trace = trace_of({}, header={})
    with pytest.raises(TraceError, match=r"^made: its header has neither .*; give --processors$"):
        prepare(trace)
    assert prepare(trace, 8).processors == 8


@pytest.mark.parametrize("number", [0, -3])
def test_options_out_of_range(number: int) -> None:
    with pytest.raises(SettingsError, match=f"processors {number}: a machine has at least 1"):
        prepare(trace_of({}), number)
    with pytest.raises(SettingsError, match=f"jobs {number}: a replay needs at least 1"):
        prepare(trace_of({}), limit=number)


def test_unknown_options() -> None:
    oversized: Oversized = "cut"  # type: ignore[assignment]
    with pytest.raises(SettingsError, match="oversized 'cut': expected one of drop, align"):
        prepare(trace_of({}), oversized=oversized)
    requests: Requests = "halved"  # type: ignore[assignment]
    with pytest.raises(
        SettingsError, match="requests 'halved': expected one of as-logged, at-least-run, actual, doubled"
    ):
        prepare(trace_of({}), requests=requests)
    sizes: Sizes = "used"  # type: ignore[assignment]
    with pytest.raises(SettingsError, match="sizes 'used': expected one of requested, allocated"):
        prepare(trace_of({}), sizes=sizes)


def test_bundled_log_is_replayed_whole() -> None:
    workload = prepare(read_swf(BUNDLED))
    assert (workload.name, len(workload), workload.skipped, workload.aligned) == ("bundled", 5000, {}, 0)


def test_a_request_of_zero_is_none_and_requested_processors_of_zero_mean_those_allocated() -> None:
    row = dict.fromkeys(FIELDS, -1) | {"submit_time": 0, "run_time": 60, "requested_time": 90}
    rows = [
        row | {"job_number": 1, "requested_processors": 2, "requested_time": 0},
        row | {"job_number": 2, "requested_processors": 0, "allocated_processors": 3},
    ]
    workload = prepare(Trace("zeros", {"MaxProcs": "4"}, np.array([list(each.values()) for each in rows])))
    assert [(job.job_number, job.processors) for job in workload] == [(2, 3)]
    assert workload.skipped == {"no request": 1}


def test_times_beyond_all_measure_are_left_out() -> None:
    row = dict.fromkeys(FIELDS, -1) | {"submit_time": 0, "requested_processors": 1, "requested_time": 90}
    rows = [row | {"job_number": 1, "run_time": 60}, row | {"job_number": 2, "run_time": 2**50}]
    workload = prepare(Trace("long", {"MaxProcs": "4"}, np.array([list(each.values()) for each in rows])))
    assert [job.job_number for job in workload] == [1]
    assert sum(workload.skipped.values()) == 1
