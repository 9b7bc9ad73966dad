"""A report by the command line is that of the library."""

import hashlib
from pathlib import Path

import orjson

from shadowtime.replayer.report.tables import COLUMNS
from tests.support.forked import run_forked
from tests.support.report_page import tables


def test_the_command_line_writes_the_same_figures_and_digests(tmp_path: Path) -> None:
    names = {name: tmp_path / name for name in ("r.html", "r.json", "d.jsonl")}
    options = ["--report", names["r.html"], "--json", names["r.json"], "--decisions", names["d.jsonl"], "--jobs", "200"]
    run_forked("replay", "--policy", "easy", *options).check_returncode()
    html, told = names["r.html"].read_text(), orjson.loads(names["r.json"].read_bytes())
    (values,) = tables(html)["Scores of each policy"].values()
    assert [float(value) for value in values] == [told["policies"][0][key] for key in COLUMNS]
    assert hashlib.sha256(names["d.jsonl"].read_bytes()).hexdigest() in html
    assert f"seed {told['settings']['seed']}." in html
    assert "numpy " in html
