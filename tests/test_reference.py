"""The pages of docs/reference/ are what the code says today."""

import runpy

import pytest

from shadowtime.shared.paths import ROOT

PAGES: dict[str, str] = runpy.run_path(str(ROOT / "docs" / "generate.py"))["pages"]()


@pytest.mark.parametrize("name", PAGES)
def test_a_page_of_the_reference_is_as_generated(name: str) -> None:
    assert (ROOT / "docs" / "reference" / name).read_text() == PAGES[name], "run: .venv/bin/python docs/generate.py"


def test_there_are_no_other_pages() -> None:
    assert {path.name for path in (ROOT / "docs" / "reference").iterdir()} == set(PAGES)
