"""The widget for portals, run by Node with as much of a document as it needs."""

import os
import re
import shutil
import subprocess
from typing import Any

import orjson
import pytest

from shadowtime.shared.cli.paths import ROOT

WIDGET = ROOT / "stack/portal/shadowtime-queue.html"
DOCUMENT = """
class Element {
  constructor() { this.children = []; this.dataset = {url: "http://live"}; this.textContent = ""; }
  appendChild(child) { this.children.push(child); return child; }
  replaceChildren() { this.children = []; }
  get texts() { return [String(this.textContent), ...this.children.flatMap((child) => child.texts)].filter(Boolean); }
}
const place = new Element();
globalThis.document = {createElement: () => new Element(), querySelectorAll: () => [place]};
globalThis.setInterval = () => {};
globalThis.fetch = async () => ({ok: true, json: async () => (ANSWER)});
"""


def shown(*rows: dict[str, Any]) -> list[str]:
    """Return the texts of the table below its heading, of an answer at second 1,000."""
    if shutil.which("node") is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)("node is not on PATH")
    job = {"job": "7", "processors": 4, "waited": 60, "text": "", "reason": "", "end": None, "predicted": False}
    answer = {"time": 1_000, "more": False, "rows": [job | row for row in rows]}
    (script,) = re.findall(r"<script>(.*)</script>", WIDGET.read_text(), re.DOTALL)
    document = DOCUMENT.replace("ANSWER", orjson.dumps(answer).decode())
    told = "setTimeout(() => console.log(JSON.stringify(place.texts)), 10);"
    done = subprocess.run(["node", "--eval", document + script + told], check=True, capture_output=True)
    texts: list[str] = orjson.loads(done.stdout)
    return texts[5:-1]


@pytest.mark.parametrize(
    ("row", "texts"),
    [
        ({"state": "waiting", "text": "in 5 min", "reason": "No room."}, ["in 5 min", "No room."]),
        ({"state": "waiting", "reason": "It starts now."}, ["It starts now."]),
        ({"state": "waiting"}, ["not known"]),
        ({"state": "running", "end": 4_600, "predicted": True}, ["ends in about 60 min"]),
        ({"state": "running", "end": 4_600}, ["ends within 60 min, by its limit"]),
        ({"state": "running", "end": 900}, ["its limit has passed"]),
        ({"state": "suspended"}, []),
    ],
)  # fmt: skip
def test_a_row_says_no_more_than_is_known(row: dict[str, Any], texts: list[str]) -> None:
    """A job that starts now was "not known" to start, and one that may run to its limit "ends in about" that."""
    assert shown(row) == ["7", row["state"], "4", "1 min", *texts]
