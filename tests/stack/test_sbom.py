"""The bill of materials is what the schema of CycloneDX asks for, and names what is locked."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cyclonedx.schema import SchemaVersion

from shadowtime.shared.paths import ROOT
from shadowtime.stack import sbom
from shadowtime.stack.checksums import read_sums
from shadowtime.stack.images import read_images
from shadowtime.stack.jars import SUMS
from shadowtime.stack.lock_file import read_lock
from shadowtime.stack.pin import write_pins
from tests.patience import PATIENCE
from tests.stack.compose import EXAMPLE

LOCK = ROOT / "requirements.lock"
DIGEST = f"sha256:{'0123456789abcdef' * 4}"


def document(arguments: list[str], folder: Path) -> dict[str, Any]:
    written = folder / "sbom.cdx.json"
    sbom.main([str(written), *arguments])
    found: dict[str, Any] = json.loads(written.read_text())
    return found


@pytest.fixture
def pinned(tmp_path: Path) -> dict[str, Any]:
    """The document of a site that has pinned its images."""
    env = tmp_path / ".env"
    env.write_text(EXAMPLE.read_text())
    write_pins(env, dict.fromkeys(read_images(env), DIGEST))
    return document(["--images", str(env)], tmp_path)


def test_finding_17_the_bill_of_materials_keeps_its_schema(pinned: dict[str, Any]) -> None:
    from cyclonedx.validation.json import JsonStrictValidator  # here: it takes seconds

    assert pinned["specVersion"] == "1.6"
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(pinned)) is None


def test_packages_jars_and_images_are_there_with_versions_and_hashes(pinned: dict[str, Any]) -> None:
    parts = {part["purl"]: part for part in pinned["components"]}
    packages, jars, images = read_lock(LOCK), read_sums(SUMS), read_images(EXAMPLE)
    assert len(parts) == len(packages) + len(jars) + len(images)
    for package in packages:
        (files,) = parts[f"pkg:pypi/{package.name}@{package.version}"]["externalReferences"]
        assert {each["content"] for each in files["hashes"]} == set(package.hashes)
    maven = [part for purl, part in parts.items() if purl.startswith("pkg:maven/")]
    assert {f"{part['name']}-{part['version']}.jar": part["hashes"][0]["content"] for part in maven} == jars
    for image in images:
        part = parts[f"pkg:docker/{image.name}@{image.tag}"]
        assert part["type"] == "container"
        assert part["hashes"] == [{"alg": "SHA-256", "content": DIGEST.removeprefix("sha256:")}]


def test_it_tells_who_depends_on_whom(pinned: dict[str, Any]) -> None:
    needs = {each["ref"]: each.get("dependsOn", []) for each in pinned["dependencies"]}
    versions = {package.name: f"pkg:pypi/{package.name}@{package.version}" for package in read_lock(LOCK)}
    assert versions["aiosignal"] in needs[versions["aiohttp"]]
    assert versions["aiosignal"] not in needs["shadowtime"]
    reached, left = {"shadowtime"}, ["shadowtime"]
    while left:
        new = set(needs[left.pop()]) - reached
        reached |= new
        left += new
    assert reached == set(needs) == {"shadowtime"} | {part["bom-ref"] for part in pinned["components"]}


def test_without_a_pin_an_image_has_its_tag_alone(tmp_path: Path) -> None:
    images = [part for part in document([], tmp_path)["components"] if part["type"] == "container"]
    assert images
    assert not any("hashes" in part for part in images)


def test_the_same_inputs_give_the_same_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    first = document([], tmp_path)
    assert first["metadata"]["timestamp"] == "2023-11-14T22:13:20+00:00"
    assert document([], tmp_path) == first
    env = tmp_path / ".env"
    env.write_text(EXAMPLE.read_text())
    write_pins(env, {read_images(env)[0]: DIGEST})
    assert document(["--images", str(env)], tmp_path)["serialNumber"] != first["serialNumber"]


@pytest.mark.parametrize(
    ("arguments", "epoch", "told"),
    [
        (["--images", "/nowhere/.env"], "", "error: cannot read /nowhere/.env: No such file or directory"),
        (["/nowhere/sbom.json"], "", "error: "),
        ([], "today", "error: SOURCE_DATE_EPOCH is a number of seconds since 1970, not 'today'"),
    ],
)
def test_what_cannot_be_read_or_written_is_one_line(arguments: list[str], epoch: str, told: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "shadowtime.stack.sbom", *arguments],
        cwd=ROOT,
        env={"SOURCE_DATE_EPOCH": epoch},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith(told)
