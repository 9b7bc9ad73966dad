"""`push` against a double of Grafana's HTTP interface that keeps what it is given and records every call."""

import json
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from shadowtime.dashboards.push import Push, Pushed
from shadowtime.shared.errors import PushError
from shadowtime.stack.servers.ports import HOST, free_port
from tests.support.dashboard_queries import alert_rules, boards
from tests.support.forked import run_forked

TOKEN = "glsa_secret"
PREFERENCES = "/api/org/preferences"
THINGS = 3 + len(boards()) + len(alert_rules())


class Grafana(ThreadingHTTPServer):
    """Folders, data sources, dashboards and alert rules by the path at which each is found."""

    def __init__(self) -> None:
        super().__init__((HOST, free_port()), Answers)
        self.kept: dict[str, Any] = {PREFERENCES: {"theme": "light"}}
        self.calls: list[tuple[str, str]] = []
        self.status: int | None = None
        self.answer = b""
        self.kind = "text/plain"

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.server_address[1]}"

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [call for call in self.calls if call[0] != "GET"]


class Answers(BaseHTTPRequestHandler):
    server: Grafana

    def do_GET(self) -> None:
        self.server.calls.append(("GET", self.path))
        if not self.refused():
            found = self.server.kept.get(self.path)
            self.say(404 if found is None else 200, {"message": "not found"} if found is None else found)

    def do_POST(self) -> None:
        self.keep()

    def do_PUT(self) -> None:
        self.keep()

    def do_PATCH(self) -> None:
        self.keep()

    def keep(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.calls.append((self.command, self.path))
        if self.refused():
            return
        if self.path == "/api/dashboards/db":
            uid = body["dashboard"]["uid"]
            stored = {"dashboard": body["dashboard"] | {"id": 7, "version": 3, "schemaVersion": 99}}
            self.server.kept[f"/api/dashboards/uid/{uid}"] = stored | {"meta": {"folderUid": body["folderUid"]}}
        elif self.path.startswith("/api/datasources"):
            self.server.kept[f"/api/datasources/uid/{body['uid']}"] = body | {"id": 1, "readOnly": False}
        elif self.path == PREFERENCES:
            self.server.kept[PREFERENCES] |= body
        elif self.path == "/api/folders":
            self.server.kept[f"/api/folders/{body['uid']}"] = body | {"id": 2}
        else:
            self.server.kept[f"/api/v1/provisioning/alert-rules/{body['uid']}"] = body | {"id": 3, "provenance": ""}
        self.say(200, {"message": "done"})

    def refused(self) -> bool:
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.say(401, {"message": "Invalid API key"})
            return True
        if self.server.status is not None:
            self.send_response(self.server.status)
            self.send_header("Content-Type", self.server.kind)
            self.end_headers()
            self.wfile.write(self.server.answer)
            return True
        return False

    def say(self, status: int, body: Any) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002
        pass


@pytest.fixture
def grafana() -> Iterator[Grafana]:
    with Grafana() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def push(grafana: Grafana, token: str = TOKEN) -> list[Pushed]:
    told: list[Pushed] = []
    Push(grafana.url, token, "http://victoria:8428").run(told.append)
    return told


def test_the_first_push_creates_everything(grafana: Grafana) -> None:
    assert {each.outcome for each in push(grafana)} == {"created"}
    assert len(grafana.writes) == THINGS
    assert grafana.kept["/api/datasources/uid/victoria-metrics"]["url"] == "http://victoria:8428"
    for board in boards().values():
        stored = grafana.kept[f"/api/dashboards/uid/{board['uid']}"]
        assert stored["meta"] == {"folderUid": "shadowtime"}
        assert stored["dashboard"]["panels"] == board["panels"]
        assert stored["dashboard"]["annotations"] == board["annotations"]
    for rule in alert_rules():
        stored = grafana.kept[f"/api/v1/provisioning/alert-rules/{rule['uid']}"]
        assert (stored["folderUID"], stored["ruleGroup"], stored["data"]) == ("shadowtime", "Shadowtime", rule["data"])


def test_a_second_push_writes_nothing(grafana: Grafana) -> None:
    push(grafana)
    grafana.calls.clear()
    assert {each.outcome for each in push(grafana)} == {"as it was"}
    assert grafana.writes == []


def test_what_was_changed_by_hand_is_brought_back(grafana: Grafana) -> None:
    push(grafana)
    grafana.calls.clear()
    grafana.kept["/api/dashboards/uid/shadowtime-health"]["dashboard"]["panels"][0]["title"] = "mine"
    grafana.kept["/api/datasources/uid/victoria-metrics"]["url"] = "http://elsewhere:1"
    grafana.kept["/api/v1/provisioning/alert-rules/shadowtime-lag"]["for"] = "9h"
    changed = {each.what for each in push(grafana) if each.outcome == "changed"}
    assert changed == {"dashboard Health", "data source VictoriaMetrics", "alert rule A stage falls behind"}
    assert len(grafana.writes) == 3


def test_our_home_is_the_first_page_unless_another_was_chosen(grafana: Grafana) -> None:
    push(grafana)
    assert grafana.kept[PREFERENCES] == {"theme": "light", "homeDashboardUID": "shadowtime-home"}
    grafana.kept[PREFERENCES]["homeDashboardUID"] = "theirs"
    assert Pushed("home of the organisation", "left at dashboard theirs") in push(grafana)
    assert grafana.kept[PREFERENCES]["homeDashboardUID"] == "theirs"


def test_a_refused_token_is_named_and_not_shown(grafana: Grafana) -> None:
    with pytest.raises(PushError, match="rejects the token") as caught:
        push(grafana, "wrong-token")
    assert "wrong-token" not in str(caught.value)
    assert grafana.writes == []


@pytest.mark.parametrize(
    ("status", "answer", "reason"),
    [
        (403, b'{"message": "Access denied"}', "make its service account an admin"),
        (500, b"boom", "boom"),
        (200, b"<html>a proxy</html>", "cannot be used"),
    ],
)
def test_other_troubles_are_named(grafana: Grafana, status: int, answer: bytes, reason: str) -> None:
    grafana.status, grafana.answer = status, answer
    with pytest.raises(PushError, match=reason):
        push(grafana)


@pytest.mark.parametrize(
    ("kind", "answer"),
    [("text/html", b"<html>sign in</html>")]
    + [("application/json", answer) for answer in (b"{}", b"[]", b"null", b'"ok"', b'{"uid": 1}')],
)
def test_what_is_no_grafana_is_told_so(grafana: Grafana, kind: str, answer: bytes) -> None:
    grafana.status, grafana.answer, grafana.kind = 200, answer, kind
    with pytest.raises(PushError, match="cannot be used: the answer is not from Grafana"):
        push(grafana)


def test_a_token_from_a_file_is_taken_and_a_malformed_one_is_not_shown(grafana: Grafana) -> None:
    push(grafana, f"{TOKEN}\n")
    for token in (f"{TOKEN}\nand more", f"{TOKEN}ü"):
        with pytest.raises(PushError, match="a character that is not printable ASCII") as caught:
            push(grafana, token)
        assert TOKEN not in str(caught.value)


def command(*arguments: str) -> "subprocess.CompletedProcess[str]":
    return run_forked("dashboards", *arguments)


def test_the_command_line_tells_what_was_done(grafana: Grafana) -> None:
    done = command("push", "--url", grafana.url, "--token", TOKEN)
    assert done.returncode == 0, done.stderr
    assert "dashboard Bounds on waits: created" in done.stderr
    assert len(done.stderr.splitlines()) == THINGS


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "url",
    [
        *(f"http://{HOST}:1", "grafana.example.org", "http://admin:admin@localhost:3000"),
        *("http://", "http://[", "http://host:abc", "http://host:99999"),
    ],
)
def test_a_grafana_that_is_away_is_one_line(url: str) -> None:
    done = command("push", "--url", url, "--token", TOKEN)
    assert done.returncode == 2
    assert url in done.stderr
    assert "Traceback" not in done.stderr
    assert TOKEN not in done.stderr


def test_what_is_no_store_or_no_token_is_told_before_anything_is_asked(grafana: Grafana) -> None:
    for token, store, reason in (
        ("", "http://victoria:8428", "expected a token of a service account: it is empty"),
        (TOKEN, "10.0.0.5:8428", r"'10\.0\.0\.5:8428' is not a URL of a server, such as http://127"),
    ):
        with pytest.raises(PushError, match=reason):
            Push(grafana.url, token, store)
    assert grafana.calls == []


def test_generate_leaves_the_committed_files_alone() -> None:
    done = command("generate")
    assert done.returncode == 0, done.stderr
    assert "all files are up to date" in done.stderr
