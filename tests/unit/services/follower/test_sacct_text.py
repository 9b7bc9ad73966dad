"""Tests of rows of sacct: no job name forges one, and a row that cannot be read stops nothing."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from shadowtime.services.follower.cluster.accounted_lives import observations_of_rows
from shadowtime.services.follower.slurm import sacct_text
from shadowtime.services.follower.slurm.sacct_text import rows_in
from shadowtime.shared.accounting.slurm.head import FIELDS
from shadowtime.shared.errors import FollowError
from tests.unit.services.follower.slurm_texts import row

END = "|4f1c8a|"
OVER = ("COMPLETED", "1795721000", "1795721000", "1795721001", "1795721031", "30")
HOSTILE = (
    "new\n99999|99999|COMPLETED|1|1|1|1",
    "x\nfoo|bar",
    "x\n12345",
    "forged\n" + "|".join(row("70000001", *OVER)),
    "\x1b[2J\r\ttab",
)


def printed(*rows: Sequence[str]) -> str:
    return "".join("".join(field + END for field in fields) + "\n" for fields in (FIELDS, *rows))


def read(folder: Path, text: str) -> list[list[str]]:
    (folder / "out").write_text(text, newline="\n")
    return list(rows_in(folder / "out", END))


@pytest.mark.parametrize("chunk", [1, 7, 2**20])
def test_a_name_makes_no_row(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(sacct_text, "CHUNK", chunk)
    jobs = [[*row(str(number), *OVER)[:-1], name] for number, name in enumerate(HOSTILE, 1)]
    rows = read(tmp_path, printed(*jobs))
    assert [fields[-1] for fields in rows] == ["new", "x", "x", "forged", "\x1b[2J"]
    observations, refused = observations_of_rows(rows, "sacct")
    assert ([each.key.job for each in observations], refused) == ([1, 2, 3, 4, 5], 0)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (printed(row("1", *OVER))[:-20], "cut off"),
        (printed(row("1", *OVER)).replace("JobIDRaw", "JobId"), "expected the fields JobIDRaw"),
        ("sacct: nothing\n", r"found 0 fields at the end, then 'sacct: nothing\\n'; its output is cut off"),
    ],
)
def test_output_that_is_not_whole_is_refused(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(FollowError, match=told):
        read(tmp_path, text)
    assert read(tmp_path, printed()) == read(tmp_path, "") == []


def test_a_row_that_cannot_be_read_is_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    good = [row(str(number), *OVER) for number in range(1, 30)]
    bad = row("30", "COMPLETED", "yesterday", *OVER[2:])
    observations, refused = observations_of_rows([*good[:10], bad, *good[10:]], "sacct")
    assert (len(observations), refused) == (29, 1)
    assert "Submit 'yesterday' is not a time" in caplog.text
    with pytest.raises(FollowError, match="30 of 30 rows cannot be read"):
        observations_of_rows([bad] * 30, "sacct")


def test_jobs_of_a_federation_are_not_mixed_up_with_later_lives() -> None:
    """Job 2^27 of the second cluster had the number of the second life of job 34,217,728."""
    local, of_second = "34217728", str(2**27)
    later = ("COMPLETED", "1795722000", "1795722000", "1795722001", "1795722031", "30")
    rows = [row(local, *OVER), row(local, *later), row(of_second, *OVER), row(f"{of_second}_7", *later)]
    observations, _ = observations_of_rows(rows, "sacct")
    assert [each.key[:2] for each in observations] == [
        (34217728, -1), (34217728, -1), (2**27, -1), (2**27, 7),
    ]  # fmt: skip
