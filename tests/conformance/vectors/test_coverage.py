"""Every worked example is tested, or waits by name for the issue that brings its algorithm."""

import ast
from pathlib import Path

from shadowtime.shared.lazy import syntax_tree
from tests.conformance.vectors.vector import vectors

TESTS = Path(__file__).parents[2]

PENDING: dict[str, str] = {}
"""Vectors whose algorithm is not there yet, and the issue that brings it."""


def covered() -> set[str]:
    """Return the keys that any test asks for by name."""
    keys = set()
    for path in TESTS.rglob("test_*.py"):
        for node in ast.walk(syntax_tree(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id == "vector"
                and isinstance(node.args[0], ast.Constant)
            ):
                keys.add(str(node.args[0].value))
    return keys


def test_every_vector_is_covered_or_pending() -> None:
    assert set(vectors()) == covered() | set(PENDING)


def test_no_vector_is_both() -> None:
    assert not covered() & set(PENDING)


def test_there_are_as_many_vectors_as_the_specification_says() -> None:
    assert len(vectors()) == 49
