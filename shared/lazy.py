"""Faces that import a module as one of its names is first asked for, so that a command loads no more than it uses."""

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any


def lazy_exports(
    package: str, exports: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package whose `__init__` exports names of its modules.

    Parameters
    ----------
    package
        The package's `__name__`.
    exports
        The names that each module exports.
    modules
        Modules that are exported as a whole.
    """
    homes = {name: module for module, names in exports.items() for name in names}

    def __getattr__(name: str) -> Any:  # noqa: N807 - what Python calls it
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)  # found at once the next time
        return value

    return __getattr__
