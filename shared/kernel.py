"""Compile a hot loop with numba, once, into a cache on disk."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, cast, get_args, get_origin, get_type_hints

import numba
from numba import types
from numba.core.caching import UserProvidedCacheLocator
from numba.extending import register_jitable

from shadowtime.shared.kernel_on_demand import OnDemand

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


def inlined(function: Function) -> Function:
    """Let kernels call a small function, which is compiled into each of them; anybody else calls it as it is."""
    return register_jitable(inline="always")(function)


def kernel(function: Function) -> Function:
    """Compile a pure function over arrays, for the one signature that its annotations say.

    They are numbers, arrays of `shared.arrays`, and tuples of these, named ones too. Compilation happens at import and
    is cached, so importing `shadowtime.services.pipeline` warms every kernel; what is cached already is loaded as it is
    first called. The uncompiled function stays reachable as `.py_func`, for tests.
    """
    told = get_type_hints(function, include_extras=True)
    returned = _compiled_as(told.pop("return"))
    signature = returned(*map(_compiled_as, told.values()))
    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        return function
    with _cached_by_the_user():
        return cast("Function", OnDemand.of(function, signature))


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
def _cached_by_the_user() -> Iterator[None]:
    """Have numba cache in `cache_folder()`, for our kernels alone: others in this process keep their own places."""
    config: Any = numba.config
    before = config.CACHE_DIR
    config.CACHE_DIR = before or str(cache_folder())
    try:
        yield
    finally:
        config.CACHE_DIR = before
