"""docker-compose.yml as data, with the values of .env.example."""

import functools
import re
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]

from shadowtime.shared.cli.paths import ROOT

FILE = ROOT / "docker-compose.yml"
EXAMPLE = ROOT / ".env.example"


def variables(text: str) -> dict[str, str]:
    lines = [line.partition("=") for line in text.splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in lines}


def raw() -> dict[str, Any]:
    """Return the file as it is, variables unresolved."""
    loaded: dict[str, Any] = yaml.safe_load(FILE.read_text())
    return loaded


@functools.cache
def resolved() -> dict[str, Any]:
    """Return the file with its variables resolved, as `docker compose` does."""
    values = variables(EXAMPLE.read_text())

    def resolve(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: resolve(each) for key, each in value.items()}
        if isinstance(value, list):
            return [resolve(each) for each in value]
        if isinstance(value, str):
            value = re.sub(r"(?<!\$)\$\{(\w+):-[^}]*\}", lambda found: values[found[1]], value)
            return value.replace("$$", "$")
        return value

    found: dict[str, Any] = resolve(raw())
    return found


def services() -> dict[str, dict[str, Any]]:
    found: dict[str, dict[str, Any]] = resolved()["services"]
    return found


def dockerfile(path: Path) -> list[tuple[str, str]]:
    """Return the instructions of a Dockerfile, comments dropped and lines joined."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    lines = re.sub(r"\\\n\s*", " ", text).splitlines()
    return [(name, rest.strip()) for name, _, rest in (line.partition(" ") for line in lines if line.strip())]
