"""The map of the packages in docs/reference/packages.md, made from their imports: which package needs which."""

import ast
from collections.abc import Iterator
from graphlib import TopologicalSorter
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.lazy import syntax_tree

FOLDERS = ("shared", "services", "replayer", "dashboards", "stack")


def packages() -> dict[str, Path]:
    """Return the folder of each package by its path; one that has no modules but its face is none."""
    inits = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("__init__.py"))
    return {path.parent.relative_to(ROOT).as_posix(): path.parent for path in inits if modules(path.parent)}


def modules(folder: Path) -> list[Path]:
    """Return the modules that lie in a folder itself, without its face."""
    return [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]


def imported(path: Path) -> Iterator[str]:
    """Yield the path of every module of the project, and of every name in one, that a file imports."""
    for node in ast.walk(syntax_tree(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("shadowtime."):
            yield from (f"{node.module}.{alias.name}".replace(".", "/").partition("/")[2] for alias in node.names)


def arrows(known: dict[str, Path]) -> dict[str, set[str]]:
    """Return which packages each one imports, without its own parents and parts."""

    def home(target: str) -> str:
        return max((package for package in known if f"{target}/".startswith(f"{package}/")), key=len, default="")

    return {
        package: {
            target
            for path in modules(folder)
            for target in map(home, imported(path))
            if target and not f"{target}/".startswith(f"{package}/") and not package.startswith(f"{target}/")
        }
        for package, folder in known.items()
    }


def layers(needs: dict[str, set[str]]) -> dict[str, int]:
    """Return the layer of each package: one above the highest that it imports."""
    heights: dict[str, int] = {}
    for package in TopologicalSorter(needs).static_order():
        heights[package] = 1 + max((heights[other] for other in needs[package]), default=-1)
    return heights


def place(package: str) -> str:
    """Return the package of the second level, such as `services/scheduler`, that a package is or is in."""
    return "/".join(package.split("/")[:2])


def rows() -> Iterator[tuple[str, ...]]:
    """Yield what the map says of each package, the lowest first: path, modules, meaning, imports."""
    known = packages()
    needs = arrows(known)
    inner = layers(needs)
    outer = layers(
        {
            whole: {place(other) for need in needs if place(need) == whole for other in needs[need]} - {whole}
            for whole in map(place, needs)
        }
    )
    for package in sorted(
        known, key=lambda one: (FOLDERS.index(one.split("/")[0]), outer[place(one)], place(one), inner[one], one)
    ):
        face = syntax_tree((known[package] / "__init__.py").read_text())
        meaning = (ast.get_docstring(face) or "").partition("\n")[0]
        imports = ", ".join(f"`{other}`" for other in sorted(needs[package] - {"shared"}))
        yield f"`{package}`", str(len(modules(known[package]))), meaning, imports
