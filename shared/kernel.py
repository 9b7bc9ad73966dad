"""Hot loops, which numba compiles once into a cache on disk; numba itself is imported as the first is called."""

import gc
import os
import sys
import threading
from collections.abc import Callable
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def cache_folder() -> Path:
    """Return where compiled kernels are, in a folder for each installation, unless `NUMBA_CACHE_DIR` names another."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shadowtime" / "kernels"


class Kernel:
    """A pure function over arrays, compiled for the one signature that its annotations say.

    It is read from the cache as it is first called, by a process or by another kernel that is compiled, and compiled
    where the cache has none. A command needs few of a hundred, and none to say its first word.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        """As it was before it was compiled, for tests."""
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Return what the function does; raises `TypeError` for arguments of other types."""
        compiled = self._compiled
        return (self.load() if compiled is None else compiled)(*arguments)

    @property
    def loaded(self) -> bool:
        """Whether it has been."""
        return self._compiled is not None

    def load(self) -> Any:
        """Make it ready to be called, and return what is called in its place."""
        with _LOADING:
            if self._compiled is None:
                compiling = _compiling()
                self._compiled = compiling.compiled(self.py_func)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """What numba takes it for where another kernel calls it."""
        return self.load()._numba_type_

    def __reduce__(self) -> str:
        """Have a pickle say its name."""
        return self.py_func.__qualname__


def _compiling() -> ModuleType:
    """Return what compiles: numba is half of a short command's time.

    As at a start, the collector of garbage need not look through what stays.
    """
    if _COMPILING in sys.modules:
        return sys.modules[_COMPILING]
    collects = gc.isenabled()
    gc.disable()
    try:
        return import_module(_COMPILING)
    finally:
        gc.freeze()
        if collects:
            gc.enable()


_COMPILING = "shadowtime.shared.compiling"
_LOADING = threading.RLock()
MADE: list[Kernel] = []
INLINED: list[Callable[..., object]] = []
"""What kernels may call that numba has not been told of."""


def kernel(function: Function) -> Function:
    """Have a function compiled as it is first called: a `Kernel`.

    What it takes and returns are numbers, arrays of `shared.arrays`, and tuples of these, named ones too.
    """
    MADE.append(Kernel(function))
    return cast("Function", MADE[-1])


def inlined(function: Function) -> Function:
    """Let kernels call a small function, which is compiled into each of them; anybody else calls it as it is."""
    INLINED.append(function)
    return function


def load_all() -> None:
    """Load every kernel of the modules that are imported; compile what the cache lacks."""
    for each in MADE:
        each.load()


def get_ready() -> None:
    """Import numba, and compile the kernels of imported modules that its cache lacks: no event is to wait for that.

    O(kernels), 50 us each where it lacks none.
    """
    _compiling().compile_missing(MADE)
