"""What numba makes of a kernel: machine code for one signature, from the cache if it is there."""

import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, get_args, get_origin, get_type_hints

import numba
from numba import types
from numba.core import typeinfer
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher, cpu_target
from numba.extending import register_jitable

from shadowtime.shared.kernel import INLINED, Kernel, cache_folder
from shadowtime.shared.kernel_cache import KernelCache


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what `numba.njit(signature, cache=True, nogil=True)` makes, with a cache of ours."""
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    signature, cached = _signature(function), _cache(function)
    of_numba: Any = CPUDispatcher
    made = of_numba(function, {}, {"nogil": True, "nopython": True, "boundscheck": None})
    made._cache = cached
    with _not_interrupted(), global_compiler_lock:
        while INLINED:
            register_jitable(inline="always")(INLINED.pop())
        with typeinfer.register_dispatcher(made):
            made.compile(signature)
        made.disable_compile()
    return made  # type: ignore[no-any-return]


def compile_missing(kernels: Iterable[Kernel]) -> None:
    """Compile those that the cache lacks."""
    codegen = cpu_target.target_context.codegen()
    for kernel in kernels:
        cached: Any = None if kernel.loaded else _cache(kernel.py_func)
        if cached and not cached.holds(_signature(kernel.py_func), codegen):
            kernel.load()


def _signature(function: Callable[..., Any]) -> Any:
    told = get_type_hints(function, include_extras=True)
    returned = _compiled_as(told.pop("return"))
    return returned(*map(_compiled_as, told.values()))


def _cache(function: Callable[..., Any]) -> KernelCache:
    """Return the cache of a kernel in `cache_folder()`, of ours alone: others in this process keep their own places."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or str(cache_folder())
    try:
        return KernelCache(function)
    finally:
        config.CACHE_DIR = before


NUMBERS: dict[object, Any] = {int: types.int64, float: types.float64, bool: types.boolean, type(None): types.void}


@cache
def _compiled_as(annotation: Any) -> Any:
    """Return numba's type for an annotation.

    >>> from shadowtime.shared.arrays import Integers
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
    return eval(array, {}, vars(types))  # noqa: S307 - one of ours, from shared.arrays


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
