"""Hot loops, which numba compiles once into a cache on disk; numba itself is imported as the first is called."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import update_wrapper
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def cache_folder() -> Path:
    """Return where compiled kernels are, in a folder for each installation, unless `NUMBA_CACHE_DIR` names another."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shadowtime" / "kernels"


class Kernel:
    """A pure function over arrays, compiled for the one signature that its annotations say.

    It is read from the cache as it is first called, by a process or by another kernel that is compiled, and compiled
    where the cache has none. A command needs few of a hundred, and none to say its first word.
    """

    first_call_within: ClassVar[Callable[[], AbstractContextManager[object]]] = nullcontext
    """Context of a first call while its kernel is loaded or compiled; for measurements."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        """As it was before it was compiled, for tests."""
        self.being_made: Any = None
        """Dispatcher while numba compiles it, for a function that calls itself."""
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the function does; raises `TypeError` for arguments of other types."""
        compiled = self._compiled
        if compiled is None:
            with Kernel.first_call_within():
                compiled = self.load()
        return compiled(*arguments, **named)

    @property
    def loaded(self) -> bool:
        """Whether it has been."""
        return self._compiled is not None

    def load(self) -> Any:
        """Make it ready to be called, and return what is called in its place; Ctrl-C comes afterwards."""
        with _not_interrupted():
            compiling = _compiling()
            with compiling.global_compiler_lock:
                if self._compiled is None:
                    self._compiled = compiling.compiled(self)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """The type by which another kernel calls it."""
        return (self.being_made or self.load())._numba_type_

    def __reduce__(self) -> str:
        """Have a pickle say its name."""
        return self.py_func.__qualname__


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Let Ctrl-C wait: a module that is half imported stays so, and what LLVM calls back into Python loses it."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return

    received: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if received:
            raise KeyboardInterrupt


def _compiling() -> ModuleType:
    """Return what compiles: numba is half of a short command's time.

    As at a start, the collector of garbage need not look through what stays; in a command, nor afterwards.
    """
    with _IMPORTING:
        if _COMPILING in sys.modules:
            return sys.modules[_COMPILING]
        collects = gc.isenabled()
        gc.disable()
        try:
            return import_module(_COMPILING)
        finally:
            if gc.get_freeze_count():  # as `start_up` has done
                gc.freeze()
            if collects:
                gc.enable()


_COMPILING = "shadowtime.shared.kernels.compiling"
_IMPORTING = threading.RLock()
MADE: list[Kernel] = []
INLINED: list[Callable[..., object]] = []
"""Functions that kernels may call and that numba does not know yet."""


def kernel(function: Function) -> Function:
    """Have a function compiled as it is first called: a `Kernel`.

    What it takes and returns are numbers, arrays of `shared.kernels.arrays`, and tuples of these, named ones too.
    """
    MADE.append(Kernel(function))
    return cast("Function", MADE[-1])


def inlined(function: Function) -> Function:
    """Let kernels call a small function, which is compiled into each of them; anybody else calls it as it is."""
    INLINED.append(function)
    return function


def load_all() -> None:
    """Load every kernel of the modules that are imported; compile what the cache lacks."""
    for kernel in MADE:
        kernel.load()


def get_ready() -> None:
    """Import numba, and compile the kernels of imported modules that its cache lacks: no event is to wait for that.

    O(kernels), 50 us each where it lacks none.
    """
    with _not_interrupted():
        compiling = _compiling()
    for kernel in MADE:
        if not kernel.loaded and not compiling.is_kept(kernel):
            kernel.load()
