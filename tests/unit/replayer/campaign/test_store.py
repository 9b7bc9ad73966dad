"""What a campaign keeps of a cell is taken up again only as it was written."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from shadowtime.replayer.campaign.cell_run import CellResult, carry_out_cell
from shadowtime.replayer.campaign.grid import Cell
from shadowtime.replayer.campaign.logs import CampaignLog
from shadowtime.replayer.campaign.store import Store
from shadowtime.replayer.comparison.run_record import JobTimes
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS
from shadowtime.services.catalogue import configure
from shadowtime.shared.errors import OutputError, ReplayError

LOG = CampaignLog("small", "small", "/nowhere", "0" * 64, None, "drop", "as-logged", None)
CELL = Cell("easy", LOG, configure("easy"), "none", "closed", DEFAULT_TRAITS, 0, 0, keeps_jobs=True)
ROW = {"mean_wait": 12.5, "max_wait": 7, "policy": "easy", "nothing": None, "no_number": float("nan")}
JOBS = JobTimes(*(np.arange(5, dtype=np.int64) + field for field in range(len(JobTimes.FIELDS))))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """A folder that keeps one cell; its name looks like a key of a data set."""
    made = Store(tmp_path / "seed=1")
    made.keep(CELL, CellResult(ROW, JOBS))
    return made


def damaged(path: Path) -> Iterator[bytes]:
    """Yield what becomes of a file on a bad disk."""
    whole = path.read_bytes()
    for place in range(0, len(whole), 7):
        yield whole[:place] + bytes([whole[place] ^ 16]) + whole[place + 1 :]
    for length in range(0, len(whole), 100):
        yield whole[:length]
    yield bytes(len(whole))


def test_what_is_kept_is_read_again(store: Store) -> None:
    assert repr(store.row(CELL)) == repr(ROW)
    assert store.jobs(CELL).end_time.tolist() == JOBS.end_time.tolist()
    assert store.row(replace(CELL, seed=1)) is None


@pytest.mark.parametrize("part", ["cells", "jobs"])
def test_a_damaged_file_is_none_and_never_another_number(store: Store, part: str) -> None:
    (path,) = (store.folder / part).iterdir()
    whole, taken = path.read_bytes(), 0
    for contents in damaged(path):
        path.write_bytes(contents)
        assert repr(store.row(CELL)) in ("None", repr(ROW))  # a bit of what says nothing may well be another
        taken += store.row(CELL) is not None
    assert taken < len(whole) / 2
    path.write_bytes(b"")
    assert store.row(CELL) is None


def test_the_file_of_another_cell_is_none(store: Store) -> None:
    other = replace(CELL, seed=1)
    for part in ("cells", "jobs"):
        (store.folder / part / f"{CELL.digest}.parquet").rename(store.folder / part / f"{other.digest}.parquet")
    assert store.row(other) is None


def test_jobs_that_were_damaged_meanwhile_are_one_line(store: Store) -> None:
    (path,) = (store.folder / "jobs").iterdir()
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(OutputError, match=r"parquet: missing or damaged; run the same command again to write it"):
        store.jobs(CELL)


def test_a_worker_of_another_version_carries_nothing_out(monkeypatch: pytest.MonkeyPatch) -> None:
    assert replace(CELL).digest == CELL.digest
    monkeypatch.setattr("shadowtime.replayer.campaign.grid.__version__", "0.0.1")
    with pytest.raises(ReplayError, match="small, easy, seed 0: this worker has another version of Shadowtime"):
        carry_out_cell(CELL)
