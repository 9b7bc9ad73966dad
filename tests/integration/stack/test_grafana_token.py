"""The account that may push to Grafana Live: made once, its token kept while it is good, no more than a Viewer.

Against the stand-in of the engine's tests: Grafana itself cannot be had here.
"""

import stat
import threading
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path

import pytest

from shadowtime.shared.errors import PushError
from shadowtime.stack.compose import grafana_token
from shadowtime.stack.compose.grafana_token import NONE, make_token
from shadowtime.stack.servers.ports import HOST
from tests.integration.stack.engine import grafana


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "admin").write_text("password")
    monkeypatch.setenv("GF_SECURITY_ADMIN_PASSWORD__FILE", str(tmp_path / "admin"))
    with ThreadingHTTPServer((HOST, 0), grafana.Pages) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://{HOST}:{server.server_address[1]}"
        server.shutdown()
    grafana.ACCOUNTS.clear()
    grafana.TOKENS.clear()


def test_a_token_is_made_once_and_again_when_it_is_bad(url: str, tmp_path: Path) -> None:
    file = tmp_path / "token"
    assert make_token(url, "password", file) == "a new token"
    first = file.read_text()
    assert first in grafana.TOKENS
    assert stat.S_IMODE(file.stat().st_mode) == 0o440
    assert make_token(url, "password", file) == "the token is good"
    grafana.TOKENS.clear()
    assert make_token(url, "password", file) == "a new token"
    assert list(grafana.TOKENS) == [file.read_text()] != [first]
    assert grafana.ACCOUNTS == ["shadowtime-live"]


def test_a_wrong_password_is_told_and_not_shown(url: str, tmp_path: Path) -> None:
    with pytest.raises(PushError, match="rejects the administrator's password") as told:
        make_token(url, "guess", tmp_path / "token")
    assert "guess" not in str(told.value)
    assert not (tmp_path / "token").exists()


def test_a_grafana_that_is_away_is_told(tmp_path: Path) -> None:
    with pytest.raises(PushError, match="cannot be used"):
        make_token(f"http://{HOST}:1", "password", tmp_path / "token")


def test_without_grafana_there_is_a_token_that_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "admin").write_text("password")
    arguments = [f"http://{HOST}:1", str(tmp_path / "admin"), str(tmp_path / "token")]
    monkeypatch.setattr("sys.argv", ["grafana_token", *arguments])
    monkeypatch.setattr(grafana_token, "START_SECONDS", 0.0)
    grafana_token.main()
    assert (tmp_path / "token").read_text() == NONE
