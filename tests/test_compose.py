"""docker-compose.yml agrees with the pipeline and the settings, and keeps what it promises about safety."""

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from services.pipeline import STAGES
from shared.metric_names import SCRAPE_JOB
from shared.settings import Settings
from stack import env
from stack.kafka_server import kafka_version
from stack.worker import CHECKOUT
from tests.patience import PATIENCE
from tests.stack.compose import EXAMPLE, FILE, dockerfile, raw, resolved, services, variables

SERVERS = ["kafka", "redis", "victoria-metrics", "grafana"]
FLOW = [stage.name for stage in STAGES]
SECRET = re.compile("PASSWORD|SECRET|TOKEN|AUTH$|KEY$")
DOCKERFILES = {"services/Dockerfile": CHECKOUT / "services" / "Dockerfile"} | {
    f"stack/{path.name}": path for path in (CHECKOUT / "stack").glob("*.Dockerfile")
}

METRICS = "metrics"
OURS = [*FLOW, METRICS, "live", "replayer"]

service = pytest.mark.parametrize("name", [*SERVERS, *OURS])
stage = pytest.mark.parametrize("name", FLOW)


def environment(name: str) -> dict[str, str]:
    found: dict[str, str] = services()[name].get("environment", {})
    return found


def settings_of(name: str) -> dict[str, str]:
    prefix = "SHADOWTIME_"
    return {key.removeprefix(prefix).lower(): value for key, value in environment(name).items() if prefix in key}


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def test_one_block_per_stage_in_the_order_of_the_flow() -> None:
    assert list(services()) == [*SERVERS, *OURS]


@stage
def test_a_stage_runs_its_own_worker(name: str) -> None:
    assert services()[name]["command"] == ["services", name]
    assert services()[name]["image"] == services()["replayer"]["image"]


