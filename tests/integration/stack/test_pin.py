"""`python -m shadowtime.stack.pin` writes what skopeo finds in a real registry, or nothing."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from shadowtime.stack import pin
from shadowtime.stack.servers.ports import free_port
from tests.integration.stack.image_registry import Registry
from tests.support.compose import EXAMPLE, FILE, raw, variables
from tests.support.real_servers import require

DIGEST = f"sha256:{'0' * 64}"


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Registry]:
    require(Registry)
    folder = tmp_path_factory.mktemp("registry")
    with Registry(folder, folder / "images") as server:
        yield server


@pytest.fixture(scope="module")
def pushed(registry: Registry) -> dict[str, str]:
    """The digest of each image, by its variable, once all are in the registry."""
    tags = variables(EXAMPLE.read_text())
    names = {variable: name if "/" in name else f"library/{name}" for variable, name in pin.images().items()}
    return {variable: registry.push(name, tags[variable], "first") for variable, name in names.items()}


@pytest.fixture
def written(tmp_path: Path, registry: Registry, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An `.env`, where skopeo takes the registry for Docker Hub."""
    stand_in(tmp_path, registry.address, monkeypatch)
    file = tmp_path / ".env"
    file.write_text(EXAMPLE.read_text())
    file.chmod(0o600)
    return file


def stand_in(home: Path, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have skopeo ask `address` for the images of Docker Hub."""
    settings = home / ".config" / "containers" / "registries.conf"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings.write_text(f'[[registry]]\nprefix = "docker.io"\nlocation = "{address}"\ninsecure = true\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)


def test_finding_17_every_image_is_pinned_by_digest(
    pushed: dict[str, str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = variables(written.read_text())
    assert pin.main([str(written)]) == 0
    after = variables(written.read_text())
    assert after == before | {name: f"{before[name]}@{digest}" for name, digest in pushed.items()}
    assert set(pushed) == {name for name in before if name.endswith("_VERSION")} - {"SHADOWTIME_VERSION"}
    assert written.stat().st_mode & 0o777 == 0o600
    assert f"apache/kafka:{before['KAFKA_VERSION']} is {pushed['KAFKA_VERSION']}\n" in capsys.readouterr().out


def test_a_tag_that_has_moved_is_reported(
    registry: Registry, pushed: dict[str, str], written: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert pin.main([str(written)]) == 0
    tag = variables(EXAMPLE.read_text())["REDIS_VERSION"]
    moved = registry.push("library/redis", tag, "second")
    capsys.readouterr()
    try:
        assert pin.main([str(written)]) == 0
        reports = capsys.readouterr().out.splitlines()
        assert [line for line in reports if "was" in line] == [
            f"redis:{tag} is {moved} (was {pushed['REDIS_VERSION']})",
        ]
        assert variables(written.read_text())["REDIS_VERSION"] == f"{tag}@{moved}"
    finally:
        assert registry.push("library/redis", tag, "first") == pushed["REDIS_VERSION"]


@pytest.mark.usefixtures("pushed")
@pytest.mark.parametrize(
    ("version", "reason"),
    [
        ("0.0.0", "skopeo found no digest of grafana/grafana:0.0.0: .*manifest unknown.*"),
        ("../4", "skopeo found no digest of grafana/grafana:../4: .*invalid reference format.*"),
        ("", "expected a line GRAFANA_VERSION=TAG and found none"),
    ],
)
def test_a_version_that_cannot_be_resolved_is_named(
    written: Path, capsys: pytest.CaptureFixture[str], version: str, reason: str
) -> None:
    text = re.sub("^GRAFANA_VERSION=.*$", f"GRAFANA_VERSION={version}", written.read_text(), flags=re.MULTILINE)
    written.write_text(text)
    assert re.fullmatch(reason, refusal(written, capsys))


def test_without_a_registry_nothing_changes(
    written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand_in(written.parent, f"127.0.0.1:{free_port()}", monkeypatch)
    assert "connection refused" in refusal(written, capsys)


def test_without_skopeo_nothing_changes(
    written: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert refusal(written, capsys).startswith("skopeo is not on PATH (apt-get install skopeo")


def test_without_a_file_there_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert pin.main([str(tmp_path / ".env")]) == 2
    assert capsys.readouterr().err.startswith("error: [Errno 2] No such file or directory")


def refusal(file: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Pin in vain; return the one line of the error, without its begin and end."""
    before = file.read_bytes()
    assert pin.main([str(file)]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert file.read_bytes() == before
    (line,) = captured.err.splitlines()
    end = f"; {file} stays as it is"
    assert line.startswith("error: ")
    assert line.endswith(end)
    return line.removeprefix("error: ").removesuffix(end)


def test_every_image_from_a_registry_is_known() -> None:
    found = re.findall(r"^\s*image:\s*([^\s:]+):", FILE.read_text(), flags=re.MULTILINE)
    assert {name for name in found if not name.startswith("shadowtime")} <= set(pin.images().values())


def test_no_two_images_share_a_version() -> None:
    assert len(set(pin.images().values())) == len(pin.images()) == 6


def test_no_image_that_is_built_here_is_tagged_with_a_version_that_may_have_a_digest() -> None:
    tags = {each["image"] for each in raw()["services"].values() if "build" in each}
    assert not [tag for tag in tags if any(variable in tag for variable in pin.images())]


def test_docker_compose_takes_a_file_with_pins(tmp_path: Path) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("docker-compose is not on PATH (run shadowtime stack install compose)")
    text = EXAMPLE.read_text()
    for variable in pin.images():
        text = re.sub(rf"^({variable}=.*)$", rf"\1@{DIGEST}", text, flags=re.MULTILINE)
    (tmp_path / ".env").write_text(text)
    shutil.copy(FILE, tmp_path)
    (tmp_path / "dashboards" / "provisioning").mkdir(parents=True)  # a context of one of the images
    (tmp_path / "stack").mkdir()
    kept = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    done = subprocess.run(
        ["docker-compose", "config"], cwd=tmp_path, env=kept, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert f"image: apache/kafka:{variables(text)['KAFKA_VERSION'].partition('@')[0]}@{DIGEST}\n" in done.stdout
