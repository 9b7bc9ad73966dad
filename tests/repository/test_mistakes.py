"""What people mistype: one line that names the culprit, status 2, whatever the command; no server need be there."""

import socket
import sys
from importlib import import_module
from pathlib import Path

import pytest

from shadowtime.__main__ import module_of
from shadowtime.shared.cli.command_line import run_command
from shadowtime.stack.servers.ports import free_port
from tests.support.small_logs import job, write_log

MISTAKES = {  # LOG stands for a small log, GONE for a port where nobody listens, TAKEN for one where somebody does
    # replays
    "replay nope.swf": "nope.swf: cannot be read: No such file or directory",
    "replay LOG LOG": "given twice",
    "replay LOG@0": "processors 0",
    "replay LOG --jobs x": "--jobs",
    "replay LOG --policy lwf --baseline easy": "--baseline 'easy': not among the policies lwf",
    "replay LOG --jobs -1": "--jobs",
    "replay LOG --processors 1e3": "--processors",
    "replay LOG --seed 0.5": "--seed",
    "replay LOG --seed -1": "seed -1",
    "replay LOG --speed quick": "--speed 'quick'",
    "replay LOG --mode clsoed": "--mode",
    "replay LOG --transport redis": "--transport",
    "replay LOG --requests real": "--requests",
    "replay LOG --filter all": "--filter",
    "replay LOG --restartable maybe": "--restartable",
    "replay LOG --capacity 5": "--capacity '5'",
    "replay LOG --capacity 5:x": "--capacity '5:x'",
    "replay LOG --speedup fast": "--speedup 'fast'",
    "replay LOG --policy esay": "unknown policy 'esay'",
    "replay LOG --policy easy:oder=BF": "has no key 'oder'",
    "replay LOG --policy easy:candidates=FIFO": "candidates=FIFO",
    "replay LOG --policy easy:weight=heavy": "weight=heavy",
    "replay LOG --policy probabilistic:tau=2": "tau=2",
    "replay LOG --policy easy,fcfs": "'easy,fcfs'",
    "replay LOG --policy easy --policy easy": "given twice",
    "replay LOG --runtime nobody": "'nobody'",
    "replay LOG --runtime hmm --runtime last-two": "--runtime: expected one value in closed mode",
    "replay LOG --adjustment some": "'some'",
    "replay LOG --wait-bound tight": "'tight'",
    "replay LOG --run again": "--run",
    "replay LOG --set kafka-bootstrap=x": "--set",
    "replay LOG --transport kafka --set nope=1": "nope",
    "replay LOG --transport kafka --set partitions=many": "--partitions",
    "replay LOG --transport kafka --set kafka-bootstrap=127.0.0.1:GONE --set connect-seconds=0.2": "127.0.0.1:GONE",
    "replay LOG --json nowhere/out.json": "nowhere/out.json",
    "replay LOG --json same --schedule same": "same",
    "replay LOG --nope": "--nope",
    "replay LOG --policy": "--policy",
    "replay --list nobody": "nobody",
    # workers and what goes with them
    "serve shceduler": "shceduler",
    "serve scheduler --web-port many": "--web-port",
    "serve scheduler --web-port 99999": "--web-port",
    "serve scheduler --web-port TAKEN": "cannot listen on 127.0.0.1:TAKEN: Address already in use",
    "serve scheduler --web-port": "--web-port",
    "serve scheduler --snapshot-every 0": "--snapshot-every",
    "serve scheduler --webport 1": "--webport",
    "serve scheduler extra": "extra",
    "serve scheduler --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2 --web-port 0": "127.0.0.1:GONE",
    "serve scheduler --redis-password x --redis-password-file y": "redis_password_file",
    "serve scheduler --web-host nowhere.invalid": "nowhere.invalid",
    "serve scheduler --log-format xml": "--log-format",
    "serve metrics --victoria-metrics-url 127.0.0.1": "--victoria-metrics-url",
    "serve metrics --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "watch": "topic",
    "watch nothing": "'nothing'",
    "watch decisions --count none": "--count",
    "watch decisions --count 0": "--count",
    "watch decisions --job last": "--job",
    "watch decisions --kind Decision": "'Decision'",
    "watch dead-letters --user 3": "dead letters",
    "watch decisions --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "live --port http": "--port",
    "live --port 70000": "--port",
    "live --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "rebuild": "stage",
    "remove": "run",
    "remove gone --redis-url redis://127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "remove gone --metrics-key /nowhere": "/nowhere",
    "rebuild sheduler": "'sheduler'",
    "rebuild scheduler --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "ask --cluster kth": "--processors",
    "ask --cluster kth --processors few": "--processors: 'few'",
    "ask --cluster kth --processors 4 --requested-time 1h": "--requested-time: '1h'",
    "ask --cluster kth --processors 4 --quantile 95": "--quantile: '95'",
    "ask --cluster kth --processors 4 --confidence sure": "--confidence: 'sure'",
    "ask --cluster kth --job soon": "--job: 'soon'",
    "ask --cluster kth --processors 4 --redis-url redis://127.0.0.1:GONE --connect-seconds 0.2": "Redis",
    "ask --serve --port 70000": "--port",
    "ask --serve --redis-url redis://127.0.0.1:GONE --connect-seconds 0.2": "Redis",
    "topics --partitions 0": "--partitions",
    "settings --batch-size lots": "--batch-size",
    # dashboards
    "dashboards psuh": "psuh",
    "dashboards push": "--url",
    "dashboards push --url http://127.0.0.1": "--token",
    "dashboards push --url grafana --token abcdefgh": "grafana",
    "dashboards push --url http://127.0.0.1:GONE --token abcdefgh": "127.0.0.1:GONE cannot be used: Connection refused",
    "dashboards push --url http://nowhere.invalid --token abcdefgh": "nowhere.invalid cannot be used: ",
    # the local stack
    "stack upp": "upp",
    "stack up --workers none": "--workers",
    "stack up --workers 0": "--workers",
    "stack up --kafka-port kafka": "--kafka-port",
    "stack up --redis-port 0": "--redis-port",
    "stack down now": "now",
    # what makes logs and templates
    "generate --jobs some": "--jobs",
    "generate --jobs 5": "--processors",
    "search-templates nope.swf -o x": "nope.swf: cannot be read",
    "search-templates": "TRACE",
}


@pytest.mark.parametrize("typed", MISTAKES)
def test_a_mistake_is_told_in_one_line(
    typed: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_log(tmp_path, job(1), job(2), name="log.swf")
    monkeypatch.chdir(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        places = {"LOG": "log.swf", "GONE": str(free_port()), "TAKEN": str(listening.getsockname()[1])}
        _mistake(filled(typed, places), filled(MISTAKES[typed], places), tmp_path, monkeypatch, capsys)


def filled(text: str, places: dict[str, str]) -> str:
    for name, value in places.items():
        text = text.replace(name, value)
    return text


def _mistake(
    typed: str, told: str, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command, *arguments = typed.split()
    before = sorted(folder.rglob("*"))
    monkeypatch.setattr(sys, "argv", ["shadowtime", command, *arguments])
    with pytest.raises(SystemExit) as left:
        run_command(import_module(module_of(command)))
    captured = capsys.readouterr()
    assert left.value.code == 2
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert told in line
    assert captured.out == ""
    assert sorted(folder.rglob("*")) == before, "nothing was begun"
