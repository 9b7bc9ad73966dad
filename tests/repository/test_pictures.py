"""The pictures of README and docs show the code as it is."""

import json
import re

import pytest

from shadowtime.shared.cli.paths import ROOT
from tests.support.pictures import MADE_OF, PICTURES, SHOWN, made_of

HEAVY = 400_000
"""Bytes from which on a picture is too heavy for a page."""


@pytest.mark.parametrize("name", SHOWN)
def test_it_is_of_the_code_that_it_shows(name: str) -> None:
    assert json.loads(MADE_OF.read_text())[name] == made_of(name), "run: make pictures, and look at them"


@pytest.mark.parametrize("name", SHOWN)
def test_a_page_can_carry_it(name: str) -> None:
    assert 0 < (PICTURES / name).stat().st_size < HEAVY


def test_no_other_picture_is_kept() -> None:
    assert {path.name for path in PICTURES.iterdir()} == {*SHOWN, MADE_OF.name}


def test_readme_or_docs_show_each() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    text = "".join(page.read_text() for page in pages)
    assert set(re.findall(r"!\[[^]]+\]\((?:docs/)?pictures/([\w.-]+)\)", text)) == set(SHOWN)
