"""What code, tests and docs cite is in the project: headings of its docs, and papers that these list."""

import ast
import re
import unicodedata
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.services.catalogue import REGISTRIES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.lazy import syntax_tree

FOLDERS = ("services", "shared", "replayer", "dashboards", "stack", "tests", "docs")
ALGORITHMS = (ROOT / "docs/algorithms.md").read_text()

MONTH = "(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]*"
SHORT = re.compile(rf"\b(?!{MONTH}\b)([A-Z][\w'-]+ (?:19|20)\d\d[a-z]?)\b")
"""How a paper is cited: first author and year."""

OUTSIDE = (
    r"\b[Ss]pec(?:ification)? (?:G?\d|section)",
    r"\bP[0-5]\b(?!-(?:table|figure|section))",
    r"\.\./shared\b",
    r"\banchors,",
    r"\b(?:spec|anchors|orders|design|review|style|PAPERS)\.md\b",
    r"\bKTH-run\b",
)
"""How documents are named that are no part of the project."""


def texts() -> Iterator[tuple[Path, str]]:
    """Yield what may cite, each with its white space as single spaces: citations go over the ends of lines."""
    found = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in (".py", ".md")]
    found += [*ROOT.glob("*.md"), *ROOT.glob("*.toml"), ROOT / "Makefile"]
    for path in sorted(found):
        if path != Path(__file__):
            yield path, re.sub(r"\s+", " ", path.read_text())


TEXTS = dict(texts())


def slug(heading: str) -> str:
    """Return the anchor of a heading, as the extension `toc` of Python-Markdown makes it for MkDocs.

    >>> slug("The paper's `bound`: 2"), slug("Künsch  and more")
    ('the-papers-bound-2', 'kunsch-and-more')
    """
    letters = unicodedata.normalize("NFKD", heading).encode("ascii", "ignore").decode()
    return re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", letters).strip().lower())


def anchors(path: Path) -> list[str]:
    without_code = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    return [slug(heading) for heading in re.findall(r"^#+ (.*)$", without_code, re.MULTILINE)]


def test_cited_headings_exist() -> None:
    cited = {
        (path, ROOT / page, anchor)
        for path, text in TEXTS.items()
        for page, anchor in re.findall(r"\b(docs/[\w./-]+?\.md)(?:#([\w-]+))?", text)
    }
    cited |= {
        (path, path.parent / page if page else path, anchor)
        for path, text in TEXTS.items()
        if path.suffix == ".md"
        for page, anchor in re.findall(r"\]\(([\w./-]*\.md)?(?:#([\w-]+))?\)", text)
    }
    assert len(cited) > 100
    wrong = [each for each in cited if not each[1].is_file() or (each[2] and each[2] not in anchors(each[1]))]
    assert not wrong


def test_each_algorithm_has_an_anchor_of_its_own() -> None:
    found = anchors(ROOT / "docs/algorithms.md")
    assert len(found) == len(set(found))


@pytest.mark.parametrize("pattern", OUTSIDE)
def test_nothing_outside_the_project_is_cited(pattern: str) -> None:
    assert not {path: found for path, text in TEXTS.items() if (found := re.findall(pattern, text))}


def test_papers_are_cited_as_they_are_listed() -> None:
    rows = re.findall(r"^\| (?:p\d \| )?([^\W\d][\w' -]+[\d.]+[a-z]?) \| ", ALGORITHMS, re.MULTILINE)
    assert len(rows) == len(set(rows)) > 30
    elsewhere = " ".join(text for path, text in TEXTS.items() if path.name != "algorithms.md")
    entries = re.sub(r"^\|.*$", "", ALGORITHMS, flags=re.MULTILINE)
    assert not set(SHORT.findall(f"{elsewhere} {entries}")) - set(rows)
    assert not [each for each in rows if each not in elsewhere]


def test_everything_that_a_spec_can_name_has_its_place() -> None:
    """Not what a distribution, or an example of this process, has added."""
    registered = {
        f"{option}={name}"
        for option, registry in REGISTRIES.items()
        for name in set(registry.classes) - set(registry.classes.plugged_in())
    }
    described = set(re.findall(rf"`((?:{'|'.join(REGISTRIES)})=[\w-]+)`", ALGORITHMS))
    assert described == registered | {"policy=cautious"}


def test_files_of_algorithms_exist() -> None:
    first_lines = re.findall(r"^### .*\n(`.*)$", ALGORITHMS, re.MULTILINE)
    assert len(first_lines) == len(re.findall("^### ", ALGORITHMS, re.MULTILINE))
    for line in first_lines:
        folder, named = ROOT, re.findall(r"`([\w/]+\.py)`", line)
        assert named
        for each in named:
            path = (ROOT if "/" in each else folder) / each
            assert path.is_file(), line
            folder = path.parent


PHASED = re.compile(r"^ +# \d+\. ((?:.*[^.]\n +# )*.*\.)$", re.MULTILINE)
"""The heading of a phase of a long function: a sentence, perhaps over several lines."""


def test_phases_of_kernels_are_those_of_the_docs() -> None:
    blocks = re.findall(r"^Phases of `(\w+)`, numbered in the code:\n\n((?:\d+\. .*\n)+)", ALGORITHMS, re.MULTILINE)
    documented = {name: re.findall(r"^\d+\. (.*)$", block, re.MULTILINE) for name, block in blocks}
    phases: dict[str, list[str]] = {}
    for path in sorted((ROOT / "services").rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(syntax_tree(source)) if "# 1. " in source else ():
            if isinstance(node, ast.FunctionDef):
                found = PHASED.findall("\n".join(source.splitlines()[node.lineno : node.end_lineno]) + "\n")
                if found:
                    phases[node.name] = [re.sub(r"\n +# ", " ", each) for each in found]
    assert len(phases) >= 6
    assert phases == documented
