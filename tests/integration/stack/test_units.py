"""Systemd units: what `systemd-analyze` says of them, and that their servers start, ask for passwords and report."""

import os
import pwd
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from redis import Redis as Client

from shadowtime.shared.stages import WRITTEN_BY
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.roles import FOLLOW, REDIS
from shadowtime.stack.servers import SERVERS, Server
from shadowtime.stack.servers.ports import free_port
from tests.support.real_servers import require

USER = next((user.pw_name for user in pwd.getpwall() if user.pw_name in ("games", "daemon", "nobody")), "nobody")


def install(root: Path, *options: str, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `install-units` with a made-up Kafka and virtual environment."""
    kafka, prefix = root / "kafka", root / "venv"
    (kafka / "libs").mkdir(parents=True, exist_ok=True)
    (kafka / "libs" / "kafka-clients-4.3.1.jar").touch()
    (prefix / "bin").mkdir(parents=True, exist_ok=True)
    for name in ("shadowtime", "python"):
        if not (prefix / "bin" / name).exists():
            (prefix / "bin" / name).symlink_to("/bin/true")
    usual = {"--user": USER, "--prefix": prefix, "--kafka-home": home or kafka, "--root": root}
    words = [str(word) for name, value in usual.items() if name not in options for word in (name, value)]
    command = [sys.executable, "-m", "shadowtime", "install-units", *words, *options]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_systemd_accepts_every_unit_and_rates_it_at_most_4(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("there is no systemd-analyze")
    beside = "--cluster mine --policy easy --policy 'easy:queue=sjf'"
    done = install(tmp_path, "--follow", "slurm --cluster mine --via 'ssh a'", "--shadow", beside)
    assert done.returncode == 0, done.stderr
    units = sorted((tmp_path / "etc/systemd/system").iterdir())
    assert len(units) == 15
    verified = subprocess.run([analyze, "verify", *map(str, units)], capture_output=True, text=True, check=False)
    assert verified.returncode == 0, verified.stderr
    assert "Unknown" not in verified.stderr
    for unit in units:
        if unit.suffix == ".service":
            rated = [analyze, "security", "--offline=yes", "--threshold=40", "--no-pager", str(unit)]
            assert subprocess.run(rated, capture_output=True, check=False).returncode == 0, unit.name


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--redis", "redis://:secret@h:6379/0"], "--redis: the address contains a password, and every user can read"),
        (["--redis", "redis://:sec/ret@h:6379/0"], "--redis: the address contains a password"),
        (["--redis", "h:6379"], "--redis: 'h:6379' is not a URL of Redis"),
        (["--kafka", "k1:kafka"], "--kafka: expected brokers as HOST:PORT,HOST:PORT, found 'k1:kafka'"),
        (["--victoria-metrics", "10.0.0.5:8428"], "--victoria-metrics: '10.0.0.5:8428' is not a URL of a server"),
        (["--live", "--name 'x"], '--live "--name \'x": No closing quotation'),
        (["--redis-port", "9092"], "kafka and redis cannot both listen on 127.0.0.1:9092; change a port"),
    ],
)
def test_addresses_and_ports_that_cannot_work_are_refused(tmp_path: Path, options: list[str], message: str) -> None:
    done = install(tmp_path, *options)
    assert (done.returncode, message in done.stderr) == (2, True), done.stderr
    assert "secret" not in done.stderr
    assert not (tmp_path / "etc").exists()


def test_a_second_call_removes_units_that_are_not_wanted_any_more_and_no_others(tmp_path: Path) -> None:
    folder = tmp_path / "etc/systemd/system"
    assert install(tmp_path, "--follow", "slurm --cluster old").returncode == 0
    (folder / "shadowtime-backup.service").write_text("[Service]\nExecStart=/bin/true\n")
    done = install(tmp_path, "--follow", "slurm --cluster new", "--kafka", "k1:9092")
    assert f"removed {folder}/shadowtime-follow-old.service" in done.stdout
    assert (folder / "shadowtime-backup.service").exists()
    assert (folder / "shadowtime-follow-new.service").exists()
    assert not (folder / "shadowtime-kafka.service").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--user", "nobodyatall"], "there is no user 'nobodyatall' on this machine; make one: useradd --system"),
        (["--user", "root"], "expected an ordinary user"),
        (["--prefix", "opt"], "expected an absolute path"),
        (["--prefix", "/nowhere"], "/nowhere/bin/shadowtime cannot be run; install Shadowtime there: python3 -m venv"),
        (["--kafka-home", "/nowhere"], "/nowhere has no Kafka: expected libs/kafka-clients"),
        (["--follow", "slurm"], "expected --cluster NAME once"),
    ],
)
def test_a_wrong_option_is_one_line_with_the_remedy(tmp_path: Path, options: list[str], message: str) -> None:
    done = install(tmp_path, *options)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "etc").exists()


def test_a_python_that_units_cannot_see_is_refused(tmp_path: Path) -> None:
    (tmp_path / "venv/bin").mkdir(parents=True)
    hidden = next((path for path in (Path("/root"), Path("/home")) if path.exists()), None)
    if hidden is None or not os.access(hidden, os.X_OK):
        pytest.skip("there is no home to look into")
    there = next((path for path in hidden.rglob("python3.*") if os.access(path, os.X_OK) and path.is_file()), None)
    if there is None:
        pytest.skip(f"there is no Python below {hidden}")
    (tmp_path / "venv/bin/python").symlink_to(there)
    (tmp_path / "venv/bin/shadowtime").symlink_to("/bin/true")
    done = install(tmp_path)
    assert done.returncode == 2
    assert f"units see nothing below {hidden} (ProtectHome)" in done.stderr


@pytest.mark.parametrize("server", SERVERS, ids=lambda server: server.name)
def test_a_server_becomes_the_process_of_its_unit_and_reports_once_it_is_ready(
    tmp_path: Path, server: type[Server]
) -> None:
    require(server)
    ports = [free_port() for _ in range(5)]
    kafka, redis, store, web, live = ports
    plan = StackPlan(str(tmp_path), tuple(WRITTEN_BY), 1, kafka, redis, store, web, live, secure=True)
    plan.write()
    launch = [sys.executable, "-m", "shadowtime.stack.units.launch", str(tmp_path)]
    subprocess.run([*launch, "prepare"], check=True)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as channel:
        channel.bind(str(tmp_path / "notify"))
        channel.settimeout(120)
        environment = os.environ | {"NOTIFY_SOCKET": str(tmp_path / "notify")}
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen([*launch, "start", server.name], env=environment, stdout=log, stderr=log)
        try:
            assert channel.recv(100) == b"READY=1", (tmp_path / "log").read_text()
            name = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")[0]
            assert b"python" not in name
            if server.name == REDIS:
                password = plan.access.secret(FOLLOW, REDIS)
                with Client(port=plan.redis_port, username=FOLLOW, password=password) as client:
                    assert client.ping()
        finally:
            process.terminate()
            process.wait(60)
