"""Docstrings begin with a noun or a verb, and name the errors that a function raises."""

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from functools import cache

import pytest

from shadowtime.shared.lazy import syntax_tree
from tests.repository.tree import PRODUCT, files, name, nodes

PATHS = [*files(*PRODUCT, "stack", "docs"), *files("shadowtime/testing")]
Function = ast.FunctionDef | ast.AsyncFunctionDef
NOT_FOR_CALLERS = {"AssertionError", "typer.Exit"}
"""A case that cannot happen, and the exit status of a command."""


def test_docstrings_begin_with_a_noun_or_a_verb() -> None:
    """Not with a clause: `What …`, `Who …`, `Whose …`."""
    clauses = [
        f"{name(path)}:{node.lineno}"
        for path in PATHS
        for node in nodes(path)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        if re.match(r"(What|Whatever|Who|Whom|Whose|Whoever|Which)\b", node.value.value)
    ]
    assert clauses == []


def catches(handlers: Iterable[ast.ExceptHandler], error: str) -> bool:
    """Return whether a handler catches an error, and raises nothing itself."""
    for handler in handlers:
        caught = set(re.findall(r"\w+", ast.unparse(handler.type))) if handler.type else {"Exception"}
        if caught & {error, "Exception", "BaseException"}:
            return not any(isinstance(node, ast.Raise) for node in ast.walk(handler))
    return False


def raised(statements: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the errors that statements make and raise: `raise X(…)`. Nested functions are left out."""
    for node in statements:
        if isinstance(node, Function | ast.ClassDef | ast.Lambda):
            continue
        if isinstance(node, ast.Try):
            yield from (error for error in raised(node.body) if not catches(node.handlers, error))
            yield from raised([*node.handlers, *node.orelse, *node.finalbody])
            continue
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield ast.unparse(node.exc.func)
        yield from raised(ast.iter_child_nodes(node))


def commands(tree: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the commands of a module. Their docstrings are help texts."""
    for node in tree:
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "application":
            yield from (ast.unparse(argument) for argument in node.args)
        if isinstance(node, Function):
            for decorator in node.decorator_list:
                if ast.unparse(decorator).partition("(")[0].endswith(".command"):
                    yield node.name


@cache
def bases() -> dict[str, set[str]]:
    """Return the names of the direct base classes of each class."""
    classes = [node for path in PATHS for node in nodes(path) if isinstance(node, ast.ClassDef)]
    own = {node.name: {ast.unparse(base) for base in node.bases} for node in classes}
    known = [error for error in vars(builtins).values() if isinstance(error, type) and issubclass(error, Exception)]
    return {error.__name__: {base.__name__ for base in error.__bases__} for error in known} | own


def with_bases(error: str) -> set[str]:
    """Return the names of an error and of all its base classes but `Exception`."""
    return {error}.union(*(with_bases(base) for base in bases().get(error, ()) if base not in ("Exception", "object")))


def unnamed(tree: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the public functions whose docstring names neither an error that they raise nor its base, with the error.

    The class of an error that a function such as `self._damaged` makes is not known: any error in the docstring
    suffices.
    """
    tree = list(tree)
    helped = set(commands(tree))
    for node in tree:
        if not isinstance(node, Function) or node.name.startswith("_") or node.name in helped:
            continue
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        words = set(re.findall(r"\w+", docstring)) if re.search(r"\braises?\b", docstring, re.IGNORECASE) else set()
        for error in sorted(set(raised(node.body)) - NOT_FOR_CALLERS):
            if not words & with_bases(error) if error[0].isupper() else not words:
                yield f"{node.lineno}: {node.name}: {error}"


@pytest.mark.parametrize(
    ("body", "errors"),
    [
        ('"""Return it. Raise `ValueError` if it is odd."""\n    raise ValueError("odd")', []),
        ('"""Return it."""\n    raise ValueError("odd")', ["ValueError"]),
        ('"""Return it. Raise `OSError` if it is odd."""\n    raise ValueError("odd")', ["ValueError"]),
        ('"""Return it. Raise `OSError` if it is odd."""\n    raise FileNotFoundError("odd")', []),
        ('"""Return it."""\n    raise self._odd("odd")', ["self._odd"]),
        ('"""Return it."""\n    raise AssertionError("odd")', []),
        ('"""Return it."""\n    try:\n        raise ValueError("odd")\n    except ValueError:\n        pass', []),
        (
            '"""Return it."""\n    try:\n        pass\n    except ValueError:\n        raise OSError("odd")',
            ["OSError"],
        ),
        ('"""Return it."""\n    def inner():\n        raise ValueError("odd")', []),
    ],
)
def test_an_error_that_is_not_named_is_seen(body: str, errors: list[str]) -> None:
    tree = ast.walk(syntax_tree(f"def even():\n    {body}\n"))
    assert [line.rpartition(": ")[2] for line in unnamed(tree)] == errors


def test_a_command_names_no_errors() -> None:
    command = '"""Print it."""\n    raise ValueError("odd")\n'
    assert list(unnamed(ast.walk(syntax_tree(f"@app.command()\ndef even():\n    {command}")))) == []
    assert list(unnamed(ast.walk(syntax_tree(f"def even():\n    {command}app = application(even)\n")))) == []


def test_docstrings_name_the_errors_that_functions_raise() -> None:
    """In a sentence, or in a section `Raises`."""
    assert [f"{name(path)}:{line}" for path in PATHS for line in unnamed(nodes(path))] == []