@pytest.mark.parametrize("name", OURS)
def test_every_setting_is_one(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    given = settings_of(name)
    assert set(given) <= set(Settings.model_fields)
    for key, value in given.items():
        monkeypatch.setenv(f"SHADOWTIME_{key.upper()}", value)
    settings = Settings()
    assert {str(getattr(settings, key)) for key in given if "password" not in key} == {
        value for key, value in given.items() if "password" not in key
    }


@pytest.mark.parametrize("name", OURS)
def test_workers_find_kafka_where_it_listens(name: str) -> None:
    kafka = environment("kafka")
    assert settings_of(name)["kafka_bootstrap"] == kafka["KAFKA_ADVERTISED_LISTENERS"].removeprefix("BROKER://")
    host, port = address(settings_of(name)["kafka_bootstrap"])
    assert host == "kafka"
    assert f"BROKER://:{port}," in kafka["KAFKA_LISTENERS"]
    assert f"/{port} " in services()["kafka"]["healthcheck"]["test"][-1]


@stage
def test_workers_find_redis_and_its_password(name: str) -> None:
    found = re.fullmatch(r"redis://redis:(\d+)/0", settings_of(name)["redis_url"])
    assert found is not None
    assert f"-p {found[1]} " in services()["redis"]["healthcheck"]["test"][-1]
    assert settings_of(name)["redis_password"] == environment("redis")["REDISCLI_AUTH"]


def test_results_are_written_where_victoria_metrics_listens() -> None:
    given = settings_of(METRICS)
    for name, setting in (("victoria-metrics", "victoria_metrics_url"), ("grafana", "grafana_url")):
        host, port = address(given[setting].removeprefix("http://"))
        assert host == name
        assert f":{port}/" in services()[name]["healthcheck"]["test"][-1]
    assert services()[METRICS]["command"] == ["services", METRICS]
    assert given["grafana_password"] == environment("grafana")["GF_SECURITY_ADMIN_PASSWORD"]


@pytest.mark.parametrize("name", [*FLOW, METRICS])
def test_health_is_asked_at_the_web_port(name: str) -> None:
    port = settings_of(name)["web_port"]
    assert f"'http://127.0.0.1:{port}/health'" in services()[name]["healthcheck"]["test"][-1]


def test_every_stage_is_scraped_at_its_web_port() -> None:
    (job,) = yaml.safe_load((CHECKOUT / "stack" / "scrape.yml").read_text())["scrape_configs"]
    assert job["job_name"] == SCRAPE_JOB
    assert job["relabel_configs"] == [{"source_labels": ["__meta_dns_name"], "target_label": "worker"}]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == [*FLOW, METRICS]
    assert {str(found["port"])} == {settings_of(name)["web_port"] for name in found["names"]}


def test_the_data_source_is_victoria_metrics() -> None:
    path = CHECKOUT / "dashboards" / "provisioning" / "datasources" / "victoria-metrics.yml"
    (source,) = yaml.safe_load(path.read_text())["datasources"]
    host, port = address(source["url"].removeprefix("http://"))
    assert f"-httpListenAddr=:{port}" in services()[host]["command"]
    assert "./dashboards/provisioning:/etc/grafana/provisioning:ro" in services()["grafana"]["volumes"]


def test_nothing_but_grafana_and_the_live_page_is_published() -> None:
    assert {name for name, each in services().items() if "ports" in each} == {"grafana", "live"}
    assert {name for name, each in services().items() if each["networks"] != ["stream"]} == {"grafana", "live"}
    assert resolved()["networks"]["stream"] == {"internal": True}
    assert "GF_SECURITY_ADMIN_PASSWORD" in environment("grafana")
    assert environment("grafana")["GF_AUTH_ANONYMOUS_ENABLED"] == "false"
    assert not any("network_mode" in each or "privileged" in each for each in services().values())


def test_the_live_page_is_for_this_machine_alone() -> None:
    """It has no password."""
    each = services()["live"]
    (port,) = each["ports"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+:6080", port)
    assert each["command"] == ["services", "live", "--host", "0.0.0.0", "--port", "6080"]
    assert "'http://127.0.0.1:6080/health'" in each["healthcheck"]["test"][-1]


@service
def test_every_container_is_confined(name: str) -> None:
    each = services()[name]
    assert each["read_only"] is True
    assert each["cap_drop"] == ["ALL"]
    assert "cap_add" not in each
    assert each["security_opt"] == ["no-new-privileges:true"]
    assert int(each["user"].split(":")[0]) > 0
    assert each["mem_limit"]
    assert each["pids_limit"]
    assert each["restart"] == ("on-failure:10" if name == "replayer" else "unless-stopped")
    assert not any("docker.sock" in volume for volume in each.get("volumes", []))


@service
def test_every_container_has_a_health_check_and_waits_for_health(name: str) -> None:
    each = services()[name]
    assert each["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
    assert {"interval", "timeout", "retries", "start_period"} < set(each["healthcheck"])
    for other, condition in each.get("depends_on", {}).items():
        assert other in services()
        assert condition == {"condition": "service_healthy"}
    if name in FLOW:
        assert set(each["depends_on"]) == {"kafka", "redis"}


def test_the_replay_waits_for_every_stage() -> None:
    assert set(services()["replayer"]["depends_on"]) >= {"kafka", *FLOW}


def test_volumes_are_named_and_declared() -> None:
    used = {
        volume.split(":")[0]
        for each in services().values()
        for volume in each.get("volumes", [])
        if not volume.startswith("./")
    }
    assert used == set(resolved()["volumes"])
    bound = [volume for each in services().values() for volume in each.get("volumes", []) if volume.startswith("./")]
    assert bound
    for volume in bound:
        source, _, mode = volume.split(":")
        assert (CHECKOUT / source).exists()
        assert mode == "ro"


@service
def test_every_image_is_pinned_in_the_example(name: str) -> None:
    image = raw()["services"][name]["image"]
    found = re.fullmatch(r"[a-z/-]+:\$\{(\w+_VERSION)\}", image)
    assert found is not None, image
    assert re.search(r"\d+\.\d+\.\d+", variables(EXAMPLE.read_text())[found[1]])


@pytest.mark.parametrize("path", DOCKERFILES.values(), ids=list(DOCKERFILES))
def test_every_base_image_is_pinned_in_the_example(path: Path) -> None:
    stages: set[str] = set()
    arguments = {
        name
        for each in services().values()
        if "build" in each and CHECKOUT / each["build"]["context"] / each["build"]["dockerfile"] == path
        for name in each["build"]["args"]
    }
    for instruction, rest in dockerfile(path):
        if instruction != "FROM":
            continue
        image, _, alias = rest.partition(" AS ")
        found = re.fullmatch(r"[a-z/-]+:\$\{(\w+_VERSION)\}", image)
        assert found is not None or image in stages, image
        assert found is None or (found[1] in arguments and variables(EXAMPLE.read_text())[found[1]])
        stages.add(alias)


def test_versions_agree_with_the_rest_of_the_project() -> None:
    pinned = variables(EXAMPLE.read_text())
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    assert pinned["KAFKA_VERSION"] == kafka_version()
    assert pinned["SHADOWTIME_VERSION"] == project["version"]
    minor = tuple(map(int, pinned["PYTHON_VERSION"].split(".")[:2]))
    lowest, highest = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()  # type: ignore[union-attr]
    assert (3, int(lowest)) <= minor < (3, int(highest))


def test_no_secret_is_in_a_file() -> None:
    for each in raw()["services"].values():
        for name, value in each.get("environment", {}).items():
            assert not SECRET.search(name) or re.fullmatch(r"\$\{\w+:\?[^}]+\}", value), name
    given = variables(EXAMPLE.read_text())
    assert {name: value for name, value in given.items() if SECRET.search(name)} == dict.fromkeys(env.SECRETS, "")


def test_the_example_holds_what_the_file_asks_for_and_no_more() -> None:
    asked = set(re.findall(r"(?<!\$)\$\{(\w+)", FILE.read_text()))
    assert asked == set(variables(EXAMPLE.read_text()))


def test_the_env_file_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    assert env.main(tmp_path) == 0
    written = tmp_path / ".env"
    first = variables(written.read_text())
    assert written.stat().st_mode & 0o077 == 0
    assert all(len(first[name]) == 32 for name in env.SECRETS)
    assert first["REDIS_PASSWORD"] != first["GRAFANA_ADMIN_PASSWORD"]
    assert env.main(tmp_path) == 0
    assert variables(written.read_text()) == first


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The compose file and what it mounts, and a `.env` as a user makes it."""
    if shutil.which("docker-compose") is None:
        reason = "docker-compose is not on PATH (run python -m stack.install compose)"
        if os.environ.get("CI"):
            pytest.fail(f"CI needs it: {reason}", pytrace=False)
        pytest.skip(reason)
    shutil.copy(FILE, tmp_path)
    shutil.copy(EXAMPLE, tmp_path)
    (tmp_path / "stack").mkdir()  # where an image is built
    env.main(tmp_path)
    return tmp_path


def config(project: Path) -> "subprocess.CompletedProcess[str]":
    kept = {"PATH": os.environ["PATH"], "HOME": str(project)}
    return subprocess.run(
        ["docker-compose", "config"],
        cwd=project,
        env=kept,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def test_docker_compose_takes_the_file(project: Path) -> None:
    done = config(project)
    assert done.returncode == 0, done.stderr
    taken: dict[str, Any] = yaml.safe_load(done.stdout)
    assert set(taken["services"]) == set(services())
    for name, each in services().items():
        assert taken["services"][name]["image"] == each["image"]
        assert str(taken["services"][name]["mem_limit"]) == each["mem_limit"]


@pytest.mark.parametrize("name", env.SECRETS)
def test_docker_compose_asks_for_a_password_that_is_missing(project: Path, name: str) -> None:
    written = project / ".env"
    written.write_text(re.sub(rf"^{name}=.*$", f"{name}=", written.read_text(), flags=re.MULTILINE))
    done = config(project)
    assert done.returncode != 0
    assert "choose one in .env" in done.stderr
