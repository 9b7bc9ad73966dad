"""`shadowtime doctor` says what there is, and what to do."""

import os
import socket
import ssl
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from shadowtime.shared.errors import StoreError
from shadowtime.shared.streaming import server_checks
from shadowtime.stack.servers.certificates import certify
from shadowtime.stack.servers.ports import HOST, free_port
from shadowtime.stack.servers.servers import Redis
from tests.support.forked import run_forked
from tests.support.patience import PATIENCE


def doctor(**environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SHADOWTIME_")}
    return run_forked("doctor", environment=kept | {"COLUMNS": "200"} | environment)


def line_of(told: str, section: str, name: str) -> list[str]:
    """Return mark and text of a finding."""
    lines = told.partition(f"\n{section}\n")[2].partition("\n\n")[0].splitlines()
    (found,) = [line.split() for line in lines if name in line.split()[1:3]]
    return found


def test_all_is_well_without_a_server() -> None:
    place = f"127.0.0.1:{free_port()}"
    told = doctor()
    assert told.returncode == 0, told.stderr
    assert "numpy" in line_of(told.stdout, "installed", "core")
    assert line_of(told.stdout, "installed", "stream")[0] == "ok"
    assert "Traceback" not in told.stdout + told.stderr
    wrong = doctor(SHADOWTIME_KAFKA_BOOTSTRAP=place)
    assert wrong.returncode == 1
    assert line_of(wrong.stdout, "servers of the settings", "kafka")[0] == "no"
    assert place in wrong.stdout


def test_a_server_that_answers_is_told(redis_server: Redis) -> None:
    told = doctor(SHADOWTIME_REDIS_URL=redis_server.url)
    assert told.returncode == 0, told.stdout
    assert line_of(told.stdout, "servers of the settings", "redis")[0] == "ok"


class Healthy(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200 if self.path == "/health" else 401)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def test_a_server_with_a_certificate_of_its_own_is_checked_with_its_authority(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    certify(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.pem", tmp_path / "server.key")
    with ThreadingHTTPServer((HOST, 0), Healthy) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        serving = threading.Thread(target=server.serve_forever)
        serving.start()
        try:
            for name in [name for name in os.environ if name.startswith("SHADOWTIME_")]:
                monkeypatch.delenv(name)
            url = f"https://{HOST}:{server.server_port}"
            monkeypatch.setenv("SHADOWTIME_VICTORIA_METRICS_URL", f"{url}/")
            with pytest.raises(StoreError, match=r"does not answer: .*certificate verify failed"):
                server_checks.victoria_metrics(PATIENCE)
            monkeypatch.setenv("SHADOWTIME_VICTORIA_METRICS_CA_FILE", str(tmp_path / "ca.pem"))
            assert server_checks.victoria_metrics(PATIENCE) == f"{url}/"
            monkeypatch.setenv("SHADOWTIME_VICTORIA_METRICS_URL", f"{url}/store")
            with pytest.raises(StoreError, match=f"^{url}/store answers /health with 401 Unauthorized; expected 200$"):
                server_checks.victoria_metrics(PATIENCE)
        finally:
            server.shutdown()
            serving.join()


def test_a_taken_port_is_told_with_the_remedy() -> None:
    with socket.socket() as taken:
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            taken.bind((HOST, 6080))
        except OSError:
            pytest.skip("another process has port 6080")
        taken.listen()
        told = doctor().stdout
    assert line_of(told, "ports of shadowtime stack up", "6080")[0] == "-"
    assert "choose another with --live-port" in told


def test_a_cache_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    told = doctor(XDG_CACHE_HOME=str(tmp_path / "file"))
    assert told.returncode == 1
    assert "set XDG_CACHE_HOME" in told.stdout


def test_the_number_of_compiled_kernels_is_told(tmp_path: Path) -> None:
    assert "none compiled; the first replay compiles them" in " ".join(
        doctor(XDG_CACHE_HOME=str(tmp_path)).stdout.split()
    )
    folder = tmp_path / "shadowtime" / "kernels" / "module"
    folder.mkdir(parents=True)
    (folder / "step.nbc").touch()
    assert ": 1 compiled" in " ".join(doctor(XDG_CACHE_HOME=str(tmp_path)).stdout.split())


def test_settings_that_are_none_end_with_one_line() -> None:
    told = doctor(SHADOWTIME_REDIS_URL="redis://:secret@localhost")
    assert "Traceback" not in told.stderr
    assert "secret" not in told.stdout + told.stderr
