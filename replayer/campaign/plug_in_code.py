"""What tells one version of a plug-in from another: whoever works on one changes its code, and not its version."""

import sys
from functools import cache
from hashlib import sha256
from pathlib import Path


def code_of(loaded: type[object]) -> str | None:
    """Return the SHA-256 of the package or module that a class is in; None of a class of the project's own."""
    package = loaded.__module__.partition(".")[0]
    return None if package == __name__.partition(".")[0] else _code_of(package)


@cache
def _code_of(package: str) -> str:
    module, found = sys.modules[package], sha256()
    roots = [Path(each) for each in getattr(module, "__path__", ())] or [Path(str(module.__file__))]
    for root in sorted(roots):
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc":
                contents = path.read_bytes()
                found.update(f"{path.relative_to(root.parent)} {len(contents)}\n".encode(errors="surrogateescape"))
                found.update(contents)
    return found.hexdigest()
