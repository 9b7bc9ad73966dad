"""On the site, a page links each term of the glossary where it first uses it in a paragraph."""

import importlib
import re
import sys
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT

pytest.importorskip("mkdocs")
sys.path.append(str(ROOT / "docs"))
linked_terms = importlib.import_module("linked_terms")

PAGE = """# A quantile

A [bound](bounds.md) and `coverage`, `best` and the best; **quantile**
of a confidence
interval. Bounds, bounds.

```text
histogram
```

| histogram |
|---|
"""
LINKED = """# A quantile

A [bound](bounds.md) and `coverage`, [`best`](../glossary.md#best) and the best; **quantile**
of a [confidence
interval](../glossary.md#confidence-interval). [Bounds](../glossary.md#bound), bounds.

```text
histogram
```

| histogram |
|---|
"""


def test_the_first_use_in_prose_is_linked() -> None:
    assert linked_terms.link_terms(PAGE, "../glossary.md") == LINKED


@pytest.mark.parametrize("page", sorted((ROOT / "docs").glob("*.md")), ids=lambda path: path.name)
def test_a_page_says_the_same_with_links(page: Path) -> None:
    text = page.read_text()
    links = r"\[([^][]*)\]\(glossary\.md#[\w-]+\)"
    linked = linked_terms.link_terms(text, "glossary.md")
    assert re.sub(links, r"\1", linked) == re.sub(links, r"\1", text)
