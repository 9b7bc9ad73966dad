"""The cache of compiled kernels: what a kernel calls, and the constants it uses, are part of its key.

Numba looks for changes in a kernel's own file alone. Where a callee in another file has changed, as after a pull, it
would go on with machine code that has the old one compiled into it.
"""

import os
from collections.abc import Callable, Iterator
from hashlib import sha256
from types import CodeType, ModuleType
from typing import Any, cast

import numpy as np
from numba.core.caching import FunctionCache, UserProvidedCacheLocator
from numba.core.runtime.nrt import rtsys

from shadowtime.shared.kernel_payload import FORMAT, Payload

_CONSTANT = (bool, int, float, complex, str, bytes, type(None))


class CompiledBefore(UserProvidedCacheLocator):
    """Reads compiled kernels from a `NUMBA_CACHE_DIR` that nobody may write, as in the image.

    Numba's own locators pass over a folder that cannot be written. Whoever may write there runs code in all who read:
    the files are pickles. Chosen by `NUMBA_CACHE_LOCATOR_CLASSES`. A kernel that is not there is a `PermissionError`
    as it is first called: the image was built for something else.
    """

    def ensure_cache_path(self) -> None:
        """Make the folder, unless it is there."""
        os.makedirs(self.get_cache_path(), exist_ok=True)  # type: ignore[no-untyped-call]


class KernelCache(FunctionCache):
    """Numba's own, with the digest of all that is compiled into a kernel in its key."""

    _impl_class = Payload
    _py_func: Any

    def __init__(self, function: Callable[..., object]) -> None:
        of_its_own: Any = super()
        of_its_own.__init__(function)

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return what a compiled kernel is kept under: its types, the processor, and all that is compiled into it."""
        return FORMAT, sig, codegen.magic_tuple(), digest(self._py_func)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what was compiled, without the registries that numba fills to compile."""
        its, runtime = cast("Any", self), cast("Any", rtsys)
        runtime.initialize(target_context)
        return its._load_overload(sig, target_context)

    def holds(self, signature: Any, codegen: Any) -> bool:
        """Return whether it has been compiled."""
        its: Any = self
        return self._index_key(signature, codegen) in its._cache_file._load_index()


def digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code, and of all that it reaches by global names: O(their size).

    >>> first = eval("lambda: step(2)", {"step": eval("lambda x: x + 1")})
    >>> other = eval("lambda: step(2)", {"step": eval("lambda x: x + 2")})
    >>> digest(first) == digest(first), digest(first) == digest(other)
    (True, False)
    """
    told = sha256()
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", function)]
    while left:
        name, value = left.pop()
        value = getattr(value, "py_func", value)  # of a kernel
        code = getattr(value, "__code__", None)
        told.update(name.encode())
        if isinstance(value, _CONSTANT):
            told.update(repr(value).encode())
        elif isinstance(value, np.ndarray | np.generic):
            told.update(value.dtype.str.encode() + value.tobytes())
        elif isinstance(value, tuple | frozenset):
            told.update(f"{type(value).__name__} {len(value)}".encode())
            left += [("", each) for each in (value if isinstance(value, tuple) else sorted(value, key=repr))]
        elif isinstance(code, CodeType):
            if id(value) in seen:
                continue
            seen.add(id(value))
            names: set[str] = set()
            for part in _parts(code):
                told.update(part.co_code + repr(part.co_names).encode())
                left += [("", each) for each in part.co_consts]  # code among them says nothing again
                names |= set(part.co_names)
            left += [("", cell.cell_contents) for cell in value.__closure__ or ()]
            left.append(("", value.__defaults__))
            reached = value.__globals__
            left += [(each, reached[each]) for each in sorted(names & reached.keys(), reverse=True)]
        elif not isinstance(value, ModuleType) and hasattr(value, "_fields"):  # a NamedTuple
            told.update(repr((value._fields, value.__annotations__)).encode())
    return told.hexdigest()


def _parts(code: CodeType) -> Iterator[CodeType]:
    """Yield a piece of code and those inside it."""
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _parts(each)
