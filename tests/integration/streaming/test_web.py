"""Finding 14: a server answers to names that nobody can give away, wherever it listens; and what else all have."""

import inspect
import re
import socket
from ipaddress import ip_address
from pathlib import Path
from types import ModuleType

import pytest
from aiohttp import web

from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes import command_line as commands
from shadowtime.services.processes import live_command
from shadowtime.services.processes.ask import answers
from shadowtime.services.processes.ask import routes as ask
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.live import asked
from shadowtime.services.processes.live import page as live
from shadowtime.services.processes.live.page import LivePage
from shadowtime.services.processes.live.view import LiveRuns
from shadowtime.services.processes.metrics.writer_health import MetricsHealth
from shadowtime.services.shadows.comparison import stored as kept
from shadowtime.shared.cli import logs
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.streaming.web import connections as web_connections
from shadowtime.shared.streaming.web import server as shared_web
from shadowtime.shared.streaming.web.host_names import AllowedNames
from shadowtime.shared.streaming.worker.health import worker_pages
from shadowtime.stack.local.plan import StackPlan
from tests.support.echo_stage import STAGE
from tests.support.memory_reader import MemoryReader
from tests.support.web_server import LOOPS, serving

DOCS = ROOT / "docs" / "http.md"
HERE = ("127.0.0.1", "127.0.0.1:99", "LOCALHOST", "localhost:6080", "[::1]:6080", "127.8.8.8", "[::1]")
ELSEWHERE = (
    "evil.example",
    "127.0.0.1.evil.example",
    "localhost.evil.example",
    "evil.localhost",
    "localhost.",
    "0.0.0.0",
    "[::]",
    "10.255.255.254",
    "[2001:db8::1]:6080",
    "2130706433",
    "0x7f.1",
)
MALFORMED = ("", "[", "[::1", "::1", "127.0.0.1@evil.example", "localhost evil", "localhost,evil", "localhost:x", "%6c")
BINDS = ("127.0.0.1", "localhost", "127.1", "0.0.0.0", "::", "::1", "", socket.gethostname(), "127.0.0.2")


async def _there() -> None:
    pass


APPLICATIONS = {
    "ask": lambda: ask.application(Answers(STAGE, MemoryReader()), _there),
    "live": lambda: LivePage(LiveRuns()).application(),
    "metrics": lambda: worker_pages(lambda: (True, {}), MetricsHealth().registry),
}


def request(host: str, path: str = "/health", version: str = "1.1") -> bytes:
    return f"GET {path} HTTP/{version}\r\nHost: {host}\r\n\r\n".encode()


def reached_at(bind: str) -> str:
    """Return an address at which a server that was told to listen there is found."""
    found = socket.getaddrinfo(bind or None, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0][4][0]
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(str(found), str(found))


@pytest.mark.parametrize("loop", LOOPS)
@pytest.mark.parametrize("name", APPLICATIONS)
@pytest.mark.parametrize("bind", BINDS)
def test_finding_14_other_names_are_refused_however_it_listens(bind: str, name: str, loop: str) -> None:
    at = reached_at(bind)
    with serving(APPLICATIONS[name](), loop, bind) as served:
        own = f"[{at}]" if ":" in at else at
        for host in (*HERE, own, f"{own}:6080"):
            assert served.ask(request(host), host=at)[0] == 200, host
        for host in ELSEWHERE:
            status, body = served.ask(request(host), host=at)
            assert status == 421, host
            assert b"--allow" in body
        for host in MALFORMED:
            assert served.ask(request(host), host=at)[0] == 400, host


