"""Compile a hot loop with numba, once, into a cache on disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar, cast

import numba
from numba.core.caching import UserProvidedCacheLocator

Function = TypeVar("Function", bound=Callable[..., object])


def cache_folder() -> Path:
    """Return where compiled kernels are, in a folder for each installation, unless `NUMBA_CACHE_DIR` names another."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "shadowtime" / "kernels"


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

    Compilation happens at import and is cached, so importing `shadowtime.services.pipeline` warms every kernel.
    The uncompiled function stays reachable as `.py_func`, for tests.
    """

    def compile_function(function: Function) -> Function:
        with _cached_by_the_user():
            return cast("Function", numba.njit(signature, cache=True, nogil=True)(function))

    return compile_function


@contextmanager
def _cached_by_the_user() -> Iterator[None]:
    """Have numba cache in `cache_folder()`, for our kernels alone: others in this process keep their own places."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or str(cache_folder())
    try:
        yield
    finally:
        config.CACHE_DIR = before
