"""docs/stability.md names what is public."""

import re

import shadowtime
from shadowtime.shared.cli.paths import ROOT

PAGE = (ROOT / "docs" / "stability.md").read_text()


def test_it_names_the_whole_python_interface() -> None:
    assert set(re.findall(r"`shadowtime\.(\w+)`", PAGE)) == {*shadowtime.__all__, "testing"}
