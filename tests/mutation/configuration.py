"""Which modules are mutated, and which tests are to notice: `modules.toml`."""

import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_name("modules.toml")


@dataclass(frozen=True)
class Configuration:
    """What `modules.toml` says, with the files that are in the tree; all paths are relative to it."""

    seed: int
    mutants: int
    minutes: float
    processes: int
    exclude: tuple[str, ...]
    tests: dict[Path, tuple[Path, ...]]
    """The tests of each module; its own examples are among them."""


def configuration(root: Path, text: str | None = None) -> Configuration:
    """Return the configuration of the tree in a folder.

    Raises
    ------
    ValueError
        If the modules or tests of a line are not there, or not one.
    """
    told: dict[str, Any] = tomllib.loads(FILE.read_text() if text is None else text)
    tests = {}
    for modules, names in told["modules"].items():
        module = only(root, modules, root)
        tests[module] = (*(only(root / "tests", f"**/{each}", root) for each in names), examples_of(module))
    return Configuration(**told["sample"], exclude=tuple(told["operators"]["exclude"]), tests=tests)


def examples_of(module: Path) -> Path:
    """Return the path under which pytest imports a module for its examples by the name that other modules use."""
    return Path("shadowtime", module)


def only(folder: Path, pattern: str, root: Path) -> Path:
    """Return the one file below a folder that a glob names, as the root has it."""
    found = sorted(each.relative_to(root) for each in folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(map(str, found)) or "no file"
        raise ValueError(f"{FILE.name}: {pattern!r} is to name one file and names {names}; correct the line")
    return found[0]
