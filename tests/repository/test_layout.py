"""The rules of the tests' own tree: helpers are no test modules, unit tests start no process and need no server."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from tests.repository.tree import files, name, parsed

STARTS_PROCESSES = {"subprocess", "multiprocessing", "pty"}
FIXTURES_OF_SERVERS = "tests.support.real_servers"
NEED_MORE = (FIXTURES_OF_SERVERS, "tests.support.browser", "tests.support.forked")

FILES = frozenset(files("tests", "docs"))
UNIT = [path for path in sorted(FILES) if path.is_relative_to(ROOT / "tests" / "unit")]


def imported(tree: ast.AST) -> Iterator[str]:
    """Yield the full name of every module, and of every name in one, that is imported."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def told(tree: ast.AST) -> Iterator[str]:
    """Yield the modules of tests that strings name: programs for other processes import, too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from re.findall(r"\btests(?:\.\w+)+", node.value)


def module(dotted: str) -> Path | None:
    """Return the file of a module of tests, or of the one that a name is in."""
    for inner in (dotted, dotted.rpartition(".")[0]):
        path = ROOT / f"{inner.replace('.', '/')}.py"
        if path in FILES:
            return path
    return None


@cache
def reached(path: Path) -> frozenset[Path]:
    """Return the modules of tests that a module imports, itself and by others, and the module."""
    found, todo = {path}, [path]
    while todo:
        for each in imported(parsed(todo.pop())):
            other = module(each) if each.startswith("tests.") else None
            if other is not None and other not in found:
                found.add(other)
                todo.append(other)
    return frozenset(found)


def is_fixture(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any("fixture" in ast.unparse(each) for each in node.decorator_list)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef))


def fixtures_used(tree: ast.AST) -> set[str]:
    """Return the fixtures that tests and fixtures ask for, and are not made beside them."""
    used: set[str] = set()
    for function in functions(tree):
        if function.name.startswith("test_") or is_fixture(function):
            used |= {each.arg for each in function.args.args + function.args.kwonlyargs}
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("usefixtures", "getfixturevalue")):
            used |= {each.value for each in node.args if isinstance(each, ast.Constant) and isinstance(each.value, str)}
    return used - {each.name for each in functions(tree) if is_fixture(each)}


def test_no_module_imports_a_test_module() -> None:
    for path in sorted(FILES):
        found = {each for each in (*imported(parsed(path)), *told(parsed(path))) if re.match(r"tests\b.*\.test_", each)}
        assert not found, f"{name(path)} imports {found}: move it to a helper"


def test_a_unit_test_starts_no_process() -> None:
    for path in UNIT:
        for each in reached(path):
            found = {one.partition(".")[0] for one in imported(parsed(each))} & STARTS_PROCESSES
            assert not found, f"{name(path)} comes by {name(each)} to {found}: it belongs in tests/integration"


def test_a_unit_test_needs_no_server() -> None:
    servers = module(FIXTURES_OF_SERVERS)
    assert servers is not None
    fixtures = {each.name for each in functions(parsed(servers)) if is_fixture(each)}
    assert {"kafka", "redis_server", "victoria_metrics"} <= fixtures
    for path in UNIT:
        helpers = {each for each in NEED_MORE if module(each) in reached(path)}
        assert not helpers, f"{name(path)} comes to {helpers}: it belongs in tests/integration"
        found = fixtures_used(parsed(path)) & fixtures
        assert not found, f"{name(path)} uses {found}: it belongs in tests/integration"