@pytest.mark.parametrize("name", APPLICATIONS)
def test_finding_14_a_request_names_one_host_in_one_way(name: str) -> None:
    with serving(APPLICATIONS[name](), host="0.0.0.0") as served:
        for status, sent in {
            400: b"GET /health HTTP/1.1\r\n\r\n",
            421: request("127.0.0.1", "http://evil.example/health"),
        }.items():
            assert served.ask(sent)[0] == status
        assert served.ask(b"GET /health HTTP/1.0\r\n\r\n")[0] == 400
        assert served.ask(b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n")[0] == 400
        assert (
            served.ask(b"GET /health HTTP/1.1\r\nHost: evil.example\r\nX-Forwarded-Host: localhost\r\n\r\n")[0] == 421
        )
        assert served.ask(request("evil.example", "http://127.0.0.1/health"))[0] == 421
        assert served.ask(request("evil.example", version="1.0"))[0] == 421
        assert served.ask(request("evil.example", "/no/such/page"))[0] == 421
        assert served.ask(request("localhost", "http://[::1]:6080/health"))[0] == 200
        assert served.ask(request("localhost", "*"))[0] in {400, 404}
        assert served.ask(b"CONNECT evil.example:80 HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] in {0, 400, 404, 405, 421}


def test_finding_14_the_address_that_a_connection_was_made_to_is_allowed_and_no_other() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # sends nothing; tells from which address one would
        except OSError:
            pytest.skip("this machine has no address but the loopback's")
        own = probe.getsockname()[0]
    assert not ip_address(own).is_loopback
    with serving(APPLICATIONS["metrics"](), host="0.0.0.0") as served:
        assert served.ask(request(f"{own}:6066"), host=own)[0] == 200  # as VictoriaMetrics asks in a compose network
        assert served.ask(request(f"{own}:6066"), host="127.0.0.1")[0] == 421
        assert served.ask(request("scheduler:6066"), host=own)[0] == 421
    with serving(APPLICATIONS["metrics"](), host="0.0.0.0", names=["scheduler", "Live.Example.org"]) as served:
        assert served.ask(request("scheduler:6066"), host=own)[0] == 200
        assert served.ask(request("live.example.org"), host=own)[0] == 200
        assert served.ask(request("scheduler.evil.example"), host=own)[0] == 421


@pytest.mark.parametrize("bind", ["localhost", "127.1", socket.gethostname()])
def test_finding_14_the_name_after_host_is_allowed(bind: str) -> None:
    with serving(APPLICATIONS["metrics"](), host=bind) as served:
        assert served.ask(request(f"{bind}:{served.port}".upper()), host=reached_at(bind))[0] == 200


@pytest.mark.parametrize("name", ["", "*", "a b", "http://live.example.org", "live:6080", "0.0.0.0", "::", "x" * 500])
def test_finding_14_what_is_no_name_cannot_be_allowed(name: str) -> None:
    with pytest.raises(SettingsError, match="is not a host name") as raised:
        AllowedNames("127.0.0.1", [name])
    assert len(str(raised.value)) < 300


@pytest.mark.parametrize("host", ["no.such.host.invalid", "x" * 300, "a\x00b", "256.1.1.1", "192.0.2.1"])
def test_where_it_cannot_listen_is_named(host: str) -> None:
    with pytest.raises(SettingsError, match="cannot listen on") as raised, serving(web.Application(), host=host):
        pass
    assert len(str(raised.value)) < 400


def test_health_says_when_not_all_is_well() -> None:
    told = {"stage": "scheduler", "healthy": False, "quarantined": 1}
    with serving(worker_pages(lambda: (False, told), MetricsHealth().registry)) as served:
        status, body = served.ask(request("localhost"))
        assert (status, body) == (503, b'{"stage": "scheduler", "healthy": false, "quarantined": 1}')
        assert b"shadowtime_" in served.ask(request("localhost", "/metrics"))[1]
        assert served.ask(request("localhost", "/nothing")) == (404, b"Not Found\n")


def test_descriptors_are_given_back() -> None:
    def there() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    for loop in LOOPS:
        with serving(APPLICATIONS["metrics"](), loop) as served:
            served.ask(request("localhost"))
            before = there()
            for _ in range(50):
                served.ask(request("localhost"))
            assert there() <= before + 5


@pytest.mark.parametrize("workers", [1, 2, 3, 4])
def test_what_listens_gets_in_nobodys_way_by_default(workers: int) -> None:
    plan = StackPlan("/tmp/stack", tuple(stage.name for stage in STAGES), workers)
    asking = inspect.signature(commands.ask).parameters["port"].default
    assert inspect.signature(live_command.live).parameters["port"].default == plan.live_port
    ports = [*(worker.port for worker in plan.make_workers()), plan.live_port, asking]
    assert len(ports) == len(set(ports))


def test_the_docs_tell_the_limits_that_there_are() -> None:
    rows = re.findall(r"^\|[^|]+\| ([\d,]+) \| `(\w+)\.(\w+)` \|$", DOCS.read_text(), re.MULTILINE)
    assert len(rows) == 14
    modules = (web_connections, shared_web, logs, live, answers, asked, kept)
    for value, module, constant in rows:
        found = next(each for each in modules if _stem(each) == module)
        assert float(value.replace(",", "")) == getattr(found, constant), constant


def _stem(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]
