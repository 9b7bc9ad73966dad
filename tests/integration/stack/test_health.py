"""What the containers' health checks run, against real pages and none."""

import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE


class Page(http.server.BaseHTTPRequestHandler):
    """Answers with the status that its path names."""

    def do_GET(self) -> None:
        self.send_response(int(self.path[1:]))
        self.end_headers()
        self.wfile.write(b'{"state": "starting"}')

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def port() -> Iterator[int]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Page) as server:
        threading.Thread(target=server.serve_forever).start()
        yield server.server_port
        server.shutdown()


def check(*arguments: str) -> tuple[int, str]:
    """Run it as a container does; without site packages, so that it takes the standard library alone."""
    command = [sys.executable, "-S", "-m", "shadowtime.stack.compose.health", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False)
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize(("answer", "status"), [(200, 0), (503, 1)])
def test_the_page_s_own_words_are_told(port: int, answer: int, status: int) -> None:
    assert check(f"http://127.0.0.1:{port}/{answer}") == (status, '{"state": "starting"}\n')


def test_what_does_not_answer_yet_is_starting() -> None:
    url = f"http://127.0.0.1:{free_port()}/health"
    assert check(url) == (1, f"starting: nothing answers at {url} yet: [Errno 111] Connection refused\n")


@pytest.mark.parametrize("arguments", [(), ("file:///etc/passwd",), ("http://a", "http://b")])
def test_it_asks_one_page(arguments: tuple[str, ...]) -> None:
    status, told = check(*arguments)
    assert (status, told.count("\n")) == (2, 1)
