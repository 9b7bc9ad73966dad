"""Packages that import a module when one of its names is first used."""

import ast
import gc
from typing import Any

from shadowtime.shared.lazy import syntax_tree

SOURCE = "def even(n):\n    return [(n, 2), {3: 4}]\n" * 50


def test_a_collection_of_garbage_that_parses_disturbs_no_syntax_tree() -> None:
    # With `ast.parse` alone, Python 3.11 raises "AST constructor recursion depth mismatch" here.
    def parse_another(_phase: str, _info: Any) -> None:
        ast.parse("x = 1")

    threshold = gc.get_threshold()
    gc.callbacks.append(parse_another)
    gc.set_threshold(10)
    try:
        tree = syntax_tree(SOURCE)
    finally:
        gc.set_threshold(*threshold)
        gc.callbacks.remove(parse_another)
    assert len(tree.body) == 50
    assert gc.isenabled()
