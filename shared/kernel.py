"""Compile a hot loop with numba, once, into a cache on disk."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def kernel(signature: str) -> Callable[[Function], Function]:
    """Return a decorator that compiles a pure function over arrays for one explicit `signature`.

    Compilation happens at import and is cached (in `NUMBA_CACHE_DIR` where the tree is read-only), so importing
    `services.pipeline` warms every kernel. The uncompiled function stays reachable as `.py_func`, for tests.
    """

    def compile_function(function: Function) -> Function:
        return cast("Function", numba.njit(signature, cache=True, nogil=True)(function))

    return compile_function
