"""What people mistype: one line that names the culprit, status 2, whatever the command; no server need be there."""

import socket
import sys
from importlib import import_module
from pathlib import Path

import pytest

from shadowtime.stack.servers.ports import free_port
from tests.replayer.small_logs import job, write_log

MISTAKES = {  # LOG stands for a small log, GONE for a port where nobody listens, TAKEN for one where somebody does
    # replayer
    "replayer nope.swf": "nope.swf: cannot be read: No such file or directory",
    "replayer .": ".: cannot be read: Is a directory",
    "replayer LOG LOG": "given twice",
    "replayer LOG@0": "processors 0",
    "replayer LOG --jobs x": "--jobs",
    "replayer LOG --policy lwf --baseline easy": "--baseline 'easy': not among the policies lwf",
    "replayer LOG --jobs -1": "--jobs",
    "replayer LOG --processors 1e3": "--processors",
    "replayer LOG --seed 0.5": "--seed",
    "replayer LOG --seed -1": "--seed -1",
    "replayer LOG --speed quick": "--speed 'quick'",
    "replayer LOG --mode clsoed": "--mode",
    "replayer LOG --transport redis": "--transport",
    "replayer LOG --requests real": "--requests",
    "replayer LOG --filter all": "--filter",
    "replayer LOG --restartable maybe": "--restartable",
    "replayer LOG --capacity 5": "--capacity '5'",
    "replayer LOG --capacity 5:x": "--capacity '5:x'",
    "replayer LOG --speedup fast": "--speedup 'fast'",
    "replayer LOG --policy esay": "unknown policy 'esay'",
    "replayer LOG --policy easy:oder=BF": "has no key 'oder'",
    "replayer LOG --policy easy:order=FIFO": "order=FIFO",
    "replayer LOG --policy easy:weight=heavy": "weight=heavy",
    "replayer LOG --policy probabilistic:tau=2": "tau=2",
    "replayer LOG --policy easy,fcfs": "'easy,fcfs'",
    "replayer LOG --policy easy --policy easy": "given twice",
    "replayer LOG --runtime nobody": "'nobody'",
    "replayer LOG --runtime hmm --runtime last-two": "--runtime is taken once",
    "replayer LOG --adjustment some": "'some'",
    "replayer LOG --wait-bound tight": "'tight'",
    "replayer LOG --run again": "--run",
    "replayer LOG --set kafka-bootstrap=x": "--set",
    "replayer LOG --transport kafka --set nope=1": "nope",
    "replayer LOG --transport kafka --set partitions=many": "--partitions",
    "replayer LOG --transport kafka --set kafka-bootstrap=127.0.0.1:GONE --set connect-seconds=0.2": "127.0.0.1:GONE",
    "replayer LOG --json nowhere/out.json": "nowhere/out.json",
    "replayer LOG --json same --schedule same": "same",
    "replayer LOG --nope": "--nope",
    "replayer LOG --policy": "--policy",
    "replayer --list nobody": "nobody",
    # workers and what goes with them
    "services shceduler": "shceduler",
    "services scheduler --web-port many": "--web-port",
    "services scheduler --web-port 99999": "--web-port",
    "services scheduler --web-port TAKEN": "cannot listen on 127.0.0.1:TAKEN: Address already in use",
    "services scheduler --web-port": "--web-port",
    "services scheduler --snapshot-every 0": "--snapshot-every",
    "services scheduler --webport 1": "--webport",
    "services scheduler extra": "extra",
    "services scheduler --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2 --web-port 0": "127.0.0.1:GONE",
    "services scheduler --redis-password x --redis-password-file y": "redis_password_file",
    "services scheduler --web-host nowhere.invalid": "nowhere.invalid",
    "services scheduler --log-format xml": "--log-format",
    "services metrics --victoria-metrics-url 127.0.0.1": "--victoria-metrics-url",
    "services metrics --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "services watch": "topic",
    "services watch nothing": "'nothing'",
    "services watch decisions --count none": "--count",
    "services watch decisions --count 0": "--count",
    "services watch decisions --user me": "--user",
    "services watch decisions --job last": "--job",
    "services watch decisions --kind Decision": "'Decision'",
    "services watch dead-letters --user 3": "dead letters",
    "services watch decisions --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "shadowtime.services.processes.live_command --port http": "--port",
    "shadowtime.services.processes.live_command --port 70000": "--port",
    "shadowtime.services.processes.live_command --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": (
        "127.0.0.1:GONE"
    ),
    "services rebuild": "stage",
    "services rebuild sheduler": "'sheduler'",
    "services rebuild scheduler --kafka-bootstrap 127.0.0.1:GONE --connect-seconds 0.2": "127.0.0.1:GONE",
    "services ask": "--cluster",
    "services ask --cluster kth": "--processors",
    "services ask --cluster kth --processors few": "--processors: 'few'",
    "services ask --cluster kth --processors 4 --requested-time 1h": "--requested-time: '1h'",
    "services ask --cluster kth --processors 4 --quantile 95": "--quantile: '95'",
    "services ask --cluster kth --processors 4 --confidence sure": "--confidence: 'sure'",
    "services ask --cluster kth --processors 4 --queue long": "--queue: 'long'",
    "services ask --cluster kth --processors 4 --redis-url redis://127.0.0.1:GONE --connect-seconds 0.2": "Redis",
    "services ask --serve --port 70000": "--port",
    "services ask --serve --redis-url redis://127.0.0.1:GONE --connect-seconds 0.2": "Redis",
    "services topics --partitions 0": "--partitions",
    "services settings --batch-size lots": "--batch-size",
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
    "replayer.generate_command --jobs some": "--jobs",
    "replayer.generate_command --jobs 5": "--processors",
    "replayer.template_search_command nope.swf -o x": "nope.swf: cannot be read",
    "replayer.template_search_command": "TRACE",
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
    monkeypatch.setattr(sys, "argv", [command, *arguments])
    entry = import_module(command if "." in command else f"{command}.command_line")
    with pytest.raises(SystemExit) as left:
        getattr(entry, "command_line", entry.main)()
    captured = capsys.readouterr()
    assert left.value.code == 2
    (line,) = captured.err.splitlines()
    assert line.startswith("error: ")
    assert told in line
    assert captured.out == ""
    assert sorted(folder.rglob("*")) == before, "nothing was begun"
