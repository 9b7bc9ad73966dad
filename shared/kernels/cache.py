"""The cache of compiled kernels: one file for each, named by a hash of all that it was compiled from.

The files are pickles of machine code. A user who can change a file can run code in each process that reads it.
Therefore a file is read only if nobody else can change it (`shared/private_files.py`).

Numba's own cache checks only the kernel's own file for changes, and a crash can leave its index ahead of its data. If a
callee in another file has changed, as after a pull, Numba's cache would still use code that contains the old callee.
"""

import logging
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

import numba
import numpy as np
from llvmlite.binding import ModuleRef, parse_bitcode  # type: ignore[import-untyped]
from numba.core.caching import CompileResultCacheImpl, FunctionCache, UserProvidedCacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import Environment, lookup_environment
from numba.core.registry import cpu_target
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps

from shadowtime.shared.kernels.decorator import GENERIC, prebuilt_folder
from shadowtime.shared.kernels.together import codes
from shadowtime.shared.private_files import UntrustedFile, check_private, read_private, write_private

# The stored form of a compiled kernel, which is loaded without the parts of numba that compile.
#
# Numba's own loading takes 5 to 40 ms for a kernel and a quarter of a second for the first; this takes 2 to 7 ms.

FORMAT = 3
"""Version of the stored form. Increase it if the form changes."""

HASHES = b"_numba_hashsecret_"
"""Symbol in code that hashes strings or bytes."""


class _Loaded(JITCodeLibrary):
    """Machine code from the cache. Its bitcode, for linking into callers, is parsed only if a caller is compiled."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> "_Loaded":
        name, _, (code, bitcode) = state
        if HASHES in code:
            import numba.cpython.hashing  # noqa: F401 - defines the secret that the code hashes with
        made: Any = cls
        loaded: Any = made(codegen, name)
        loaded.enable_object_caching()
        loaded._set_compiled_object(code)  # noqa: SLF001 - of numba
        loaded._bitcode = bitcode  # noqa: SLF001 - of numba
        loaded._finalize_final_module()  # noqa: SLF001 - of numba
        return loaded  # type: ignore[no-any-return]

    def _get_module_for_linking(self) -> ModuleRef:
        its: Any = self
        if its._shared_module is None:  # noqa: SLF001 - of numba
            its._shared_module = parse_bitcode(its._bitcode)  # noqa: SLF001 - of numba
        return its._shared_module  # noqa: SLF001 - of numba

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function in this library."""
        its: Any = self
        return its._codegen._engine.get_function_address(name)  # type: ignore[no-any-return]  # noqa: SLF001 - of numba


