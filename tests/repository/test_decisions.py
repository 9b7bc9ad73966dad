"""Pages of decisions have the same form, and the index has them all."""

import re
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT

FOLDER = ROOT / "docs" / "decisions"
PAGES = sorted(path for path in FOLDER.glob("*.md") if path.name != "index.md")


def test_numbers_have_no_gap() -> None:
    assert PAGES
    numbers = [re.match(r"(\d{4})-[a-z-]+\.md$", path.name) for path in PAGES]
    assert [found and int(found[1]) for found in numbers] == list(range(1, len(PAGES) + 1))


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.stem)
def test_a_page_has_context_decision_and_price(page: Path) -> None:
    assert re.findall("^## (.*)", page.read_text(), re.MULTILINE) == ["Context", "Decision", "Price"]


def test_index_and_navigation_have_every_page_in_order() -> None:
    names = [path.name for path in PAGES]
    assert re.findall(r"^\| \[[^]]+\]\((.+?)\) \|", (FOLDER / "index.md").read_text(), re.MULTILINE) == names
    listed = re.findall(r"decisions/(.+\.md)", (ROOT / "mkdocs.yml").read_text())
    assert listed == ["index.md", *names]
