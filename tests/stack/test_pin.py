"""`python -m shadowtime.stack.pin` writes what a real registry says, or nothing."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.shared.paths import ROOT
from shadowtime.stack import pin
from shadowtime.stack.images import OURS, read_images
from shadowtime.stack.ports import free_port
from shadowtime.stack.registry import place_of
from tests.patience import PATIENCE
from tests.real_servers import require
from tests.stack.compose import EXAMPLE, FILE, raw, variables
from tests.stack.image_registry import Registry, token_service


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    require(Registry)
    folder = tmp_path_factory.mktemp("registry")
    with Registry(folder, folder / "images") as server:
        yield server


@pytest.fixture(scope="module")
def pushed(registry: Registry) -> dict[str, str]:
    """The digest of each image, by its variable, once all are in the registry."""
    return {
        image.variable: registry.push(place_of(image.name)[1], image.tag, "first") for image in read_images(EXAMPLE)
    }


@pytest.fixture
def written(tmp_path: Path) -> Path:
    file = tmp_path / ".env"
    file.write_text(EXAMPLE.read_text())
    file.chmod(0o600)
    return file


def test_finding_17_every_image_is_pinned_by_digest(
    registry: Registry, pushed: dict[str, str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = variables(written.read_text())
    assert pin.main([str(written), "--registry", registry.url]) == 0
    after = variables(written.read_text())
    assert after == before | {name: f"{before[name]}@{digest}" for name, digest in pushed.items()}
    assert set(pushed) == {name for name in before if name.endswith("_VERSION")} - {f"{OURS.upper()}_VERSION"}
    assert written.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in written.parent.iterdir()] == [".env"]
    assert f"apache/kafka:{before['KAFKA_VERSION']} is {pushed['KAFKA_VERSION']}\n" in capsys.readouterr().out


def test_a_tag_that_has_moved_is_told(
    registry: Registry, pushed: dict[str, str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pin.main([str(written), "--registry", registry.url]) == 0
    tag = variables(EXAMPLE.read_text())["REDIS_VERSION"]
    moved = registry.push("library/redis", tag, "second")
    capsys.readouterr()
    try:
        assert pin.main([str(written), "--registry", registry.url]) == 0
        told = capsys.readouterr().out.splitlines()
        assert [line for line in told if "was" in line] == [
            f"redis:{tag} is {moved} (was {pushed['REDIS_VERSION']})",
        ]
        assert variables(written.read_text())["REDIS_VERSION"] == f"{tag}@{moved}"
    finally:
        assert registry.push("library/redis", tag, "first") == pushed["REDIS_VERSION"]


def test_a_registry_that_wants_a_token_is_asked_with_one(
    registry: Registry, pushed: dict[str, str], written: Path, tmp_path: Path
) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not on PATH")
    with (
        token_service(tmp_path) as auth,
        Registry(tmp_path / "closed", registry.folder / "images", auth) as closed,
    ):
        assert pin.main([str(written), "--registry", closed.url]) == 0
    assert {image.variable: image.digest for image in read_images(written)} == pushed


def test_a_registry_that_wants_a_password_is_named(
    registry: Registry, written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    auth = {"htpasswd": {"realm": "friends", "path": str(tmp_path / "passwords")}}
    with Registry(tmp_path / "closed", registry.folder / "images", auth) as closed:
        assert refusal(written, closed.url, capsys).endswith(
            """it wants what an anonymous client does not have: 'Basic realm="friends"'"""
        )


def test_a_tag_that_a_registry_does_not_have_is_named(
    registry: Registry, pushed: dict[str, str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = written.read_text()
    tag = variables(text)["GRAFANA_VERSION"]
    written.write_text(text.replace(f"GRAFANA_VERSION={tag}", "GRAFANA_VERSION=0.0.0"))
    assert refusal(written, registry.url, capsys) == f"{registry.url} has no grafana/grafana:0.0.0"


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_without_a_registry_nothing_changes(written: Path, capsys: pytest.CaptureFixture[str], scheme: str) -> None:
    url = f"{scheme}://127.0.0.1:{free_port()}"
    told = refusal(written, url, capsys)
    assert re.fullmatch(rf"cannot ask {url} for [a-z/-]+:\S+: .*Connection refused", told)


@pytest.mark.parametrize("url", ["file:///etc", "127.0.0.1:5000", "http://[", "http://127.0.0.1:99999", ""])
def test_what_is_no_registry_is_named(written: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
    assert refusal(written, url, capsys)


def refusal(file: Path, url: str, capsys: pytest.CaptureFixture[str]) -> str:
    """Ask in vain; return the one line that is said, without what it begins and ends with."""
    before = file.read_bytes()
    assert pin.main([str(file), "--registry", url]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert file.read_bytes() == before
    (line,) = told.err.splitlines()
    end = f"; {file} stays as it is"
    assert line.startswith("error: ")
    assert line.endswith(end)
    return line.removeprefix("error: ").removesuffix(end)


@pytest.mark.parametrize("version", ["", "4.3.1@sha256:abc", "4.3.1 ", "'4.3.1'", "../4"])
def test_a_version_that_is_none_is_named(written: Path, capsys: pytest.CaptureFixture[str], version: str) -> None:
    text = written.read_text()
    written.write_text(re.sub(r"^KAFKA_VERSION=.*$", f"KAFKA_VERSION={version}", text, flags=re.MULTILINE))
    told = refusal(written, "http://127.0.0.1:1", capsys)
    assert told == f"{written}: KAFKA_VERSION is no tag of apache/kafka: {version!r}"


def test_the_command_line_needs_a_file(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shadowtime.stack.pin", str(tmp_path / ".env")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith(f"error: cannot read {tmp_path / '.env'}: No such file or directory (")


def test_every_image_from_a_registry_is_known() -> None:
    found = re.findall(r"^\s*image:\s*([^\s:]+):", FILE.read_text(), flags=re.MULTILINE)
    known = {image.name for image in read_images(EXAMPLE)}
    assert {name for name in found if not name.startswith(OURS)} <= known


def test_no_image_that_is_built_here_is_tagged_with_a_version_that_may_have_a_digest() -> None:
    pinned = {image.variable for image in read_images(EXAMPLE)}
    tags = {each["image"] for each in raw()["services"].values() if "build" in each}
    assert not [tag for tag in tags if any(variable in tag for variable in pinned)]


def test_docker_compose_takes_a_file_with_pins(tmp_path: Path, written: Path) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not on PATH (run shadowtime stack install compose)")
    digest = f"sha256:{'0' * 64}"
    pin.write_pins(written, dict.fromkeys(read_images(written), digest))
    shutil.copy(FILE, tmp_path)
    (tmp_path / "dashboards" / "provisioning").mkdir(parents=True)  # a context of one of the images
    (tmp_path / "stack").mkdir()
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        ["docker-compose", "config"], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"image: apache/kafka:{variables(EXAMPLE.read_text())['KAFKA_VERSION']}@{digest}\n" in done.stdout
