"""Write the software bill of materials: `python -m shadowtime.stack.sbom [FILE] [--images ENV]`.

A CycloneDX 1.6 document of what a release runs on: the Python packages of requirements.lock, Kafka's jars of
`stack/kafka/SHA256SUMS` and the images of docker-compose.yml at the versions of ENV, `.env.example` unless told
otherwise, each with its version and, where one is pinned, its SHA-256. The same inputs give the same document, but for
its time, which is SOURCE_DATE_EPOCH if that is set. What `apt` installs is not in it: its versions are the machine's.
"""

import os
import re
import sys
import tomllib
import uuid
from argparse import ArgumentParser
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from cyclonedx.model import ExternalReference, ExternalReferenceType, HashAlgorithm, HashType, Property, XsUri
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from shadowtime._version import __version__
from shadowtime.shared.command_line import run_app
from shadowtime.shared.paths import ROOT
from shadowtime.stack.images import Image, read_images
from shadowtime.stack.jars import SUMS
from shadowtime.stack.lock_file import Package, read_lock
from shadowtime.stack.server import ServerError

NAMESPACE = uuid.UUID("9b1c5b9e-6a0e-4c1c-8f0a-6d8f1a2f0c15")
JAR = re.compile(r"^# (\S+):(\S+):(\S+)\n([0-9a-f]{64})  \S+$", re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> None:
    """Write the document.

    Raises
    ------
    ServerError
        If one of the lists cannot be read.
    """
    summary, *_ = (__doc__ or "").partition(":")
    parser = ArgumentParser("python -m shadowtime.stack.sbom", description=f"{summary}, in the format CycloneDX 1.6.")
    parser.add_argument("file", nargs="?", type=Path, help="where to (standard output)")
    parser.add_argument(
        "--images",
        metavar="ENV",
        type=Path,
        default=ROOT / ".env.example",
        help="the versions of the images (.env.example); the .env of python -m shadowtime.stack.pin has their digests",
    )
    told = parser.parse_args(arguments)
    text = JsonV1Dot6(bill(told.images)).output_as_string(indent=2) + "\n"
    if told.file is None:
        sys.stdout.write(text)
    else:
        told.file.write_text(text)


def bill(env: Path) -> Bom:
    """Return the bill of materials, with the images at the versions of a file like `.env`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    root = Component(
        name=project["name"],
        version=__version__,
        type=ComponentType.APPLICATION,
        description=project["description"],
        bom_ref=project["name"],
    )
    packages = read_lock(ROOT / "requirements.lock")
    by_name: dict[str, list[Component]] = {root.name: [root]}
    for package in packages:
        by_name.setdefault(package.name, []).append(from_package(package))
    jars = [from_jar(*found) for found in JAR.findall(SUMS.read_text())]
    images = [from_image(image) for image in read_images(env)]
    python = [each for name, components in by_name.items() if name != root.name for each in components]

    document = Bom(metadata=BomMetaData(component=root, timestamp=_time()), components=[*python, *jars, *images])
    document.serial_number = uuid.uuid5(NAMESPACE, "\n".join(_lines(document.components)))
    document.register_dependency(root, [*jars, *images])
    for package in packages:
        for asker in {asker for name in package.asked_by for asker in by_name[name]}:
            document.register_dependency(asker, by_name[package.name])
    return document


def from_package(package: Package) -> Component:
    """Return a Python package; its hashes are those of its files, of which a machine installs one."""
    return Component(
        name=package.name,
        version=package.version,
        purl=(purl := PackageURL("pypi", None, package.name, package.version)),
        bom_ref=purl.to_string(),
        external_references=[
            ExternalReference(
                type=ExternalReferenceType.DISTRIBUTION,
                url=XsUri(f"https://pypi.org/simple/{package.name}/"),
                hashes=[_sha256(each) for each in package.hashes],
            )
        ],
        properties=[Property(name="shadowtime:marker", value=package.marker)] if package.marker else [],
    )


def from_jar(group: str, artifact: str, version: str, sha256: str) -> Component:
    """Return a jar by its coordinates in Maven's repository."""
    return Component(
        group=group,
        name=artifact,
        version=version,
        purl=(purl := PackageURL("maven", group, artifact, version)),
        bom_ref=purl.to_string(),
        hashes=[_sha256(sha256)],
    )


def from_image(image: Image) -> Component:
    """Return an image; its hash is the digest of its manifest, if it is pinned."""
    *group, name = image.name.split("/")
    return Component(
        type=ComponentType.CONTAINER,
        group="/".join(group) or None,
        name=name,
        version=image.tag,
        purl=(purl := PackageURL("docker", "/".join(group) or None, name, image.tag)),
        bom_ref=purl.to_string(),
        hashes=[_sha256(image.digest.removeprefix("sha256:"))] if image.digest else [],
    )


def _time() -> datetime:
    epoch = os.environ.get("SOURCE_DATE_EPOCH")
    if not epoch:
        return datetime.now(UTC)
    if not re.fullmatch(r"\d{1,11}", epoch, re.ASCII):
        raise ServerError(f"SOURCE_DATE_EPOCH is a number of seconds since 1970, not {epoch[:100]!r}")
    return datetime.fromtimestamp(int(epoch), UTC)


def _sha256(digest: str) -> HashType:
    return HashType(alg=HashAlgorithm.SHA_256, content=digest)


def _lines(components: Iterable[Component]) -> list[str]:
    """Return each component with all its hashes, in an order of their own."""
    return sorted(
        " ".join([str(each.purl), *sorted(one.content for hashes in _hashes(each) for one in hashes)])
        for each in components
    )


def _hashes(component: Component) -> list[Iterable[HashType]]:
    return [component.hashes, *(reference.hashes for reference in component.external_references)]


if __name__ == "__main__":
    run_app(main)
