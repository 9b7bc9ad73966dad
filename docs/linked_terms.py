"""Links the first use of each term on a page to its row of the glossary, as the site is built."""

import posixpath
import re
from functools import cache
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.pages import Page

GLOSSARY = Path(__file__).with_name("glossary.md")
EVERYDAY = {
    *("job", "wait", "run", "pass", "event", "life", "turn", "head", "policy", "cluster", "member"),
    *("emit", "report", "draw", "commit", "order"),
}
"""Terms that are also words of every other sentence, or that a reader of these pages knows."""
ROW = re.compile(r"^\| (?!Term)(?!-)([^|]+?) \|", re.MULTILINE)
OPAQUE = re.compile(r"(`[^`]*`|!?\[[^\]]*\]\([^)]*\)|<[^>]*>|\*\*[^*]*\*\*)", re.DOTALL)
"""Code, links, HTML and bold text within a paragraph. They get no links."""


def anchor(term: str) -> str:
    """Return the anchor of a row.

    >>> anchor("Standard Workload Format")
    'standard-workload-format'
    """
    return re.sub(r"\W+", "-", term.lower()).strip("-")


@cache
def terms() -> dict[str, str]:
    """Return the anchor of each term, the longest terms first."""
    rows = ROW.findall(GLOSSARY.read_text())
    named = {term: anchor(row) for row in rows for term in row.split(", ") if term not in EVERYDAY}
    return dict(sorted(named.items(), key=lambda item: -len(item[0])))


def is_prose(block: str) -> bool:
    """Return whether a block of Markdown is a paragraph or a list."""
    return not block.startswith(("#", "|", "```", "    ", "<", "!["))


def link_terms(markdown: str, glossary: str) -> str:
    """Return a page whose paragraphs link each term once, where it is first used.

    >>> link_terms("A quantile, a `quantile`, a quantile.", "glossary.md")
    'A [quantile](glossary.md#quantile), a `quantile`, a quantile.'
    """
    left = terms().copy()
    pages = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    for number in range(0, len(pages), 2):
        blocks = pages[number].split("\n\n")
        pages[number] = "\n\n".join(
            _linked(block, glossary, left) if is_prose(block.lstrip("\n")) else block for block in blocks
        )
    return "".join(pages)


def _linked(block: str, glossary: str, left: dict[str, str]) -> str:
    for term, at in list(left.items()):
        words = r"\s".join(map(re.escape, term.split()))
        is_code = term.startswith("`")
        word = re.compile(f"^{words}$" if is_code else rf"(?<![\w-]){words}s?(?![\w-])", re.IGNORECASE)
        parts = OPAQUE.split(block)
        for index in range(1 if is_code else 0, len(parts), 2):
            parts[index], count = word.subn(lambda use: f"[{use[0]}]({glossary}#{at})", parts[index], count=1)  # noqa: B023
            if count:
                del left[term]
                block = "".join(parts)
                break

    return block


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Link terms; on the glossary itself, give each row its anchor."""
    if page.file.src_uri == "glossary.md":
        return ROW.sub(lambda row: f'| <a id="{anchor(row[1])}"></a>{row[1]} |', markdown)
    return link_terms(markdown, posixpath.relpath("glossary.md", posixpath.dirname(page.file.src_uri) or "."))
