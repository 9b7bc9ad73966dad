"""Files of the tree, their names and what is written in them."""

import ast
from functools import cache
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.lazy import syntax_tree

PRODUCT = ("services", "shared", "replayer", "dashboards")


def files(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found
    return found


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return syntax_tree(path.read_text())


@cache
def nodes(path: Path) -> list[ast.AST]:
    """Return every node of the syntax tree of a file."""
    return list(ast.walk(parsed(path)))
