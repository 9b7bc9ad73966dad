"""When each job ran, as a log: what it says of the jobs, and that it replays."""

from io import BytesIO
from pathlib import Path

import numpy as np

from shadowtime.replayer.comparison.plan import RunPlan, carry_out
from shadowtime.replayer.comparison.records import Schedule
from shadowtime.replayer.comparison.rows import write_schedule
from shadowtime.replayer.logs.swf import FIELDS, read_swf
from shadowtime.replayer.logs.trace import BUNDLED, Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.services.catalogue import configure
from tests.support.small_logs import plan_of


def written(plan: RunPlan, path: Path) -> tuple[Trace, Schedule]:
    """Replay a plan, write its schedule as a log and read that again."""
    schedule, file = Schedule(), BytesIO()
    carry_out(plan, [schedule])
    write_schedule(file, path, plan, schedule)
    path.write_bytes(file.getvalue())
    return read_swf(path), schedule


def test_jobs_are_those_of_the_log_with_the_waits_of_the_replay(tmp_path: Path) -> None:
    bundled = read_swf(BUNDLED)
    workload = prepare(bundled, limit=400)
    trace, schedule = written(plan_of(workload, "cautious"), tmp_path / "out.swf")
    assert (trace.processors, trace.unix_start_time) == (128, bundled.unix_start_time)
    assert trace.header["Note"].startswith("jobs of bundled, replayed under probabilistic(candidates=spf,tau=1.0,")
    before, after = (dict(zip(FIELDS, table.T, strict=True)) for table in (bundled.table[:400], trace.table))
    changed = {"wait_time", "run_time", "status", "allocated_processors"}
    for name in set(FIELDS) - changed:
        assert (before[name] == after[name]).all(), name
    assert (after["run_time"] == np.minimum(before["run_time"], before["requested_time"])).all()
    assert (before["wait_time"] != after["wait_time"]).any()
    starts = dict(schedule.table()[:, [0, 2]].tolist())
    assert (after["submit_time"] + after["wait_time"]).tolist() == [starts[job] for job in after["job_number"].tolist()]


def test_a_replay_of_it_has_the_same_schedule(tmp_path: Path) -> None:
    """Also where jobs ran on other sizes, or more than once."""
    workload = prepare(read_swf(BUNDLED), limit=300)
    policy = "conservative:shape=half,speculate=0.2"
    trace, schedule = written(plan_of(workload, policy), tmp_path / "out.swf.gz")
    again = Schedule()
    plan = RunPlan("recorded", "out", prepare(trace), configure("easy"), "recorded")
    carry_out(plan, [again])
    assert (again.table()[:, :4] == schedule.table()[:, :4]).all()


def test_what_the_log_says_and_no_replay_uses_is_kept(tmp_path: Path) -> None:
    bundled = read_swf(BUNDLED)
    table = bundled.table[:50].copy()
    table[:, FIELDS.index("used_memory")] = np.arange(50)
    table[:, FIELDS.index("think_time")] = 7
    trace, _ = written(plan_of(prepare(Trace("some", bundled.header, table))), tmp_path / "out.swf")
    assert trace.table[:, FIELDS.index("used_memory")].tolist() == list(range(50))
    assert set(trace.table[:, FIELDS.index("think_time")].tolist()) == {7}
