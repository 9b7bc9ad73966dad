"""`shadowtime check --describe` has the figures by which papers describe a log."""

import orjson
import pytest

from shadowtime.replayer.commands.check import check
from shadowtime.replayer.logs.trace import BUNDLED


def test_the_description_is_a_table_and_part_of_the_document(capsys: pytest.CaptureFixture[str]) -> None:
    check(str(BUNDLED), describe=True)
    lines = capsys.readouterr().out.splitlines()
    head = next(line.split() for line in lines if line.split()[-4:] == ["SN", "SW", "LN", "LW"])
    counts = next(line.replace(",", "").split()[1:] for line in lines if line.startswith("jobs"))
    assert head[:2] == ["all", "jobs"]
    assert int(counts[0]) == sum(map(int, counts[1:])) == 5000
    check(str(BUNDLED), describe=True, as_json=True)
    described = orjson.loads(capsys.readouterr().out)["described"]
    assert (described["jobs"], described["jobs_of_shape.SN"]) == (5000, int(counts[1]))


def test_nothing_is_described_without_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    check(str(BUNDLED), as_json=True)
    assert "described" not in orjson.loads(capsys.readouterr().out)
