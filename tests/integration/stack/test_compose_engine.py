"""docker-compose.yml on a real engine: all healthy, a replay as the embedded one whoever is killed, and nobody enters.

`SHADOWTIME_ENGINE` says where an engine is: `own` brings one up with its images' stand-ins (`engine/engine.sh`: root on
Debian, ten minutes) and fetches Kafka's jars where they are missing. A URL such as `unix:///run/docker.sock` is an
engine that has the images or can pull them. `required` is the default engine of this machine or else an own one.
Without it these tests skip; where it promises one, by `required` or with `CI` set, an engine that cannot be had is a
failure.

Everything starts from a copy of the checkout as a clone under umask 077 is, by `make up` and `make down`, one after the
other: the tests of this file go by their order.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.metric_names import FOLLOW_EVENTS, FOLLOW_JOB, SCRAPE_JOB
from shadowtime.stack.compose.credentials import FLOW, USERS
from shadowtime.stack.install import install
from shadowtime.stack.packages import consent
from shadowtime.stack.roles import FOLLOW
from shadowtime.stack.servers.ports import free_port
from shadowtime.stack.servers.servers import Kafka
from tests.support.compose import resolved, services
from tests.support.patience import PATIENCE

ENGINE = Path(__file__).with_name("engine")
SCRIPT, FOREIGN = ENGINE / "engine.sh", ENGINE / "foreign.py"
MINUTES = 60.0
UP, REPLAY = 25 * MINUTES, 15 * MINUTES
ONCE = {"credentials", "rights", "token"}
NETWORKS = ["kafka", "redis", "scrape", "store", "results", "front"]
RUNNING = sorted({name for name, each in services().items() if "profiles" not in each} - ONCE - {"replayer"})
KILLED = ["scheduler", "redis", "runtime_distribution", "kafka"]
"""And with them the replayer."""
JOBS = 150
SECONDS_OF_LOG = 299_580
"""From the first of these jobs to the last, in the bundled trace."""
WATCH = ("reader", "shadowtime", "watch", "decisions")
EVENTS = 4
"""Of a run with one job, from its opening to the end of the job."""
QUERY = "api/v1/query?latency_offset=1s&query="
BINARY = {"B": 1.0, "KiB": 2.0**10, "MiB": 2.0**20, "GiB": 2.0**30}

pytestmark = pytest.mark.engine


class Project:
    """One compose project on one engine, in a folder with a checkout."""

    name = "shadowtime-test"

    def __init__(self, folder: Path, engine: dict[str, str]) -> None:
        self.folder = folder
        told = {"COMPOSE_PROJECT_NAME": self.name, "REPLAY_SPEED": "1"}
        told |= {"GRAFANA_PORT": str(free_port()), "LIVE_PORT": str(free_port())}
        self.environment = dict(os.environ) | engine | told
        self.volumes = set(self.docker("volume", "ls", "--quiet").split())
        self.memory: dict[str, list[float]] = defaultdict(list)
        """Samples of what each container has, in MiB."""

    def run(self, *command: str, seconds: float = 2 * MINUTES, check: bool = True, stdin: str | None = None) -> str:
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
        assert not check or done.returncode == 0, f"{' '.join(command)}: {done.stdout[-2000:]}{done.stderr[-2000:]}"
        return done.stdout + ("" if check else done.stderr)

    def docker(self, *arguments: str, seconds: float = 2 * MINUTES, check: bool = True) -> str:
        return self.run("docker", *arguments, seconds=seconds, check=check)

    def compose(self, *arguments: str, seconds: float = 2 * MINUTES, check: bool = True) -> str:
        return self.docker("compose", *arguments, seconds=seconds, check=check)

    def start(self, *arguments: str) -> "subprocess.Popen[bytes]":
        """Begin a command of `docker`; what it writes is heard, what it complains of is not."""
        return subprocess.Popen(
            ["docker", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def states(self) -> dict[str, str]:
        lines = self.compose("ps", "-a", "--format", "json").splitlines()
        found = [json.loads(line) for line in lines]
        return {each["Service"]: each["Health"] or f"{each['State']} {each['ExitCode']}" for each in found}

    def containers(self) -> dict[str, dict[str, Any]]:
        """Return what `docker inspect` says of each service's container."""
        ids = self.compose("ps", "-a", "-q").split()
        found = json.loads(self.docker("inspect", *ids))
        return {each["Config"]["Labels"]["com.docker.compose.service"]: each for each in found}

    def wait(self, *names: str) -> None:
        """Wait until these are healthy."""
        until = time.monotonic() + UP
        while {self.states().get(name) for name in names} != {"healthy"}:
            assert time.monotonic() < until, self.states()
            time.sleep(1.0)

    def measure(self) -> dict[str, float]:
        """Return the memory that each container of the project has now, without the cache of files."""
        lines = self.docker("stats", "--no-stream", "--format", "{{.Name}} {{.MemUsage}}", check=False).splitlines()
        found = re.findall(rf"^{self.name}-(\w[\w-]*)-1 ([0-9.]+)(\w+) /", "\n".join(lines), re.MULTILINE)
        return {name: float(number) * BINARY[unit] / BINARY["MiB"] for name, number, unit in found}

    def watch_memory(self, ended: threading.Event) -> None:
        while not ended.wait(1.0):
            for name, used in self.measure().items():
                self.memory[name].append(used)

    def foreign(self, network: str) -> dict[str, str]:
        """Return what a container that belongs to nobody tries on a network, and how each attempt ends."""
        place = ["--rm", "--interactive", "--network", f"{self.name}_{network}", "--entrypoint", "python"]
        command = ["docker", "run", *place, services()["scheduler"]["image"], "-", network]
        attempts: dict[str, str] = json.loads(self.run(*command, stdin=FOREIGN.read_text()))
        return attempts

    def kill(self, container: dict[str, Any]) -> None:
        """End its first process by SIGKILL, and not by `docker kill`: what the engine ends it does not start again."""
        image = services()["scheduler"]["image"]
        command = ["-c", f"import os; os.kill({container['State']['Pid']}, 9)"]
        rights = ["--pid", "host", "--user", "0", "--cap-drop", "ALL", "--cap-add", "KILL", "--network", "none"]
        self.docker("run", "--rm", *rights, "--entrypoint", "python", image, *command)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """How to reach an engine, as the environment of `docker`."""
    wanted = os.environ.get("SHADOWTIME_ENGINE")
    if not wanted:
        pytest.skip("no Docker engine is named (SHADOWTIME_ENGINE=own brings one up, as root on Debian)")
    if wanted not in ("own", "required"):
        yield {"DOCKER_HOST": wanted}
        return
    asked = ["docker", "version"]
    if wanted == "required" and shutil.which(asked[0]) and subprocess.run(asked, check=False).returncode == 0:
        yield {}
        return
    folder = Path(os.environ.get("SHADOWTIME_ENGINE_FOLDER") or tmp_path_factory.mktemp("engine"))
    done = subprocess.run([SCRIPT, "up", folder], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        reason = f"{SCRIPT} up ended with status {done.returncode}"
        promised = wanted == "required" or bool(os.environ.get("CI"))
        pytest.fail(reason, pytrace=False) if promised else pytest.skip(reason)
    try:
        install(Kafka, consent(os.environ, yes=True))  # a stand-in is made of its jars; `up` has asked for root already
        subprocess.run([SCRIPT, "images", folder], check=True)
        yield dict(line.split("=", 1) for line in done.stdout.splitlines())
    finally:
        subprocess.run([SCRIPT, "down", folder], check=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `git clone` makes under umask 077: no development environment, nothing for anyone but the owner."""
    folder = tmp_path_factory.mktemp("clone") / "shadowtime"
    left = shutil.ignore_patterns(".git", ".venv", ".servers", ".env", "__pycache__", ".*_cache", ".stack")
    shutil.copytree(ROOT, folder, ignore=left)
    for path in (folder, *folder.rglob("*")):
        path.chmod(path.stat().st_mode & 0o700)
    return folder


@pytest.fixture(scope="module")
def project(engine: dict[str, str], checkout: Path) -> Iterator[Project]:
    """The stack of docker-compose.yml, up, by the one command that a user gives."""
    made = Project(checkout, engine)
    ended = threading.Event()
    watching = threading.Thread(target=made.watch_memory, args=(ended,))
    watching.start()
    try:
        made.run("make", "up", seconds=UP)
        yield made
    finally:
        ended.set()
        watching.join()
        made.compose("--profile", "tools", "--profile", "follow", "down", "--volumes", check=False, seconds=5 * MINUTES)


def test_everything_is_healthy_after_one_command(project: Project) -> None:
    states = project.states()
    assert {name: states[name] for name in ONCE} == dict.fromkeys(ONCE, "exited 0")
    project.wait(*RUNNING)
    for name, each in project.containers().items():
        assert each["RestartCount"] == 0, name
        assert not each["State"]["OOMKilled"], name
    assert not (project.folder / ".venv").exists()


def test_an_image_is_built_once_and_what_is_unchanged_is_not_made_again(project: Project) -> None:
    before = project.containers()
    ours = {each["Image"] for each in before.values() if each["Config"]["Image"] == services()["scheduler"]["image"]}
    assert len(ours) == 1
    project.run("make", "up", seconds=UP)
    listed = project.compose("run", "--rm", "-T", "replayer", "shadowtime", "replay", "--list", seconds=UP)
    assert "probabilistic" in listed
    after = project.containers()
    assert {name: each["Id"] for name, each in after.items()} == {name: each["Id"] for name, each in before.items()}
    for name in RUNNING:
        assert after[name]["State"]["StartedAt"] == before[name]["State"]["StartedAt"], name


def test_health_tells_how_a_worker_is(project: Project) -> None:
    health = project.containers()["scheduler"]["State"]["Health"]["Log"]
    told = [each["Output"] for each in health]
    assert json.loads(told[-1])["state"] == "running"
    quiet = project.run(
        *("docker", "compose", "exec", "-T", "scheduler"),
        *("python", "-m", "shadowtime.stack.compose.health", "http://127.0.0.1:6067/health"),
        check=False,
    )
    assert quiet.startswith("starting: nothing answers")


def test_a_replay_over_compose_decides_what_the_embedded_one_does(project: Project, tmp_path: Path) -> None:
    """Kernels of the image are compiled for any processor, those here for this one: they decide the same."""
    told = project.compose(*replay("best", JOBS, "engine-test"), seconds=REPLAY)
    assert decided(told) == decided(embedded("best", JOBS, tmp_path))
    assert len(told.splitlines()) > JOBS


def test_a_replay_outlives_five_containers(project: Project, tmp_path: Path) -> None:
    """Two stages, both servers and the replayer itself end by SIGKILL in mid-replay; the replayer is started again."""
    began = project.containers()
    slowly = replay("best", JOBS, "killed", f"--speed {SECONDS_OF_LOG / (10 * MINUTES)}")
    with project.start("compose", *slowly) as first:
        time.sleep(20.0)
        for name in KILLED:
            assert first.poll() is None
            project.kill(project.containers()[name])
            time.sleep(5.0)
            project.wait(*RUNNING)
        of_project = f"label=com.docker.compose.project={project.name}"
        (replayer,) = project.docker(
            "ps", "-q", "--filter", of_project, "--filter", "label=com.docker.compose.oneoff=True"
        ).split()
        project.kill(json.loads(project.docker("inspect", replayer))[0])
        assert first.communicate(timeout=PATIENCE)[0] == b""
        assert first.returncode == 137
    told = project.compose(*replay("best", JOBS, "killed"), seconds=REPLAY)
    assert decided(told) == decided(embedded("best", JOBS, tmp_path))
    ended = project.containers()
    restarts = {name: ended[name]["RestartCount"] - began[name]["RestartCount"] for name in RUNNING}
    assert all(restarts[name] >= 1 for name in KILLED)
    print(f"\nkilled: {', '.join(KILLED)} and the replayer; started again: {restarts}")


@pytest.mark.parametrize("network", NETWORKS)
def test_a_foreign_container_is_refused_finding_08(project: Project, network: str) -> None:
    attempts = project.foreign(network)
    print(f"\non the network {network}:")
    for attempt, outcome in attempts.items():
        print(f"  {attempt:45} {outcome}")
    assert attempts
    assert not {attempt for attempt, outcome in attempts.items() if outcome.startswith("DONE")}


@pytest.mark.parametrize("container", ["scheduler", "metrics"])
def test_nobody_writes_kernels_finding_07(project: Project, container: str) -> None:
    """From inside a worker: neither the folder nor a file in it, nor code, nor another container's secrets."""
    script = """
code=/app/shadowtime/shared
for place in /opt/kernels /opt/kernels/* /opt/kernels/*/*.nbc $code $code/kernel.py /opt/venv; do
  [ -w "$place" ] && echo "writable: $place"
  touch "$place/evil" 2>/dev/null && echo "written: $place"
done
ls /opt/kernels/*/*.nbc >/dev/null || echo "no kernels"
for place in /run/secrets/*/*; do [ -r "$place" ] && echo "read: $place"; done
true
"""
    told = project.compose("exec", "-T", container, "sh", "-c", script).split("\n")
    own = ["/run/secrets/grafana-token/token"] if container == "metrics" else []
    own.append(f"/run/secrets/{container}/{container}.env")
    assert not [line for line in told if line.startswith(("writable", "written", "no kernels"))]
    assert {line.removeprefix("read: ") for line in told if line} == set(own)


def test_a_worker_is_refused_what_is_another_s(project: Project) -> None:
    script = """
import asyncio
from redis import Redis
from redis.exceptions import NoPermissionError
from shadowtime.shared.streaming import clients as bus
from shadowtime.shared.streaming.settings import read_settings

async def main():
    settings = read_settings(role="scheduler")
    producer = bus.producer(settings)
    await producer.start()
    try:
        await producer.send_and_wait("jobs", b"{}")
        print("DONE publish jobs")
    except Exception as error:
        print("publish jobs:", type(error).__name__)
    await producer.stop()
    client = Redis.from_url(settings.redis_url, username=settings.redis_username,
        password=settings.redis_password.get_secret_value())
    for command in (["FLUSHALL"], ["CONFIG", "GET", "*"], ["HGETALL", "shadowtime:{scoreboard}:x"], ["KEYS", "*"]):
        try:
            client.execute_command(*command)
            print("DONE", command)
        except NoPermissionError as error:
            print(*command, "refused")
asyncio.run(main())
"""
    told = project.compose("exec", "-T", "scheduler", "python", "-c", script)
    print(f"\nas scheduler:\n{told}")
    assert "DONE" not in told
    assert told.count("refused") == 4
    assert "TopicAuthorizationFailedError" in told


def test_no_secret_is_in_an_image_an_environment_a_command_line_or_a_log(project: Project) -> None:
    volume = f"{project.name}_secrets:/secrets:ro"
    image = services()["scheduler"]["image"]
    shown = project.docker("run", "--rm", "-u", "0", "-v", volume, "--entrypoint", "sh", image, "-c", "cat /secrets/*")
    secrets = [shown[at : at + 32] for at in range(0, len(shown), 32)]
    assert len(secrets) > 20
    places = {
        "docker inspect": json.dumps(project.containers()),
        "logs": project.compose("logs", "--no-color"),
        "command lines": "".join(project.docker("top", each) for each in project.compose("ps", "-q").split()),
        "history": project.docker("history", "--no-trunc", image),
    }
    assert not {name for name, text in places.items() if any(secret in text for secret in secrets)}


def test_every_file_of_secrets_is_for_one_user(project: Project) -> None:
    told = project.compose(
        *("run", "--rm", "-T", "--no-deps", "--entrypoint", "sh", "credentials"),
        *("-c", "cd /run/secrets && stat -c '%n %u %a' */*; stat -c '%n %u %a' /secrets /secrets/*"),
    )
    for line in told.splitlines():
        place, user, mode = line.split()
        folder = place.split("/")[0]
        if folder == "grafana-token":
            assert (int(user), mode) == (USERS["token"], "440")
        elif folder:
            assert (int(user), mode) == (USERS[folder], "400"), line
        elif place != "/secrets":
            assert (int(user), mode) == (0, "600"), line


def asked(project: Project, *paths: str) -> list[str]:
    """Return what the store says to the one who reads it: of each path the answer, or the status."""
    script = """
import base64, json, sys, urllib.error, urllib.request
key = base64.b64encode(f"store-reader:{open('/run/secrets/grafana/store').read()}".encode()).decode()
for path in sys.argv[1:]:
    request = urllib.request.Request(f"http://vmauth:8427/{path}", headers={"Authorization": f"Basic {key}"})
    try:
        print(urllib.request.urlopen(request).read().decode())
    except urllib.error.HTTPError as error:
        print(error.code)
"""
    image, user = services()["scheduler"]["image"], str(USERS["grafana"])
    place = ["--network", f"{project.name}_results", "-u", user, "-v", f"{project.name}_credentials:/run/secrets:ro"]
    return project.docker("run", "--rm", *place, "--entrypoint", "python", image, "-c", script, *paths).splitlines()


def measured(project: Project, *queries: str) -> list[int | None]:
    """Return the value of the one series of each query; None where there is none."""
    told = [
        json.loads(line)["data"]["result"] for line in asked(project, *(f"{QUERY}{quote(each)}" for each in queries))
    ]
    return [int(found[0]["value"][1]) if found else None for found in told]


def test_results_reach_the_store_and_the_panels(project: Project) -> None:
    """The writer writes, the reader reads and does no more."""
    assert measured(project, f'count(up{{job="{SCRAPE_JOB}"}} == 1)') == [6]
    refused = asked(project, "api/v1/import", "store/api/v1/import", "api/v1/admin/tsdb/delete_series")
    assert set(refused) <= {"400", "401", "404"}


def test_what_is_written_to_the_follower_s_folder_becomes_events_and_figures(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `.env.example` has it; nobody else is made anew for it, and none is missed when it is gone."""
    began = project.containers()
    written, now = tmp_path / "lines", int(time.time())
    written.mkdir()
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "batch"\nprocessors = 16\npartitions = ["batch"]\n')
    monkeypatch.setitem(project.environment, "COMPOSE_PROFILES", "follow")
    monkeypatch.setitem(project.environment, "FOLLOW_FROM", str(written))
    monkeypatch.setitem(project.environment, "FOLLOW_POOLS", str(tmp_path / "pools.toml"))
    job = {"job": 7, "submit": now - 60, "start": now - 50, "processors": 4, "limit": 600, "partition": "batch"}

    def write(**more: int) -> None:
        with (written / "jobs.jsonl").open("a") as file:
            file.write(f"{json.dumps(job | more)}\n{json.dumps({'now': int(time.time())})}\n")

    def decided_on(kind: str) -> Any:
        options = ["--cluster", "site", "--kind", kind, "--beginning", "--count", "1", "--json"]
        return json.loads(project.compose("run", "--rm", "-T", "--no-deps", *WATCH, *options))

    write()
    project.compose("up", "--detach", FOLLOW, seconds=UP)
    try:
        project.wait(FOLLOW)
        assert decided_on("JobStarted")["event"]["job_number"] == 7
        write(end=now - 5)
        assert decided_on("JobEnded")["event"]["job_number"] == 7
        until = time.monotonic() + PATIENCE
        while True:
            up, events = measured(project, f'up{{job="{FOLLOW_JOB}"}}', FOLLOW_EVENTS.name)
            if up == 1 and (events or 0) >= EVENTS:
                break
            assert time.monotonic() < until, (up, events)
            time.sleep(2.0)
    finally:
        project.compose("rm", "--stop", "--force", FOLLOW)
    ended = project.containers()
    assert {name: each["Id"] for name, each in ended.items()} == {name: each["Id"] for name, each in began.items()}


def test_no_container_ever_lacked_memory(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    """From the first start through replays and kills; the figures are those of docs/cost.md."""
    images = {each["Config"]["Image"] for each in project.containers().values()}
    sizes = json.loads(project.docker("inspect", "--type", "image", *sorted(images)))
    with capsys.disabled():
        print("\n\nimage                                           MB")
        for image, each in zip(sorted(images), sizes, strict=True):
            print(f"{image:45} {each['Size'] / 1e6:5.0f}")
        print("\ncontainer                limit   rest   peak  (MiB)")
        rest = project.measure()
        for name, each in project.containers().items():
            assert not each["State"]["OOMKilled"], name
            limit = each["HostConfig"]["Memory"] / BINARY["MiB"]
            peak = max(project.memory[name], default=0.0)
            print(f"{name:22} {limit:7.0f} {rest.get(name, 0.0):6.0f} {peak:6.0f}")
            assert peak < 0.9 * limit, name


def test_under_tls_all_are_healthy_and_nobody_enters(project: Project, tmp_path: Path) -> None:
    """What runs in the clear goes over to TLS by one command."""
    project.environment["COMPOSE_FILE"] = "docker-compose.yml:docker-compose.tls.yml"
    project.run("make", "up", seconds=UP)
    project.wait(*RUNNING)
    assert not {attempt for attempt, outcome in project.foreign("kafka").items() if outcome.startswith("DONE")}
    shown = project.compose(*replay("easy", 50, "under-tls"), seconds=REPLAY)
    assert decided(shown) == decided(embedded("easy", 50, tmp_path))


def test_all_end_by_themselves_and_leave_nothing_but_named_volumes(project: Project) -> None:
    about = ["--filter", f"label=com.docker.compose.project={project.name}", "--format", "{{json .}}"]
    with project.start("events", "--filter", "event=kill", "--filter", "event=die", *about) as listening:
        time.sleep(2.0)  # until it listens
        project.run("make", "down", seconds=5 * MINUTES)
        listening.terminate()
        events = [json.loads(line) for line in listening.communicate()[0].splitlines()]
    signalled: dict[str, int] = {}
    ended: dict[str, int] = {}
    status: dict[str, int] = {}
    for event in events:
        told = event["Actor"]["Attributes"]
        name = told["com.docker.compose.service"]
        if event["Action"] == "kill":
            signalled.setdefault(name, event["timeNano"])
        else:
            ended[name], status[name] = event["timeNano"], int(told["exitCode"])
    print("\nmake down: exit status, seconds from SIGTERM")
    for name, code in status.items():
        print(f"{name:22} {code:4} {max(0, ended[name] - signalled[name]) / 1e9:5.1f}")
    assert set(status) == {*RUNNING, "replayer"}
    assert 137 not in status.values()
    assert {name: status[name] for name in FLOW} == dict.fromkeys(FLOW, 0)
    left = set(project.docker("volume", "ls", "--quiet").split()) - project.volumes
    assert left == {f"{project.name}_{name}" for name in resolved()["volumes"]}


def replay(policy: str, jobs: int, run: str, options: str = "") -> list[str]:
    """Return how compose runs a replay that ends with its decision log."""
    command = f"python -m shadowtime replay --policy {policy} --jobs {jobs} --transport kafka --run {run} {options}"
    script = f"{command} --decisions /tmp/log.jsonl >/dev/null && cat /tmp/log.jsonl"
    return ["run", "--rm", "-T", "--no-deps", "--entrypoint", "sh", "replayer", "-c", script]


def embedded(policy: str, jobs: int, folder: Path) -> str:
    """Return the decision log of an embedded replay, on this machine."""
    log = folder / "embedded.jsonl"
    command = [
        sys.executable,
        "-m",
        "shadowtime",
        "replay",
        "--policy",
        policy,
        "--jobs",
        str(jobs),
        "--decisions",
        str(log),
    ]
    subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    return log.read_text()


def decided(log: str) -> list[str]:
    """Return all lines but the first, which has the settings of the run."""
    return log.splitlines()[1:]
