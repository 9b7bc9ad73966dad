"""A compiled kernel that is loaded from the cache as it is first called: a command needs few of a hundred."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from typing import Any

from numba.core import typeinfer
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

from shadowtime.shared.kernel_cache import KernelCache


class OnDemand(CPUDispatcher):
    """What `numba.njit(signature, cache=True, nogil=True)` makes, but for when it is loaded.

    Loading takes 10 ms a kernel, half of what the start of a command would take. What is not in the cache is compiled
    at once, so that no event of a run waits for a compiler.
    """

    signature: Any = None
    """The one that it is compiled for."""

    targetctx: Any
    _cache: Any

    @classmethod
    def of(cls, function: Callable[..., object], signature: Any) -> "OnDemand":
        """Return a kernel that is in the cache."""
        kernel = cls(function, {}, {"nogil": True, "nopython": True, "boundscheck": None})
        kernel._cache = KernelCache(kernel.py_func)
        kernel.signature = signature
        if not kernel._is_cached():
            kernel.load()
        MADE.append(kernel)
        return kernel

    @property
    def loaded(self) -> bool:
        """Whether it has been."""
        its: Any = self
        return not its._can_compile

    def _is_cached(self) -> bool:
        cache, target = self._cache, self.targetctx
        return cache._index_key(self.signature, target.codegen()) in cache._cache_file._load_index()

    def load(self) -> None:
        """Make it ready to be called; it takes nothing but its signature from then on."""
        with _not_interrupted(), global_compiler_lock:
            if not self.loaded:
                _import_array_functions()
                with typeinfer.register_dispatcher(self):
                    super().compile(self.signature)
                self.disable_compile()

    def compile(self, asked: Any) -> Any:
        """Return what is called; numba asks for it with the types of the first call, or of one in another kernel.

        Raises
        ------
        TypeError
            If they are others than those of the signature.
        """
        if self.signature is None:  # made from a pickle, with what was loaded
            return super().compile(asked)
        self.load()
        told = self.signature.args
        if len(asked) != len(told) or None in map(self.typingctx.can_convert, asked, told):
            raise TypeError(f"{self.py_func.__name__} takes {told}, not {asked}")
        its: Any = self.overloads[told]
        return its.entry_point

    def _reduce_states(self) -> Any:
        self.load()
        return super()._reduce_states()  # type: ignore[misc]  # of numba's `ReduceMixin`


MADE: list[OnDemand] = []


def load_all() -> None:
    """Load every kernel of the modules that are imported, for processes that are forked from this one."""
    for kernel in MADE:
        kernel.load()


@cache
def _import_array_functions() -> None:
    """Import what numba has for arrays without scipy's linear algebra, a quarter of a second.

    Numba imports that to see whether it is there, which it is: the package requires scipy. It is imported where a
    kernel that calls it is compiled.
    """
    linalg: Any = import_module("numba.np.linalg")
    ensure_blas = linalg.ensure_blas
    linalg.ensure_blas = lambda: None
    try:
        arraymath: Any = import_module("numba.np.arraymath")
    finally:
        linalg.ensure_blas = ensure_blas
    arraymath.ensure_blas = ensure_blas


@contextmanager
def _not_interrupted() -> Iterator[None]:
    """Let Ctrl-C wait: LLVM calls back into Python while it loads, where `KeyboardInterrupt` would be lost."""
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    told: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _: told.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if told:
            raise KeyboardInterrupt
