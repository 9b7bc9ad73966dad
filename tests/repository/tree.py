"""Files of the tree and their names."""

from pathlib import Path

from shadowtime.shared.cli.paths import ROOT

PRODUCT = ("services", "shared", "replayer", "dashboards")


def files(*folders: str) -> list[Path]:
    found = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    assert found
    return found


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
