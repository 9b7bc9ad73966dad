"""Compile a hot loop with numba, once, into a cache on disk."""

import os
from collections.abc import Callable
from typing import TypeVar, cast

import numba
from numba.core.caching import UserProvidedCacheLocator

Function = TypeVar("Function", bound=Callable[..., object])


class CompiledBefore(UserProvidedCacheLocator):
    """Reads compiled kernels from a `NUMBA_CACHE_DIR` that nobody may write, as in the image.

    Numba's own locators pass over a folder that cannot be written. Whoever may write there runs code in all who read:
    the files are pickles. Chosen by `NUMBA_CACHE_LOCATOR_CLASSES`. A kernel that is not there is a `PermissionError`
    at import: the image was built for something else.
    """

    def ensure_cache_path(self) -> None:
        """Make the folder, unless it is there."""
        os.makedirs(self.get_cache_path(), exist_ok=True)  # type: ignore[no-untyped-call]


def kernel(signature: str) -> Callable[[Function], Function]:
    """Return a decorator that compiles a pure function over arrays for one explicit `signature`.

    Compilation happens at import and is cached (in `NUMBA_CACHE_DIR` where the tree is read-only), so importing
    `services.pipeline` warms every kernel. The uncompiled function stays reachable as `.py_func`, for tests.
    """

    def compile_function(function: Function) -> Function:
        return cast("Function", numba.njit(signature, cache=True, nogil=True)(function))

    return compile_function
