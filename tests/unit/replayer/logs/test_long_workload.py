"""A log that is read while it is replayed says what it says as a whole, and holds some thousand jobs at a time."""

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.chunked_workload import read_in_pieces
from shadowtime.replayer.logs.swf import FIELDS, read_swf, write_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.services.catalogue import configure
from shadowtime.shared.accounting import text_file as log_file
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.messages.envelope import Envelope
from shadowtime.testing.examples import examples

POLICY = configure("easy", "last-two")


@pytest.fixture(autouse=True)
def _small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a piece be some dozens of jobs, not one of them at its end."""
    monkeypatch.setattr(log_file, "PIECE", 3_001)


@pytest.fixture(name="path")
def _path(tmp_path: Path) -> Path:
    """Return a log with all that is left out of one."""
    path = tmp_path / "log.swf.gz"
    trace = read_swf(BUNDLED)
    table = trace.table[:700].copy()
    for row, (name, value) in enumerate(
        [("submit_time", -1), ("run_time", 0), ("requested_time", -1), ("requested_processors", 500)] * 9
    ):
        table[row * 17, FIELDS.index(name)] = value if name != "submit_time" or row == 0 else 0
    table[:, FIELDS.index("submit_time")] = np.maximum.accumulate(table[:, FIELDS.index("submit_time")])
    write_swf(path, dict(trace.header), table)
    return path


def told(workload: Workload, mode: str) -> list[Envelope]:
    envelopes: list[Envelope] = []
    RunPlan("easy", "c", workload, POLICY, mode).replay([envelopes.append]).run_to_end()
    return envelopes


@pytest.mark.parametrize("mode", ["closed", "recorded"])
@pytest.mark.parametrize("limit", [None, 1, 333])
def test_it_is_replayed_as_if_read_whole(path: Path, mode: str, limit: int | None) -> None:
    recorded = mode == "recorded"
    whole = prepare(read_swf(path), limit=limit, recorded=recorded)
    long, notes = read_in_pieces(path, limit=limit, recorded=recorded)
    assert (len(long), long.skipped, long.aligned, long.processors) == (len(whole), whole.skipped, 0, whole.processors)
    assert notes == ()
    assert limit or len(list(long.blocks())) > 10
    assert list(long) == list(whole)
    assert told(long, mode) == told(whole, mode)


def test_options_are_those_of_a_whole_log(path: Path) -> None:
    options: dict[str, Any] = {"oversized": "align", "requests": "doubled", "sizes": "allocated", "load": 2}
    whole = prepare(read_swf(path), 64, **options)
    long, _ = read_in_pieces(path, 64, **options)
    assert (long.aligned, long.processors, long.name) == (whole.aligned, 64, whole.name)
    assert long.aligned > 0
    assert list(long) == list(whole)


def test_jobs_are_found_by_row(path: Path) -> None:
    long, _ = read_in_pieces(path)
    whole = prepare(read_swf(path))

    @given(rows=st.sets(st.integers(0, len(whole) - 1), max_size=30), start=st.integers(0, len(whole)))
    @examples(30)
    def found_alike(rows: set[int], start: int) -> None:
        assert long.jobs_at(rows) == whole.jobs_at(rows)
        assert next(long.jobs_from(start), None) == next(whole.jobs_from(start), None)

    found_alike()
    assert long[-1] == whole[-1]


@pytest.mark.parametrize("mode", ["closed", "recorded"])
def test_a_restored_replay_goes_on(path: Path, mode: str) -> None:
    long, _ = read_in_pieces(path, recorded=mode == "recorded")
    plan = RunPlan("easy", "c", long, POLICY, mode)
    whole = told(long, mode)
    replay = plan.replay()
    for _ in range(len(whole) // 2):
        replay.step()
    rest: list[Envelope] = []
    again = plan._replace(workload=pickle.loads(pickle.dumps(long))).replay([rest.append])
    again.restore(replay.snapshot())
    again.run_to_end()
    assert rest == whole[len(whole) // 2 :]


def test_who_needs_it_whole_is_told_so(path: Path) -> None:
    long, _ = read_in_pieces(path)
    for use in (lambda: long.columns["run_time"], lambda: len(long.columns), lambda: list(long.columns)):
        with pytest.raises(TraceError, match=r"^log is read in pieces, but this needs the whole log"):
            use()
    with pytest.raises(SettingsError, match=r"^requests queue-maximum: needs the whole log at once"):
        read_in_pieces(path, requests="queue-maximum")


@pytest.mark.parametrize(
    ("row", "field", "value", "words"),
    [
        (150, "job_number", 7, "line {line}: job number 7 after 150; --in-pieces needs jobs in order of "),
        (150, "job_number", 150, "line {line}: job number 150 after 150; "),
        (150, "submit_time", 3, "line {line}: submit time 3 after {before}; --in-pieces needs jobs "),
        (0, "job_number", -4, "line {line}: job number -4 after -1; "),
    ],
)
def test_a_job_out_of_order_is_named(tmp_path: Path, row: int, field: str, value: int, words: str) -> None:
    trace = read_swf(BUNDLED)
    table = trace.table[:300].copy()
    before = table[row - 1, FIELDS.index("submit_time")]
    table[row, FIELDS.index(field)] = value
    path = tmp_path / "log.swf"
    write_swf(path, {"MaxProcs": "128"}, table)
    with pytest.raises(TraceError) as error:
        read_in_pieces(path)
    assert words.format(line=row + 2, before=before) in str(error.value)


def test_a_log_without_a_job_that_can_be_replayed(tmp_path: Path) -> None:
    path = tmp_path / "log.swf"
    write_swf(path, {"MaxProcs": "128"}, np.full((3, len(FIELDS)), [[1], [2], [3]]) * (np.arange(18) == 0))
    with pytest.raises(TraceError, match="no job left to replay on 128 processors; skipped: 3 no processors"):
        read_in_pieces(path)


def test_few_jobs_are_held_at_once() -> None:
    """Of 5,000 jobs the most that one reading yields is a piece."""
    long, _ = read_in_pieces(BUNDLED)
    sizes = [len(block) for block in long.blocks()]
    assert sum(sizes) == len(long) == 5000
    assert max(sizes) < 100
