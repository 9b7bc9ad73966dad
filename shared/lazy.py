"""Packages that import a module when one of its names is first used, so that a command loads only what it needs."""

import ast
import gc
import sys
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any


def lazy_exports(package: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a package that lists its exports under `if TYPE_CHECKING`.

    The `TYPE_CHECKING` block is parsed at the first use of any export. A module is imported at the first use of one of
    its names.

    Parameters
    ----------
    package
        The package's `__name__`.
    """

    @cache
    def homes() -> dict[str, str]:
        with open(str(sys.modules[package].__file__), "rb") as file:  # importing `pathlib` would take 5 ms
            body = syntax_tree(file.read()).body
        blocks = (block for block in body if isinstance(block, ast.If))
        imports = (line for block in blocks for line in block.body if isinstance(line, ast.ImportFrom))
        return {alias.name: str(line.module) for line in imports for alias in line.names}

    def __getattr__(name: str) -> Any:  # noqa: N807 - Python's own name
        module = homes().get(name)
        if module is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = import_module(f"{package}.{name}") if module == package else getattr(import_module(module), name)
        setattr(sys.modules[package], name, value)  # so that Python does not call this function again for the name
        return value

    return __getattr__


def syntax_tree(source: str | bytes) -> ast.Module:
    """Return the syntax tree of Python source, while no garbage is collected.

    Python 3.11 keeps the depth of all trees that are being built in one place (CPython issue 106905). `ast.parse` fails
    with `SystemError` if a collection runs a finaliser, or lets another thread go on, that parses, too.
    """
    collects = gc.isenabled()
    gc.disable()
    try:
        return ast.parse(source)
    finally:
        if collects:
            gc.enable()
