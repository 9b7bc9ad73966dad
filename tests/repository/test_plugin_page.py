"""The classes and modules that the page on plug-ins shows, beside its template, do what the page says."""

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

import shadowtime
from shadowtime.shared.accounting import Reading
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages import RunTimePrediction, WaitBound, WalltimeAdjustment

PAGE = (ROOT / "docs" / "plugins.md").read_text()


def block(word: str) -> dict[str, Any]:
    """Return the names of the only block of code with a word."""
    (code,) = [code for code in re.findall(r"```py\n(.*?)```", PAGE, re.DOTALL) if word in code]
    names: dict[str, Any] = {}
    exec(code, names)
    return names


LONGEST = block("LongestFirst")["LongestFirst"]


def test_the_policy_serves_the_longest_candidate_first(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    jobs = [(0, 100, 4), (1, 100, 8), (2, 30, 4), (2, 90, 4)]  # a blocker, the head, and two that fit before it
    rows = [f"{submit},{submit},{submit + time},{cores},{time}" for submit, time, cores in jobs]
    path.write_text("\n".join(["submit,start,end,processors,limit", *rows]) + "\n")
    log = shadowtime.read_log(path, 8)
    waits = {policy: shadowtime.replay(log, policy).jobs["wait"].tolist() for policy in ("easy", LONGEST)}
    assert waits == {"easy": [0, 99, 0, 198], LONGEST: [0, 99, 198, 0]}


def test_the_log_format_reads_its_file_and_leaves_out_a_damaged_row(tmp_path: Path) -> None:
    own = SimpleNamespace(**block("our scheduler"))
    path = tmp_path / "ours.log"
    path.write_text(
        "id user submit start end cores limit\n1 eve 0 5 65 4 90\n2 bob x 5 65 4 90\n\n3 eve 10 70 80 2 60\n"
    )
    assert own.begins(path.read_bytes()[:200])
    rows = own.read(path, Reading())
    assert rows.column("job_number").tolist() == [1, 3]
    assert np.array_equal(rows.column("limit"), [90, 60])
    assert rows.odd.count == 1


@pytest.mark.parametrize("returned", [RunTimePrediction, WalltimeAdjustment, WaitBound])
def test_the_fields_that_a_plug_in_must_fill_in_are_named(returned: type[BaseModel]) -> None:
    items = re.split(r"^\* |\n\n", PAGE, flags=re.MULTILINE)
    (item,) = (item for item in items if re.match(rf"An? \*\w+\* returns .*`{returned.__name__}`", item))
    for name, field in returned.model_fields.items():
        assert not field.is_required() or f"`{name}`" in item
