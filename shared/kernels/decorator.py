"""Kernels: hot loops that numba compiles once into a cache on disk. The first call of a kernel imports numba."""

import gc
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache, update_wrapper
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar, TypeVar, cast

Function = TypeVar("Function", bound=Callable[..., object])


def cache_folder() -> Path:
    """Return the folder of compiled kernels. All installations and checkouts of a user share it.

    A file's name has a digest of all that it was compiled from. `NUMBA_CACHE_DIR` names another folder, in which each
    installation has a folder of its own.
    """
    named = os.environ.get("NUMBA_CACHE_DIR")
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else cache / "shadowtime" / "kernels"


GENERIC = "x86-64-v3"
"""The processors for which a wheel with compiled kernels has them, as LLVM calls them."""

_GENERIC_FLAGS = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}


@cache
def prebuilt_folder() -> Path | None:
    """Return the folder of kernels that a wheel has brought; None if there is none, or the processor is too old."""
    folder = Path(__file__).with_name("prebuilt")
    if folder.is_dir():
        with suppress(OSError), open("/proc/cpuinfo") as about:
            if any(set(line.split()) >= _GENERIC_FLAGS for line in about if line.startswith("flags")):
                return folder
    return None


def kept_kernels() -> Iterator[Path]:
    """Yield the files of compiled kernels that can be used. The search is lazy: the first file is found at once."""
    for folder in (prebuilt_folder(), cache_folder()):
        if folder is not None:
            yield from folder.rglob("*.nbc")


class Kernel:
    """A pure function over arrays, compiled for the one signature of its annotations.

    The kernel is loaded from the cache, or else compiled, at one of two times: at its first call, or when another
    kernel that calls it is compiled. A command needs only a few of the kernels, and none before its first output.
    """

    rehearsal: ClassVar[Callable[[], object] | None] = None
    """A short run that calls the kernels which this process needs next, for their compilation; None if unknown."""

    rehearsed: ClassVar[set["Kernel"] | None] = None
    """The kernels that a rehearsal has called, as Python functions; None if none runs."""

    first_call_within: ClassVar[Callable[[], AbstractContextManager[object]]] = nullcontext
    """Returns the context of the loading or compilation at a first call; for measurements."""

    def __init__(self, function: Callable[..., Any]) -> None:
        update_wrapper(self, function)
        self.py_func = function
        """The plain Python function, for tests."""
        self.being_made: Any = None
        """Numba's dispatcher during compilation, for a function that calls itself; None otherwise."""
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return the function's result. Raise `TypeError` if an argument does not have the annotated type."""
        compiled = self._compiled
        if compiled is None:
            if (rehearsed := Kernel.rehearsed) is not None:
                rehearsed.add(self)
                return self.py_func(*arguments, **named)
            with Kernel.first_call_within():
                compiled = self.load()
        return compiled(*arguments, **named)

    @property
    def loaded(self) -> bool:
        """Whether the compiled function has been loaded."""
        return self._compiled is not None

    def load(self) -> Any:
        """Load or compile the kernel, and return the compiled function. Several processes compile if this pays."""
        if self._compiled is not None:
            return self._compiled
        with uninterrupted():
            place = _compiling().KernelPlace.of(self)
        if not place.is_kept:
            _compile_ahead([self])
        return self.load_here(place)

    def load_here(self, place: Any = None) -> Any:
        """Load or compile the kernel in this process, and return the compiled function. Ctrl-C is delayed.

        `place` is the kernel's `compiling.KernelPlace`, if it is known.
        """
        with uninterrupted():
            compiling = _compiling()
            with compiling.global_compiler_lock:
                if self._compiled is None:
                    self._compiled = compiling.compiled(self, place)
        return self._compiled

    @property
    def _numba_type_(self) -> Any:
        """Numba's type of this function, for another kernel that calls it."""
        return (self.being_made or self.load_here())._numba_type_

    def __reduce__(self) -> str:
        """Return the function's name: a pickle refers to the kernel by name."""
        return self.py_func.__qualname__


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Delay Ctrl-C until the end of the block.

    Otherwise Ctrl-C could leave a module half imported. In LLVM's callbacks into Python, Ctrl-C would be lost. While
    numba makes the named tuples that a kernel returns, Ctrl-C would crash the process.
    """
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
    """Return the module that compiles. It is imported late, since numba is half of a short command's time.

    As at start-up, garbage collection is off during the import. In a command, the imported objects are then frozen.
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
"""Inlined functions that are not registered with numba yet."""


def kernel(function: Function) -> Function:
    """Return a `Kernel` of a function, which is compiled when it is first called.

    Arguments and results are numbers, arrays of `shared.kernels.arrays`, and tuples or named tuples of these.
    """
    MADE.append(Kernel(function))
    return cast("Function", MADE[-1])


def inlined(function: Function) -> Function:
    """Let kernels call a small function, which is compiled into each of them. Other code calls the Python function."""
    INLINED.append(function)
    return function


def load_all() -> None:
    """Load every kernel of the imported modules, and compile those that the cache lacks."""
    _compile_ahead(MADE)
    for kernel in MADE:
        kernel.load_here()


def get_ready() -> None:
    """Import numba, and compile the kernels of imported modules that the cache lacks, so that no event waits for this.

    If the cache has all kernels, this takes 50 us for each of them.
    """
    compiling = _compile_ahead(MADE)
    for kernel in MADE:
        if not kernel.loaded and not compiling.is_kept(kernel):
            kernel.load_here()


def _compile_ahead(kernels: list[Kernel]) -> ModuleType:
    with uninterrupted():
        compiling = _compiling()
    compiling.compile_ahead(kernels)  # not under a lock or without Ctrl-C, since it may take a minute
    return compiling
