"""A generated year in every format is read as it was, and a damaged row changes nothing else."""

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import Reading
from shadowtime.shared.bounds import MAX_DURATION
from tests.support.written_logs import GRID_STATUS, WRITINGS, WrittenJob, written_jobs

STATUS = {"completed": 1, "failed": 0, "cancelled": 5, "waiting": 5, "limit": 100}
OF_GRID = ("gwf", "swf", "swf-semicolons")
TASK = 10**8
"""Difference between the numbers of two tasks of an array."""

Facts = dict[int, tuple[int, ...]]
"""By time of submission: number, wait, run time, processors, limit and status."""


def facts_of(trace: Trace, first: int) -> Facts:
    zero = trace.unix_start_time or first
    return {row[1] + zero: (row[0], row[2], row[3], row[7], row[8], row[10]) for row in trace.table.tolist()}


def expected_of(name: str, jobs: list[WrittenJob]) -> Facts:
    writing = WRITINGS[name]
    expected: Facts = {}
    for at, job in enumerate(jobs, 1):
        if not writing.keeps(job):
            continue
        task = (job.task or 0) if name.startswith("htcondor") else job.task
        if name in (*OF_GRID, "batsim"):
            task = None
        number = at if name in ("flux", "philly") else job.number + (0 if task is None else TASK * (task + 1))
        wait, ran = (-1, -1) if job.start is None else (job.start - job.submit, job.ran)
        status = GRID_STATUS.get(job.outcome, 0) if name in (*OF_GRID, "philly") else STATUS[job.outcome]
        if name == "batsim":
            wait, status = -1, -1
        limit = MAX_DURATION if name == "philly" else job.limit
        expected[job.submit] = (number, wait, ran, job.processors, limit, status)
    return expected


def require_as_written(path: Path, name: str, jobs: list[WrittenJob]) -> None:
    path.write_text(WRITINGS[name].write([job for job in jobs if WRITINGS[name].keeps(job)]).text)
    trace = read_trace(path)
    kept = [job for job in jobs if WRITINGS[name].keeps(job)]
    first = jobs[0].submit if name in ("batsim",) else kept[0].submit
    assert facts_of(trace, first) == expected_of(name, kept)
    assert len(trace.table) == len(kept)
    assert trace.left_out == {}
    if name != "batsim":  # it has no users
        users = {trace.table[at, 11]: job.user for at, job in enumerate(kept)}
        assert len(users) == len(set(users.values())) == len({job.user for job in kept})
    if trace.more:
        left = [job.end - kept[0].submit for job in kept if job.start is None]
        assert sorted(time for time in trace.more.get("left_time", []) if time >= 0) == sorted(left)


@pytest.mark.parametrize("name", WRITINGS)
def test_each_format_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    require_as_written(tmp_path / "log", name, written_jobs(300))


@pytest.mark.nightly
@pytest.mark.parametrize("name", WRITINGS)
def test_a_year_in_each_format_is_read_as_it_was_written(tmp_path: Path, name: str) -> None:
    require_as_written(tmp_path / "log", name, written_jobs(50_000))


JOBS = [job for job in written_jobs(40, seed=3) if job.start is not None]
JUNK = ("\0\x7f", "{", '"', '"}', "},{", "|;,:", "\n", "x" * 50, "]", "\N{SNOWMAN}", "")


def require_counted(name: str, row: int, damaged: str) -> None:
    """Raise unless a row that is replaced by a damaged one is read or counted, and all other rows are read."""
    written = WRITINGS[name].write(JOBS)
    rows = [*written.rows[:row], damaged, *written.rows[row + 1 :]]
    with TemporaryDirectory() as folder:
        path = Path(folder, "log")
        path.write_text(written._replace(rows=rows).text, encoding="utf-8")
        trace = read_trace(path, Reading(lenient=True))
    whole = expected_of(name, JOBS)
    others = {submit: facts for submit, facts in whole.items() if submit != JOBS[row].submit}
    facts = facts_of(trace, JOBS[0].submit)
    assert {submit: some[1:] for submit, some in facts.items() if submit in others} == {
        submit: some[1:] for submit, some in others.items()
    }
    counted = sum(count for count, _ in trace.left_out.values()) + sum(
        "more than 18 fields" in note for note in trace.notes
    )
    assert len(trace.table) + counted >= len(JOBS)


@pytest.mark.parametrize("name", WRITINGS)
@given(data=st.data())
def test_a_damaged_row_is_counted_and_hides_no_other(name: str, data: st.DataObject) -> None:
    row = data.draw(st.integers(0, len(JOBS) - 1), label="row")
    text = WRITINGS[name].write(JOBS).rows[row]
    begin = data.draw(st.integers(0, len(text)), label="begin")
    end = data.draw(st.sampled_from([begin, len(text), min(begin + 9, len(text))]), label="end")
    junk = data.draw(st.sampled_from(JUNK), label="junk")
    damaged = text[:begin] + junk + text[end:]
    assume(damaged.strip(" \n[]{},") and damaged != text)
    require_counted(name, row, damaged)


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("lsf", lambda text: '"' + text[9:]),  # "SH" in place of "JOB_FINISH"
        ("filetxt", lambda text: text.replace("Cluster=c1", "Cluster=\0c1")),
        ("htcondor-lines", lambda text: text[:19] + "{"),  # as if a frame began
    ],
)
def test_damage_that_looks_like_something_else_is_counted(name: str, damage: Callable[[str], str]) -> None:
    require_counted(name, 0, damage(WRITINGS[name].write(JOBS).rows[0]))
