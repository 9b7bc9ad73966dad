"""The glossary and the code use the same words: names that it lists exist, names that it rules out do not."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache

from shadowtime.shared.cli.paths import ROOT
from tests.repository.tree import PRODUCT, files, name, nodes

PATHS = [*files(*PRODUCT, "stack", "docs"), *files("shadowtime/testing")]
PAGE = ROOT / "docs" / "glossary.md"
ON_THE_WIRE = {"told": 2, "said": 2}
"""How often a message or a score has a field that is ruled out: `DriftEpisode`, `Ahead`, two kinds of scores."""


def rows() -> list[list[str]]:
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if not line.startswith("| Term")]


def named(cell: str) -> list[str]:
    return re.findall(r"`(\w+)`", cell)


def defined(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node gives to something."""
    match node:
        case ast.Name(id=given, ctx=ast.Store()) | ast.Attribute(attr=given, ctx=ast.Store()) | ast.arg(arg=given):
            yield given
        case ast.FunctionDef(name=given) | ast.AsyncFunctionDef(name=given) | ast.ClassDef(name=given):
            yield given


@cache
def identifiers() -> list[tuple[str, str]]:
    """Return every name that the product defines, with its file."""
    return [(each, name(path)) for path in PATHS for node in nodes(path) for each in defined(node)]


def test_a_term_has_a_meaning_and_stands_once() -> None:
    terms = [row[0] for row in rows()]
    assert len(terms) == len(set(terms)) >= 40
    assert all(len(row) == 4 and row[1].endswith(".") for row in rows())


def test_names_of_terms_exist() -> None:
    known = {each for each, _ in identifiers()} | {path.stem for path in PATHS}
    assert {each for row in rows() for each in named(row[2])} - known == set()


def test_names_that_are_ruled_out_do_not_exist() -> None:
    last = PAGE.read_text().split("Two more words")[1]
    ruled_out = {each for row in rows() for each in named(row[3])} | set(named(last))
    assert {"each", "found", "given", "told", "coming"} <= ruled_out
    used = [(each, path) for each, path in identifiers() if each.strip("_").lower() in ruled_out]
    messages = Counter(each for each, path in used if path.startswith("shared/messages/"))
    assert messages == ON_THE_WIRE
    assert [(each, path) for each, path in used if not path.startswith("shared/messages/")] == []


def test_scripts_have_no_such_names_either() -> None:
    """Outside comments and texts in double quotes; in templates, only what is calculated."""
    words = re.compile(r"\b(each|found|given|told|said|coming)\b")
    scripts = [
        *(ROOT / "services/processes/live/assets").glob("*.js"),
        *(ROOT / "stack").glob("**/*.lua"),
        *(ROOT / "stack/portal").glob("*.html"),
    ]
    assert len(scripts) >= 10
    for path in scripts:
        code = re.sub(r"^\s*(//|--).*|\s(//|-- ).*|\"[^\"]*\"|<!--.*?-->", "", path.read_text(), flags=re.MULTILINE)
        assert [line for line in code.splitlines() if words.search(line)] == [], path
