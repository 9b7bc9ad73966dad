"""What is kept of a compiled kernel, and how it is loaded without what numba takes to compile one.

Numba's own way takes 5 to 40 ms for a kernel and a quarter of a second for the first; this takes 2 to 7 ms.
"""

from typing import Any

from llvmlite.binding import ModuleRef, parse_bitcode  # type: ignore[import-untyped]
from numba.core.caching import CompileResultCacheImpl
from numba.core.codegen import JITCodeLibrary
from numba.core.environment import Environment, lookup_environment

FORMAT = 2
"""Of what is kept; another number where that is changed."""

HASHES = b"_numba_hashsecret_"
"""What code has in it that hashes strings or bytes."""


class _Loaded(JITCodeLibrary):
    """Machine code from the cache; what is compiled into callers is read only as one of them is compiled."""

    @classmethod
    def _unserialize(cls, codegen: Any, state: Any) -> "_Loaded":
        name, _, (code, bitcode) = state
        if HASHES in code:
            import numba.cpython.hashing  # noqa: F401 - where the secret is that it hashes with
        made: Any = cls
        loaded: Any = made(codegen, name)
        loaded.enable_object_caching()
        loaded._set_compiled_object(code)
        loaded._bitcode = bitcode
        loaded._finalize_final_module()
        return loaded  # type: ignore[no-any-return]

    def _get_module_for_linking(self) -> ModuleRef:
        its: Any = self
        if its._shared_module is None:
            its._shared_module = parse_bitcode(its._bitcode)
        return its._shared_module

    def get_pointer_to_function(self, name: str) -> int:
        """Return the address of a function that is in it."""
        its: Any = self
        return its._codegen._engine.get_function_address(name)  # type: ignore[no-any-return]


class Payload(CompileResultCacheImpl):
    """What is kept of a kernel: as numba has it, but that no module of numba is imported to load it.

    What is called has an environment each, which has the globals of its module: for compiled code they are of no use.
    """

    def reduce(self, cres: Any) -> Any:
        """Return what is kept."""
        numbas: Any = super()
        *told, called = numbas.reduce(cres)
        return (*told, [(each.env_name, list(each.consts)) for each in called])

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return what was kept, ready to be called."""
        numbas: Any = super()
        *told, called = payload
        codegen = target_context.codegen()
        before = codegen._library_class
        codegen._library_class = _Loaded
        try:
            return numbas.rebuild(target_context, (*told, [_environment(*each) for each in called]))
        finally:
            codegen._library_class = before


def _environment(name: str, constants: list[Any]) -> Any:
    made: Any = lookup_environment(name)  # type: ignore[no-untyped-call]
    if made is None:
        kind: Any = Environment
        made = kind({"__name__": __name__})
        made.consts[:] = constants
        made.env_name = name
        Environment._memo[name] = made
    return made
