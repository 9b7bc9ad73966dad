"""What browser tests need is checked before it is used, and named where it cannot be had."""

import io
import tarfile
from pathlib import Path

import pytest

from shadowtime.stack import install
from shadowtime.stack import install as browser
from shadowtime.stack.servers.server import ServerError
from tests.support.browser import require_browser


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without anything."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("SHADOWTIME_SERVERS", str(tmp_path / "servers"))
    monkeypatch.delenv("SHADOWTIME_APT", raising=False)
    return tmp_path


def test_what_cannot_be_had_is_named(bare: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert install.main(["browser"]) == 1
    assert "browser: not available: chromium is not on PATH, and there is no apt-get" in capsys.readouterr().err
    assert browser.missing() == "chromium is not on PATH (run shadowtime stack install browser)"


def test_another_package_is_refused(bare: Path) -> None:
    package = bare / "axe.tgz"
    with tarfile.open(package, "w:gz") as archive:
        archive.addfile(tarfile.TarInfo("package/axe.min.js"), io.BytesIO())
    with pytest.raises(ServerError, match=r"axe\.tgz has the integrity sha512-\S{88}, not sha512-"):
        browser.unpack_axe(package)
    assert not browser.axe_file().exists()


def test_finding_17_a_checker_that_was_changed_is_refused(bare: Path) -> None:
    (bare / "chromium").touch(mode=0o755)
    kept = browser.axe_file()
    kept.parent.mkdir(parents=True)
    kept.write_text("alert()")
    assert browser.missing() == (
        f"{kept} does not have SHA-256 {browser.AXE_SHA256} (run shadowtime stack install browser)"
    )


def test_the_checker_that_is_kept_is_the_one_that_is_meant() -> None:
    require_browser()
    assert browser.axe_is_there()
