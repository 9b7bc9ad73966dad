"""The images that come from registries: which there are, and at which version `.env` has each."""

import re
from dataclasses import dataclass
from pathlib import Path

from shadowtime.shared.paths import ROOT
from shadowtime.stack.server import ServerError

OURS = "shadowtime"
"""What the names of images begin with that are built here."""

IMAGE = re.compile(r"^\s*(?:image:|FROM)\s+([a-z0-9][a-z0-9._/:-]*):\$\{(\w+)(?::-[^}]*)?\}", re.MULTILINE)
LINE = re.compile(r"^(\w+)=(.*)$", re.MULTILINE)
VERSION = re.compile(r"(\w[\w.-]{0,127})(?:@(sha256:[0-9a-f]{64}))?", re.ASCII)


@dataclass(frozen=True)
class Image:
    """An image at a version.

    Parameters
    ----------
    name
        As Docker writes it, `redis` or `apache/kafka`.
    variable
        The one of `.env` that holds the version: a tag, and behind an `@` the digest if it is pinned.
    tag
        Such as 4.3.1.
    digest
        Such as sha256:… or None if the tag alone says which image is meant.
    """

    name: str
    variable: str
    tag: str
    digest: str | None

    @property
    def reference(self) -> str:
        """Name and tag, `apache/kafka:4.3.1`."""
        return f"{self.name}:{self.tag}"


def read_images(env: Path, checkout: Path = ROOT) -> list[Image]:
    """Return what docker-compose.yml and the Dockerfiles take from registries, at the versions of a file like `.env`.

    Raises
    ------
    ServerError
        If the file lacks a version or has one that is none, or two images share one.
    """
    try:
        values = dict(LINE.findall(env.read_text()))
    except OSError as error:
        raise ServerError(f"cannot read {env}: {error.strerror} (python -m shadowtime.stack.env makes .env)") from error
    files = [checkout / "docker-compose.yml", *sorted(checkout.glob("*/Dockerfile")), *checkout.glob("*/*.Dockerfile")]
    names: dict[str, str] = {}
    for name, variable in (found for file in files for found in IMAGE.findall(file.read_text())):
        if name.startswith(OURS):
            continue
        if names.setdefault(variable, name) != name:
            raise ServerError(f"{names[variable]} and {name} share the version {variable}")
    return [_image(name, variable, values.get(variable, ""), env) for variable, name in names.items()]


def _image(name: str, variable: str, version: str, env: Path) -> Image:
    found = VERSION.fullmatch(version)
    if found is None:
        raise ServerError(f"{env}: {variable} is no tag of {name}: {version[:100]!r}")
    return Image(name, variable, found[1], found[2])
