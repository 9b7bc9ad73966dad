"""What docker-compose.yml gives the servers is what real ones take, with the hosts of the network as loopback."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from shared.settings import Settings
from stack.ports import free_port
from stack.server import Server
from stack.servers import Kafka, Redis, VictoriaMetrics
from tests.patience import PATIENCE
from tests.real_servers import require
from tests.stack.compose import services
from tests.stack.processes import wait_until
from tests.stack.test_redis_server import ask


@contextmanager
def running(command: list[str], server: Server, folder: Path, environment: dict[str, str]) -> Iterator[None]:
    """Run a command of the compose file until the server it starts has answered and the caller is done."""
    log = folder / "log"
    with (
        log.open("w") as output,
        subprocess.Popen(
            command, cwd=folder, env={"PATH": "/usr/bin:/bin"} | environment, stdout=output, stderr=output
        ) as process,
    ):
        try:
            wait_until(lambda: server.answers() or process.poll() is not None, log.read_text())
            assert process.poll() is None, log.read_text()
            yield
            process.terminate()
            process.wait(PATIENCE)
        finally:
            process.kill()


def test_redis_takes_its_configuration_and_demands_the_password(tmp_path: Path) -> None:
    require(Redis)
    block, port = services()["redis"], free_port()
    environment = block["environment"]
    server = Redis(tmp_path, port, password=environment["REDISCLI_AUTH"])
    *shell, script = block["command"]
    assert shell == ["sh", "-c"]
    script = script.replace("appendonly yes\n", f"appendonly yes\nbind 127.0.0.1\nport {port}\n")
    with running([*shell, script], server, tmp_path, environment):
        assert ask(server, "PING").startswith(b"-NOAUTH")
        check = block["healthcheck"]["test"][-1].replace("-p 6379", f"-p {port}")
        assert healthy(["sh", "-c", check], environment)
        assert not healthy(["sh", "-c", check], {"REDISCLI_AUTH": "wrong"})
    assert (tmp_path / "appendonlydir").is_dir()


def test_victoria_metrics_takes_its_flags(tmp_path: Path) -> None:
    require(VictoriaMetrics)
    block, port = services()["victoria-metrics"], free_port()
    here = {
        "-storageDataPath=/victoria-metrics-data": f"-storageDataPath={tmp_path}/data",
        "-httpListenAddr=:8428": f"-httpListenAddr=127.0.0.1:{port}",
        "-promscrape.config=/etc/scrape.yml": f"-promscrape.config={Path('stack/scrape.yml').resolve()}",
    }
    flags = [here.get(flag, flag) for flag in block["command"]]
    assert set(here) < set(block["command"])
    with running(["victoria-metrics", *flags], VictoriaMetrics(tmp_path, port), tmp_path, {}):
        pass


def test_kafka_takes_its_settings_and_answers_the_health_check(tmp_path: Path) -> None:
    require(Kafka)
    block = services()["kafka"]
    environment = block["environment"]
    given = {
        name.removeprefix("KAFKA_").lower().replace("_", "."): value
        for name, value in environment.items()
        if name.startswith("KAFKA_") and name != "KAFKA_HEAP_OPTS"
    }
    port, controller = free_port(), free_port()
    text = "".join(f"{name}={value}\n" for name, value in given.items())
    for there, here in {
        "kafka:9092": f"127.0.0.1:{port}",
        ":9092": f"127.0.0.1:{port}",
        "kafka:9093": f"127.0.0.1:{controller}",
        "//:9093": f"//127.0.0.1:{controller}",
        "/var/lib/kafka/data": str(tmp_path / "data"),
    }.items():
        assert there in text
        text = text.replace(there, here)
    server = Kafka(tmp_path, port)
    properties = tmp_path / "broker.properties"
    properties.write_text(text)
    (tmp_path / "tmp").mkdir()
    java = server._java_command()
    cluster = f"--cluster-id={environment['CLUSTER_ID']}"
    formatted = [*java, "kafka.tools.StorageTool", "format", cluster, "--config", str(properties)]
    subprocess.run(formatted, check=True, capture_output=True, timeout=PATIENCE)
    with running([*java, "kafka.Kafka", str(properties)], server, tmp_path, {}):
        *bash, script = block["healthcheck"]["test"][1:]
        assert healthy([*bash, script.replace("/9092", f"/{port}")], {})
        assert not healthy([*bash, script.replace("/9092", f"/{free_port()}")], {})


def test_kafka_takes_sessions_as_short_as_the_workers(tmp_path: Path) -> None:
    """Workers ask for 6 s; the broker's own lower limit is 6 s, and tests use less."""
    assert int(services()["kafka"]["environment"]["KAFKA_GROUP_MIN_SESSION_TIMEOUT_MS"]) <= 6_000
    assert Settings().max_message_bytes <= 1_048_588  # Kafka's message.max.bytes by default


def healthy(command: list[str], environment: dict[str, str]) -> bool:
    kept = {"PATH": "/usr/bin:/bin"} | environment
    return subprocess.run(command, env=kept, capture_output=True, timeout=PATIENCE, check=False).returncode == 0
