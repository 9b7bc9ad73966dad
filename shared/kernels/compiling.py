"""Compilation of a kernel by numba: machine code for one signature, from the cache if possible."""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import count
from typing import Any, NamedTuple, get_args, get_origin, get_type_hints

import numba
from numba import types
from numba.core import typeinfer
from numba.core.bytecode import FunctionIdentity
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import register_jitable

from shadowtime.shared.cores import usable_cores
from shadowtime.shared.kernels.cache import KernelCache
from shadowtime.shared.kernels.decorator import INLINED, Kernel, cache_folder
from shadowtime.shared.kernels.together import called_in_rehearsal, compile_in_processes, is_importable, reachable
from shadowtime.shared.private_files import check_private, make_private_folder

cpu_target.target_context  # noqa: B018 - created now, as its lock must be taken before the compiler's


class KernelPlace(NamedTuple):
    """The signature of a kernel and its cache, found once for the check and for the load that follows."""

    signature: Any
    cache: KernelCache

    @classmethod
    def of(cls, kernel: Kernel) -> "KernelPlace":
        """Return the place of a kernel."""
        with global_compiler_lock:  # it guards `CACHE_DIR`, too
            return cls(_signature(kernel.py_func), _cache(kernel.py_func))

    @property
    def is_kept(self) -> bool:
        """Whether the cache, or the wheel, has the kernel in a file that nobody else can change."""
        return self.cache.kept(self.signature) is not None


def compiled(kernel: Kernel, place: KernelPlace | None = None) -> Callable[..., Any]:
    """Return the function of `numba.njit(signature, cache=True, nogil=True)`, but with our own cache.

    If `NUMBA_DISABLE_JIT` is set, return the Python function.
    """
    function = kernel.py_func
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    signature, cached = place or KernelPlace.of(kernel)
    of_numba: Any = CPUDispatcher
    made = of_numba(function, {}, {"nogil": True, "nopython": True, "boundscheck": None})
    made._cache = cached  # noqa: SLF001 - of numba
    while INLINED:
        register_jitable(inline="always")(INLINED.pop())
    kernel.being_made = made
    _number_apart()
    try:
        with typeinfer.register_dispatcher(made):
            made.compile(signature)
    finally:
        kernel.being_made = None

    made.disable_compile()
    return made  # type: ignore[no-any-return]


def _number_apart() -> None:
    """Make numba number its compiled functions from a random start, so that no two processes use the same numbers.

    The number is part of a symbol's name. Every process of numba counts from 1. Kernels that two processes compiled can
    thus define the same symbol with different bodies. The loader uses the first body for both kernels, and one of them
    returns wrong numbers.
    """
    identity: Any = FunctionIdentity
    identity._unique_ids = count(int.from_bytes(os.urandom(6)) << 16)  # noqa: SLF001 - of numba


def is_kept(kernel: Kernel) -> bool:
    """Return whether the cache has a kernel, in a file that nobody else can change."""
    return KernelPlace.of(kernel).is_kept


def compile_ahead(kernels: Iterable[Kernel]) -> None:
    """Compile what the cache lacks of these kernels, and of those that the process needs next, in several processes."""
    asked = [kernel for kernel in kernels if not is_kept(kernel)]
    if not asked or usable_cores() < 2 or numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return
    asked += called_in_rehearsal()

    def missing() -> dict[Kernel, set[Kernel]]:
        calls = reachable(asked)
        lacking = {kernel for kernel in calls if is_importable(kernel) and not is_kept(kernel)}
        return {kernel: calls[kernel] & lacking for kernel in lacking}

    with suppress(OSError):  # a cache that cannot be written, or a process that cannot start
        check_private(cache_folder())
        compile_in_processes(missing, cache_folder())


def _signature(function: Callable[..., Any]) -> Any:
    hints = get_type_hints(function, include_extras=True)
    returned = _compiled_as(hints.pop("return"))
    return returned(*map(_compiled_as, hints.values()))


def _cache(function: Callable[..., Any]) -> KernelCache:
    """Return the cache of a kernel in `cache_folder()`. The cache folder of other numba users in this process stays."""
    config: Any = numba.config
    before = config.CACHE_DIR
    if before:
        return KernelCache(function)
    folder = cache_folder() / function.__module__
    with suppress(OSError):  # a cache that cannot be written is a warning
        make_private_folder(folder)
    config.CACHE_DIR = str(cache_folder())
    try:
        return KernelCache(function, folder)
    finally:
        config.CACHE_DIR = before


NUMBERS: dict[object, Any] = {int: types.int64, float: types.float64, bool: types.boolean, type(None): types.void}


@cache
def _compiled_as(annotation: Any) -> Any:
    """Return numba's type for an annotation.

    >>> from shadowtime.shared.kernels.arrays import Integers
    >>> _compiled_as(tuple[int, Integers])
    Tuple((int64, Array(int64, 1, 'C', False, aligned=True)))
    """
    tuple_of: Any = types.BaseTuple.from_types
    if annotation in NUMBERS:
        return NUMBERS[annotation]
    if hasattr(annotation, "_fields"):  # a NamedTuple
        parts = get_type_hints(annotation, include_extras=True).values()
        return tuple_of([*map(_compiled_as, parts)], annotation)
    if get_origin(annotation) is tuple:
        return tuple_of([*map(_compiled_as, get_args(annotation))])
    (array,) = annotation.__metadata__
    return eval(array, {}, vars(types))  # noqa: S307 - a string of `arrays.py`
