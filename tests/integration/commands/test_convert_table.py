"""Tables that `convert` writes."""

from pathlib import Path

from shadowtime.replayer.api.api import read_log
from shadowtime.replayer.logs.trace import BUNDLED
from tests.integration.commands.converted import convert


def test_what_convert_has_written_is_read_without_a_mapping(tmp_path: Path) -> None:
    assert convert(BUNDLED, tmp_path / "out.csv", "--jobs", 50)[0] == 0
    ours, theirs = read_log(jobs=50), read_log(tmp_path / "out.csv", 128)
    for column in ("submit_time", "wait_time", "run_time", "requested_time", "processors", "status"):
        assert (theirs.columns[column] == ours.columns[column]).all(), column