class Payload(CompileResultCacheImpl):
    """The stored form of a kernel: numba's form, changed so that no module of numba is imported to load it.

    Each called function has an environment with the globals of its module. Compiled code does not use these globals, so
    only the name and the constants of an environment are stored.
    """

    def reduce(self, cres: Any) -> Any:
        """Return the stored form of a compiled kernel."""
        numbas: Any = super()
        *rest, called = numbas.reduce(cres)
        return (*rest, [(function.env_name, list(function.consts)) for function in called])

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return the compiled kernel from its stored form, ready to be called."""
        numbas: Any = super()
        *rest, called = payload
        codegen = target_context.codegen()
        before = codegen._library_class  # noqa: SLF001 - of numba
        codegen._library_class = _Loaded  # noqa: SLF001 - of numba
        try:
            return numbas.rebuild(target_context, (*rest, [_environment(*environment) for environment in called]))
        finally:
            codegen._library_class = before  # noqa: SLF001 - of numba


def _environment(name: str, constants: list[Any]) -> Any:
    made: Any = lookup_environment(name)  # type: ignore[no-untyped-call]
    if made is None:
        kind: Any = Environment
        made = kind({"__name__": __name__})
        made.consts[:] = constants
        made.env_name = name
        Environment._memo[name] = made  # noqa: SLF001 - of numba

    return made


log = logging.getLogger(__name__)

DIGEST = 32
"""Number of bytes at the head of a file that are the SHA-256 digest of the rest."""

FILES = 4
"""Maximum number of files of a kernel that are kept."""

_CONSTANT = (bool, int, float, complex, str, bytes, type(None))


class CompiledBefore(UserProvidedCacheLocator):
    """Locator of compiled kernels in a `NUMBA_CACHE_DIR` that is read-only, as in the image.

    Numba's own locators skip a read-only folder. `NUMBA_CACHE_LOCATOR_CLASSES` selects this locator.
    """

    def ensure_cache_path(self) -> None:
        """Create the folder if it does not exist."""
        os.makedirs(self.get_cache_path(), exist_ok=True)  # type: ignore[no-untyped-call]


class KernelCache(FunctionCache):
    """The cache of one kernel, in `folder` if this can be written, else in the folder that numba chooses."""

    _impl_class = Payload
    _cache_path: str
    _impl: Any
    _py_func: Any

    def __init__(self, function: Callable[..., object], folder: Path | None = None) -> None:
        of_its_own: Any = super()
        of_its_own.__init__(function)
        if folder is not None and os.access(folder, os.W_OK | os.X_OK):
            self._cache_path = str(folder)
        self._digest: str | None = None

    def file(self, signature: Any) -> Path:
        """Return the file of a kernel. Its name hashes signature, processor, numba's version and all compiled code."""
        return Path(self._cache_path, self._file_name(signature, *self._processor()))

    def kept(self, signature: Any) -> Path | None:
        """Return the file of a kernel that is there, and that nobody else can change: ours, else one of the wheel."""
        files = [self.file(signature)]
        if (folder := prebuilt_folder()) is not None:
            triple, *_ = self._processor()
            files.append(folder / self._py_func.__module__ / self._file_name(signature, triple, GENERIC, ""))
        for file in files:
            with suppress(OSError):
                check_private(file)
                return file
        return None

    def _file_name(self, signature: Any, *processor: str) -> str:
        if self._digest is None:
            self._digest = digest(self._py_func)
        key = FORMAT, numba.__version__, str(signature), processor, self._digest
        return f"{self._impl.filename_base}.{sha256(repr(key).encode()).hexdigest()[:32]}.nbc"

    @staticmethod
    def _processor() -> tuple[str, ...]:
        codegen: Any = cpu_target.target_context.codegen()
        return codegen.magic_tuple()  # type: ignore[no-any-return]

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return a compiled kernel from the cache, without filling numba's registries for compilation.

        None if the cache has no readable file of it.
        """
        file = self.kept(sig) or self.file(sig)
        try:
            kept = read_private(file)
            if sha256(kept[DIGEST:]).digest() != kept[:DIGEST]:
                raise ValueError("its content does not match its SHA-256")
            payload = pickle.loads(kept[DIGEST:])  # noqa: S301 - nobody else can change the file
        except FileNotFoundError:
            return None
        except UntrustedFile as error:
            _warn_once(f"compiled kernels are not read, but compiled in memory: {error}")
            return None
        except Exception as error:  # damaged, or written by another program
            log.warning("compiled kernel %s cannot be read: %r; it is compiled again", file, error)
            return None

        runtime: Any = rtsys
        runtime.initialize(target_context)
        return self._impl.rebuild(target_context, payload)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Write a compiled kernel, and delete all but its last `FILES` files, which other checkouts may use."""
        if not self._impl.check_cachable(data):
            return
        pickled: Any = dumps
        file, payload = self.file(sig), pickled(self._impl.reduce(data))
        try:
            self._impl.locator.ensure_cache_path()
            check_private(file.parent)
            readers = file.parent.stat().st_mode & 0o044  # users who may list the folder may read the file
            write_private(file, sha256(payload).digest() + payload, mode=0o600 | readers)
        except UntrustedFile as error:
            _warn_once(f"compiled kernels are not stored, and are compiled in each process: {error}")
            return
        except OSError as error:
            log.warning("compiled kernel %s cannot be stored: %s", file, error)
            return

        with suppress(OSError):  # another process deletes, too
            files = file.parent.glob(f"{self._impl.filename_base}.*nb[ci]")
            for old in sorted(files, key=lambda at: at.stat().st_mtime_ns)[:-FILES]:
                old.unlink()


@cache
def _warn_once(text: str) -> None:
    log.warning("%s", text)


def digest(function: Callable[..., Any]) -> str:
    """Return a digest of a function's code and of all that it reaches by global names. O(their size).

    >>> first = eval("lambda: step(2)", {"step": eval("lambda x: x + 1")})
    >>> other = eval("lambda: step(2)", {"step": eval("lambda x: x + 2")})
    >>> digest(first) == digest(first), digest(first) == digest(other)
    (True, False)
    """
    digest = sha256()
    seen: set[int] = set()
    left: list[tuple[str, Any]] = [("", function)]
    while left:
        name, value = left.pop()
        value = getattr(value, "py_func", value)  # unwrap a kernel
        code = getattr(value, "__code__", None)
        digest.update(name.encode())
        if isinstance(value, _CONSTANT):
            digest.update(repr(value).encode())
        elif isinstance(value, np.ndarray | np.generic):
            digest.update(value.dtype.str.encode() + value.tobytes())
        elif isinstance(value, tuple | frozenset):
            digest.update(f"{type(value).__name__} {len(value)}".encode())
            left += [("", item) for item in (value if isinstance(value, tuple) else sorted(value, key=repr))]
        elif isinstance(code, CodeType):
            if id(value) in seen:
                continue
            seen.add(id(value))
            names: set[str] = set()
            for part in codes(code):
                digest.update(part.co_code + repr(part.co_names).encode())
                left += [("", constant) for constant in part.co_consts]  # nested code objects add nothing here
                names |= set(part.co_names)

            left += [("", cell.cell_contents) for cell in value.__closure__ or ()]
            left.append(("", value.__defaults__))
            left += sorted(value.__annotations__.items())
            reached = value.__globals__
            left += [(member, reached[member]) for member in sorted(names & reached.keys(), reverse=True)]
        elif not isinstance(value, ModuleType) and hasattr(value, "_fields"):  # a NamedTuple
            digest.update(repr(value._fields).encode())
            left += sorted(value.__annotations__.items())

    return digest.hexdigest()
