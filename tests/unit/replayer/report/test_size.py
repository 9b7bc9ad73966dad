"""The report does not grow with the log: what is drawn has so many marks, however many jobs there were."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from shadowtime.replayer.comparison.run_record import EndedJobs, RunRecord
from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.report.report import page
from shadowtime.shared.formatting import DAY
from shadowtime.shared.kernels.arrays import Integers
from tests.support.recorded_runs import compared
from tests.support.small_logs import plan_of

YEAR = 365 * DAY
POLICIES = ("fcfs", "easy", "best")
GROUPINGS = 7


@dataclass
class Size:
    """What there is of a page."""

    bytes: int
    marks: int
    rows: int


class MadeUp(BoundedWaits):
    """The same waits and bounds in every grouping."""

    def __init__(self, rows: Integers) -> None:
        super().__init__()
        self.rows = rows

    def by_grouping(self) -> Mapping[str, Integers]:
        """Return submit times, waits and bounds of each."""
        return {f"grouping {place}": self.rows for place in range(GROUPINGS)}


def size_of(count: int, span: int = YEAR) -> Size:
    """Return the size of a report on so many jobs within so many seconds: small runs scored, schedules made up."""
    chance = np.random.default_rng(1)
    table = np.full((count, len(FIELDS)), -1)
    submitted = np.sort(chance.integers(0, span, count))
    columns: dict[str, Any] = {
        "job_number": np.arange(1, count + 1), "submit_time": submitted, "status": 1, "user_id": 1,
        "run_time": chance.integers(60, 9_000, count),
        "requested_processors": chance.integers(1, 64, count), "requested_time": chance.integers(9_000, 90_000, count),
    }  # fmt: skip
    for name, values in columns.items():
        table[:, FIELDS.index(name)] = values
    workload = prepare(Trace("made up", {"MaxProcs": "64", "UnixStartTime": "843480031"}, table))
    told, _ = compared()
    records = []
    for policy in POLICIES:
        record = RunRecord(plan_of(workload)._replace(label=policy))
        waits = chance.integers(0, 90_000, count)
        ends = submitted + waits + columns["run_time"]
        sizes = columns["requested_processors"]
        record.jobs = EndedJobs(
            record.plan, np.column_stack([columns["job_number"], submitted, submitted + waits, ends, sizes, sizes])
        )
        record.bounded_waits = MadeUp(np.column_stack([submitted, waits, waits + 9]))
        records.append(record)
    bound = {
        "queue": "all", "grouping": "plain", "quantile": 0.95, "confidence": 0.95, "predictions": count, "without": 0,
        "coverage": 1.0, "coverage_low": None, "coverage_high": None, "over_rms": 9.0, "ratio_to_plain": 1.0,
    }  # fmt: skip
    html = page([told | {"wait_bounds": [bound | {"policy": "easy"}]}], None, [records])
    return Size(len(html), len(re.findall("<(?:rect|path|text)|M[0-9]|[LHV][0-9]", html)), html.count("<tr>"))


def test_ten_times_the_jobs_make_no_larger_page() -> None:
    small, large = size_of(5_000), size_of(50_000)
    assert large.bytes < 1.3 * small.bytes < 2_000_000
    assert large.marks < 1.3 * small.marks < 100_000
    assert large.rows <= small.rows + 5


def test_a_day_of_thousands_of_jobs_is_no_larger_than_one_of_hundreds() -> None:
    small, large = size_of(2_000, span=3 * DAY), size_of(20_000, span=3 * DAY)
    assert large.bytes < 1.3 * small.bytes < 2_000_000
    assert large.marks < 1.3 * small.marks < 100_000
    assert large.rows <= small.rows + 5
