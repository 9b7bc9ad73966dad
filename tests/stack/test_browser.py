"""What browser tests need is checked before it is used, and named where it cannot be had."""

import io
import tarfile
from pathlib import Path

import pytest

from stack import browser, install
from stack.server import ServerError


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without anything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path / "servers"))
    return tmp_path


def test_what_cannot_be_had_is_named(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["browser"]) == 1
    assert "browser: not available: chromium is not on PATH, and there is no apt-get" in capsys.readouterr().err
    assert browser.missing() == "chromium is not on PATH (run python -m stack.install browser)"


def test_another_package_is_refused(bare: Path) -> None:
    package = bare / "axe.tgz"
    with tarfile.open(package, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("package/axe.min.js"), io.BytesIO())
    with pytest.raises(ServerError, match=r"axe\.tgz has SHA-256 [0-9a-f]{64}, not"):
        browser.unpack_axe(package)
    assert not browser.axe_file().exists()
