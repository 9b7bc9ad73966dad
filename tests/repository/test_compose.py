"""docker-compose.yml agrees with the pipeline and the settings, and keeps what it promises about safety."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from shadowtime._version import __version__
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.metric_names import FOLLOW_JOB, SCRAPE_JOB
from shadowtime.shared.private_files import write_private
from shadowtime.shared.streaming.role_settings import VARIABLE
from shadowtime.shared.streaming.settings import Settings, read_settings
from shadowtime.stack.compose import env
from shadowtime.stack.compose.credentials import FLOW as STAGE_NAMES
from shadowtime.stack.compose.credentials import (
    MOUNTED,
    OURS,
    READS,
    SCRAPE,
    STORE,
    STORE_READER,
    STORE_WRITER,
    TLS,
    TOKEN,
    USERS,
    files,
    names,
)
from shadowtime.stack.roles import ADMIN, FOLLOW, HEALTH, KAFKA, REDIS, SHADOW, roles
from shadowtime.stack.servers.jars import kafka_version
from tests.support.compose import EXAMPLE, FILE, dockerfile, raw, resolved, services, variables
from tests.support.patience import PATIENCE

SERVERS = ["kafka", "redis", "victoria-metrics", "vmauth", "grafana"]
ONCE = ["credentials", "rights", "token"]
FLOW = [stage.name for stage in STAGES]
SECRET = re.compile("PASSWORD|SECRET|TOKEN|AUTH$|KEY$|JAAS")
DOCKERFILES = {"services/Dockerfile": ROOT / "services" / "Dockerfile"} | {
    f"stack/{path.name}": path for path in (ROOT / "stack").glob("*.Dockerfile")
}

RUN_ENV = (
    "import runpy, sys; sys.path.append(sys.argv.pop(1)); runpy.run_module('stack.compose.env', run_name='__main__')"
)
"""In a Python that is isolated, from a folder."""

METRICS = "metrics"
NETWORKS = {
    "credentials": None,
    "kafka": {"kafka"},
    "rights": None,
    "redis": {"redis"},
    "victoria-metrics": {"store", "scrape"},
    "vmauth": {"store", "results"},
    "grafana": {"results", "front"},
    "token": {"results"},
    **{name: {"kafka", "redis", "scrape"} for name in FLOW},
    METRICS: {"kafka", "scrape", "results"},
    "live": {"kafka", "redis", "front"},
    "replayer": {"kafka"},
    FOLLOW: {"kafka", "redis", "scrape"},
    SHADOW: {"kafka", "redis", "scrape"},
    "reader": {"kafka", "redis"},
}

service = pytest.mark.parametrize("name", list(NETWORKS))
stage = pytest.mark.parametrize("name", FLOW)


def environment(name: str) -> dict[str, str]:
    found: dict[str, str] = services()[name].get("environment", {})
    return found


def settings_of(name: str) -> dict[str, str]:
    prefix = "SHADOWTIME_"
    return {key.removeprefix(prefix).lower(): value for key, value in environment(name).items() if prefix in key}


def told_to(name: str, *, tls: bool = False) -> dict[str, str]:
    """Return all settings of a container, of the files of its roles too."""
    known = roles(STAGE_NAMES)
    given = files(known, {name: name for name in names(known)}, tls=tls)[name]
    from_files = "".join(text for file, text in given.items() if file.endswith(".env"))
    prefix = "SHADOWTIME_"
    return settings_of(name) | {
        key.removeprefix(prefix).lower(): value for key, value in variables(from_files).items() if prefix in key
    }


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


def test_one_block_per_stage_in_the_order_of_the_flow() -> None:
    assert list(services()) == list(NETWORKS)
    assert [name for name in services() if name in FLOW] == FLOW == list(STAGE_NAMES)


@stage
def test_a_stage_runs_its_own_worker(name: str) -> None:
    assert services()[name]["command"] == ["shadowtime", "serve", name]
    assert services()[name]["image"] == services()["replayer"]["image"]


@pytest.mark.parametrize("name", OURS)
def test_every_setting_is_one(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    given = told_to(name)
    assert given.pop("access") == str(MOUNTED / name)
    assert set(given) <= set(Settings.model_fields)
    (tmp_path / "password").write_text("secret")
    for key, value in given.items():
        monkeypatch.setenv(f"SHADOWTIME_{key.upper()}", str(tmp_path / "password") if "_file" in key else value)
    settings = Settings()
    for key, value in given.items():
        taken = getattr(settings, key)
        assert "_file" in key or type(taken)(value) == taken


@pytest.mark.parametrize("name", [*OURS, "rights"])
def test_everyone_is_patient_with_a_server_on_a_busy_machine(name: str) -> None:
    """Under load the first answer of Kafka takes longer than the 8 s that are enough for a person's patience."""
    assert float(settings_of(name)["connect_seconds"]) >= 60


@pytest.mark.parametrize("name", OURS)
def test_workers_find_kafka_where_it_listens(name: str) -> None:
    kafka = environment("kafka")
    assert told_to(name)["kafka_bootstrap"] == kafka["KAFKA_ADVERTISED_LISTENERS"].split(",")[0].removeprefix(
        "CLIENT://"
    )
    host, port = address(told_to(name)["kafka_bootstrap"])
    assert host == "kafka"
    assert f"CLIENT://:{port}," in kafka["KAFKA_LISTENERS"]
    assert told_to(name)["kafka_security_protocol"] == "SASL_PLAINTEXT"


@pytest.mark.parametrize("name", [*FLOW, FOLLOW, SHADOW])
def test_workers_find_redis(name: str) -> None:
    found = re.fullmatch(r"redis://redis:(\d+)/0", told_to(name)["redis_url"])
    assert found is not None
    assert f"-p {found[1]} " in services()["redis"]["healthcheck"]["test"][-1]


def test_everyone_has_the_names_and_the_secrets_of_his_roles_finding_08(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What docker-compose.yml names is there, and says of every server that knows a role how to log in, and no more."""
    known = {role.name: role for role in roles(STAGE_NAMES)}
    given = files(list(known.values()), {name: name for name in names(list(known.values()))})
    assert set(given) == set(USERS)
    everyone = [role for its_roles in OURS.values() for role in its_roles]
    assert sorted(everyone) == sorted(known.keys() - {ADMIN, HEALTH})
    for container, its_roles in OURS.items():
        assert settings_of(container)["access"] == str(MOUNTED / container)
        assert list(given[container]) == [f"{role}.env" for role in its_roles]
        for role, text in zip(its_roles, given[container].values(), strict=True):
            write_private(tmp_path / f"{role}.env", text)
            monkeypatch.setenv(VARIABLE, str(tmp_path))
            settings = read_settings(role=role)
            for server in (KAFKA, REDIS):
                knows = server in known[role].servers
                password = getattr(settings, f"{server}_password")
                assert getattr(settings, f"{server}_username") == (role if knows else None)
                assert (password and password.get_secret_value()) == (known[role].secret(server) if knows else None)


@service
def test_every_container_has_a_user_of_its_own(name: str) -> None:
    """Files of secrets are for one user alone, so no two containers share one."""
    user = int(services()[name]["user"].split(":")[0])
    assert user == USERS.get(name, 0)
    assert len(set(USERS.values())) == len(USERS)
    if name in USERS:
        assert all(
            volume in ("credentials:/run/secrets:ro", "credentials:/run/secrets") or "credentials" not in volume
            for volume in services()[name]["volumes"]
        )


def test_kafka_asks_everyone_and_allows_what_is_granted_finding_08() -> None:
    kafka = environment("kafka")
    protocols = dict(each.split(":") for each in kafka["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"].split(","))
    assert set(protocols.values()) == {"SASL_PLAINTEXT"}
    open_to_others = [each for each in kafka["KAFKA_LISTENERS"].split(",") if "127.0.0.1" not in each]
    assert open_to_others == ["CLIENT://:9092"]
    assert kafka["KAFKA_LISTENER_NAME_CLIENT_SASL_ENABLED_MECHANISMS"] == "SCRAM-SHA-512"
    assert kafka["KAFKA_AUTHORIZER_CLASS_NAME"].endswith(".StandardAuthorizer")
    assert kafka["KAFKA_SUPER_USERS"] == f"User:{ADMIN}"
    assert "KAFKA_ALLOW_EVERYONE_IF_NO_ACL_FOUND" not in kafka


def test_redis_and_the_store_ask_everyone_finding_08() -> None:
    command = services()["redis"]["command"]
    assert command[command.index("--aclfile") + 1] == str(MOUNTED / "redis" / "users.acl")
    store = services()["victoria-metrics"]["command"]
    assert {f"-httpAuth.username={STORE}", f"-httpAuth.password=file://{MOUNTED}/victoria-metrics/password"} < set(
        store
    )
    gate = services()["vmauth"]["command"]
    assert f"-auth.config={MOUNTED}/vmauth/auth.yml" in gate
    assert [each for each in gate if "Internal" in each] == ["-httpInternalListenAddr=127.0.0.1:8426"]


def test_the_store_has_a_writer_and_a_reader_each_with_its_own_paths() -> None:
    all_roles = roles(STAGE_NAMES)
    made = {name: name for name in names(all_roles)}
    users = yaml.safe_load(files(all_roles, made)["vmauth"]["auth.yml"])["users"]
    assert [user["username"] for user in users] == [STORE_WRITER, STORE_READER]
    writer, reader = (user["url_map"][0]["src_paths"] for user in users)
    assert reader == READS
    assert not any(re.search("import|write|admin|delete|snapshot|/metrics", path) for path in reader)
    assert writer == ["/store/api/v1/import", "/store/metrics"]


def test_the_process_of_metrics_has_a_token_and_no_password_of_grafana_finding_08() -> None:
    told = settings_of(METRICS)
    assert "grafana_username" not in told
    assert told["grafana_password_file"] == str(MOUNTED / TOKEN / "token")
    assert services()["token"]["command"][-1] == told["grafana_password_file"]
    assert services()["token"]["user"].split(":")[1] == services()[METRICS]["user"].split(":")[1]


def test_nobody_may_write_kernels_finding_07() -> None:
    """They are made when the image is, and the image is read-only."""
    assert not [volume for each in services().values() for volume in each.get("volumes", []) if "/opt" in volume]
    lines = dockerfile(ROOT / "services" / "Dockerfile")
    (compiled,) = [at for at, (name, rest) in enumerate(lines) if name == "RUN" and "services.pipeline" in rest]
    (given_up,) = [at for at, (name, _) in enumerate(lines) if name == "USER"]
    assert compiled < given_up
    (settings,) = [rest for name, rest in lines if name == "ENV"]
    assert {
        "NUMBA_CPU_NAME=generic",
        "NUMBA_CACHE_LOCATOR_CLASSES=shadowtime.shared.kernels.cache.CompiledBefore",
    } < set(settings.split())


def test_one_image_is_built_once() -> None:
    built = {name: each["image"] for name, each in services().items() if "build" in each}
    assert len(set(built.values())) == len(built) == 3
    for name, each in services().items():
        if each["image"] == built["credentials"]:
            assert each["pull_policy"] == "never"
            assert ("build" in each) == (name == "credentials")


def test_under_tls_every_server_has_a_certificate_and_every_client_an_authority() -> None:
    secure = yaml.safe_load((ROOT / "docker-compose.tls.yml").read_text())["services"]
    assert set(secure) <= set(services())
    assert set(TLS) < set(secure)
    assert secure["credentials"]["command"][-1] == "--tls"
    for name in OURS:
        told = told_to(name, tls=True)
        assert told["kafka_security_protocol"] == "SASL_SSL"
        assert told["kafka_ca_file"] == str(MOUNTED / "ca.pem")
        assert ("redis_url" in told) == ("redis_ca_file" in told)
        assert told.get("redis_url", "rediss:").startswith("rediss:")
        assert told.get("victoria_metrics_url", "https:").startswith("https:")
    # what is said again there has lost nothing
    for name in ("redis", "vmauth"):
        assert set(services()[name]["command"]) <= set(secure[name]["command"])


def test_results_are_written_where_vmauth_listens() -> None:
    given = told_to(METRICS)
    assert given["victoria_metrics_url"] == "http://vmauth:8427/store"
    assert given["victoria_metrics_username"] == STORE_WRITER
    assert "-httpListenAddr=:8427" in services()["vmauth"]["command"]
    assert given["grafana_url"] in services()["token"]["command"]
    assert services()[METRICS]["command"] == ["shadowtime", "serve", METRICS]


@pytest.mark.parametrize("name", [*FLOW, METRICS, FOLLOW, SHADOW])
def test_health_is_asked_at_the_web_port(name: str) -> None:
    port = settings_of(name)["web_port"]
    check = ["CMD", "python", "-m", "shadowtime.stack.compose.health", f"http://127.0.0.1:{port}/health"]
    assert services()[name]["healthcheck"]["test"] == check


def test_every_stage_and_the_follower_are_scraped_at_their_web_port() -> None:
    """The follower by a job of its own: where there is none, nobody is missed among the workers."""
    known = list(roles(STAGE_NAMES))
    text = files(known, {name: name for name in names(known)})["victoria-metrics"][SCRAPE]
    assert f"-promscrape.config={MOUNTED}/victoria-metrics/{SCRAPE}" in services()["victoria-metrics"]["command"]
    job, follower = json.loads(text)["scrape_configs"]
    assert (job["job_name"], follower["job_name"]) == (SCRAPE_JOB, FOLLOW_JOB)
    assert job["relabel_configs"] == [{"source_labels": ["__meta_dns_name"], "target_label": "worker"}]
    (found,) = job["dns_sd_configs"]
    assert found["names"] == [*FLOW, METRICS]
    assert {str(found["port"])} == {settings_of(name)["web_port"] for name in found["names"]}
    beside = (FOLLOW, SHADOW)
    assert follower["static_configs"] == [{"targets": [f"{name}:{settings_of(name)['web_port']}" for name in beside]}]
    assert [settings_of(name)["web_names"] for name in beside] == [*beside]


def test_the_data_source_is_victoria_metrics_by_the_name_of_its_reader() -> None:
    path = ROOT / "dashboards" / "provisioning" / "datasources" / "victoria-metrics.yml"
    (source,) = yaml.safe_load(path.read_text())["datasources"]
    assert source["url"] == "$__env{STORE_URL}"
    assert environment("grafana")["STORE_URL"] == "http://vmauth:8427"
    assert (source["basicAuth"], source["basicAuthUser"]) == (True, STORE_READER)
    assert source["secureJsonData"] == {"basicAuthPassword": f"$__file{{{MOUNTED}/grafana/store}}"}
    assert services()["grafana"]["build"]["context"] == "dashboards/provisioning"


@service
def test_every_container_is_in_the_networks_it_needs_finding_08(name: str) -> None:
    each = services()[name]
    wanted = NETWORKS[name]
    assert ("networks" not in each) if wanted is None else (set(each["networks"]) == wanted)
    assert each.get("network_mode") == {"credentials": "none", "rights": "service:kafka"}.get(name)
    assert "privileged" not in each


def test_nothing_but_grafana_and_the_live_page_is_published() -> None:
    assert {name for name, each in services().items() if "ports" in each} == {"grafana", "live"}
    networks = dict(resolved()["networks"])
    front = networks.pop("front")
    assert set(networks) == {"kafka", "redis", "scrape", "store", "results"}
    assert all(each == {"internal": True} for each in networks.values())
    assert front == {
        "driver_opts": {
            "com.docker.network.bridge.enable_ip_masquerade": "false",
            "com.docker.network.bridge.enable_icc": "false",
        }
    }
    grafana = environment("grafana")
    assert {"GF_SECURITY_ADMIN_PASSWORD__FILE", "GF_SECURITY_SECRET_KEY__FILE"} < set(grafana)
    assert grafana["GF_AUTH_ANONYMOUS_ENABLED"] == "false"


def test_grafana_is_for_this_machine_alone_unless_told_otherwise_finding_08() -> None:
    assert raw()["services"]["grafana"]["ports"] == ["${GRAFANA_BIND:-127.0.0.1}:${GRAFANA_PORT:-3000}:3000"]


def test_the_live_page_is_for_this_machine_alone_finding_14() -> None:
    """It has no password; by which names it may be asked for, tests/integration/streaming/test_web.py knows."""
    each = services()["live"]
    (port,) = each["ports"]
    assert re.fullmatch(r"127\.0\.0\.1:\d+:6080", port)
    assert each["command"] == ["shadowtime", "live", "--host", "0.0.0.0", "--port", "6080"]
    assert each["healthcheck"]["test"][-1] == "http://127.0.0.1:6080/health"


def test_whoever_follows_nothing_starts_no_follower_and_it_reads_what_is_mounted() -> None:
    each = services()[FOLLOW]
    assert each["profiles"] == ["follow"]
    program, command, source, *options = shlex.split(each["command"])
    assert (program, command, source) == ("shadowtime", "follow", "lines")
    paths = {option for option in options if option.startswith("/")}
    assert paths == {volume["target"] for volume in each["volumes"][1:]}


def test_whoever_wants_no_shadows_has_none() -> None:
    each = services()[SHADOW]
    assert each["profiles"] == ["shadow"]
    assert shlex.split(each["command"])[:3] == ["shadowtime", "shadow", "--cluster"]


@service
def test_every_container_is_confined(name: str) -> None:
    each = services()[name]
    assert each["read_only"] is True
    assert each["cap_drop"] == ["ALL"]
    assert each.get("cap_add") == (["CHOWN"] if name == "credentials" else None)
    assert each["security_opt"] == ["no-new-privileges:true"]
    assert (int(each["user"].split(":")[0]) > 0) == (name != "credentials")
    assert each["mem_limit"]
    assert each["pids_limit"]
    assert each["restart"] == (
        "on-failure:10" if name == "replayer" else "no" if name in (*ONCE, "reader") else "unless-stopped"
    )
    assert not any("docker.sock" in volume for volume in each.get("volumes", []))


@service
def test_every_container_has_time_to_end_when_all_end_at_once(name: str) -> None:
    assert services()[name]["stop_grace_period"] == "60s"


@pytest.mark.parametrize("name", [*OURS, *ONCE])
def test_what_is_ours_has_the_memory_that_it_takes(name: str) -> None:
    """Half of it did not do while kernels were compiled."""
    assert services()[name]["mem_limit"] == "512m"


def test_kafka_leaves_no_anonymous_volumes_and_its_logs_are_bounded() -> None:
    """The image declares these volumes: /var/lib/kafka/data, /etc/kafka/secrets and /mnt/shared/config."""
    kafka = services()["kafka"]
    assert {"/etc/kafka/secrets", "/mnt/shared/config"} < set(kafka["tmpfs"])
    assert "kafka:/var/lib/kafka/data" in kafka["volumes"]
    (logs,) = [each for each in kafka["tmpfs"] if each.startswith("/opt/kafka/logs:")]
    assert "size=64m" in logs.partition(":")[2].split(",")


def test_grafana_finds_every_folder_that_it_looks_into() -> None:
    """One that is missing is an error in its log."""
    folder = ROOT / "dashboards" / "provisioning"
    assert {path.name for path in folder.iterdir()} >= {"alerting", "dashboards", "datasources", "plugins"}
    assert list((folder / "plugins").iterdir()) == [folder / "plugins" / ".gitkeep"]  # git knows no empty folder


@service
def test_every_container_has_a_health_check_and_waits_for_health(name: str) -> None:
    each = services()[name]
    if name not in (*ONCE, "reader"):
        assert each["healthcheck"]["test"][0] in ("CMD", "CMD-SHELL")
        assert {"interval", "timeout", "retries"} < set(each["healthcheck"])
        assert each["healthcheck"]["start_period"] == "300s"
    for other, condition in each.get("depends_on", {}).items():
        assert other in services()
        done = "service_completed_successfully" if other in ONCE else "service_healthy"
        done = "service_started" if other == "grafana" else done  # which stops nobody
        assert condition == {"condition": done}
    if name in FLOW:
        assert set(each["depends_on"]) == {"kafka", "redis", "rights"}


def test_the_replay_waits_for_every_stage() -> None:
    assert set(services()["replayer"]["depends_on"]) >= {"kafka", *FLOW}


def test_volumes_are_named_and_declared_and_nothing_of_this_machine_is_mounted_but_what_is_followed() -> None:
    mounted = {name: each["volumes"] for name, each in services().items() if "volumes" in each}
    used = [volume for volumes in mounted.values() for volume in volumes if isinstance(volume, str)]
    assert {volume.split(":")[0] for volume in used} == set(resolved()["volumes"])
    of_this_machine = {name for name, volumes in mounted.items() if any(isinstance(volume, dict) for volume in volumes)}
    assert of_this_machine == {FOLLOW}
    for volume in mounted[FOLLOW][1:]:
        assert (volume["type"], volume["read_only"]) == ("bind", True)
    assert [name for name, each in services().items() if "secrets:/secrets" in each.get("volumes", [])] == [
        "credentials"
    ]


@service
def test_every_image_is_pinned_in_the_example(name: str) -> None:
    image = raw()["services"][name]["image"]
    found = re.fullmatch(r"[a-z/-]+:\$\{(\w+_VERSION):-[^}]+\}", image)
    assert found is not None, image
    assert re.search(r"\d+\.\d+\.\d+", variables(EXAMPLE.read_text())[found[1]])


@pytest.mark.parametrize("path", DOCKERFILES.values(), ids=list(DOCKERFILES))
def test_every_base_image_is_pinned_in_the_example(path: Path) -> None:
    stages: set[str] = set()
    arguments = {
        name
        for each in services().values()
        if "build" in each and (ROOT / each["build"]["context"] / each["build"]["dockerfile"]).resolve() == path
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


def test_every_image_of_a_registry_can_be_pinned_by_digest_finding_17() -> None:
    """A version of `.env` may be a tag and a digest: it belongs to one image, and is no tag of what is built here."""
    owners: dict[str, set[str]] = {}
    for each in raw()["services"].values():
        name, _, variable = each["image"].partition(":")
        owners.setdefault(variable[2:].partition(":")[0], set()).add(name)
        for base, version in each.get("build", {}).get("args", {}).items():
            owners.setdefault(base, set()).add(f"base of {name}")
            assert version.startswith(f"${{{base}:-")
    built = owners.pop("SHADOWTIME_VERSION")
    assert built == {"shadowtime", "shadowtime-victoria-metrics", "shadowtime-grafana"}
    assert all(len(names) == 1 for names in owners.values()), owners


@pytest.mark.parametrize(
    ("variable", "oldest"),
    [
        ("REDIS_VERSION", (7, 4, 11)),
        ("PYTHON_VERSION", (3, 11, 16)),
        ("VICTORIA_METRICS_VERSION", (1, 122, 25)),
        ("VMAUTH_VERSION", (1, 122, 25)),
        ("GRAFANA_VERSION", (12, 2, 10)),
        ("KAFKA_VERSION", (4, 3, 1)),
    ],
)
def test_no_image_is_older_than_its_line_was_in_november_2026(variable: str, oldest: tuple[int, ...]) -> None:
    found = re.match(r"v?(\d+)\.(\d+)\.(\d+)\b", variables(EXAMPLE.read_text())[variable])
    assert found is not None
    assert tuple(map(int, found.groups())) >= oldest


def test_versions_agree_with_the_rest_of_the_project() -> None:
    pinned = variables(EXAMPLE.read_text())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert pinned["KAFKA_VERSION"] == kafka_version()
    assert pinned["SHADOWTIME_VERSION"] == __version__
    assert pinned["VMAUTH_VERSION"] == pinned["VICTORIA_METRICS_VERSION"]
    minor = tuple(map(int, pinned["PYTHON_VERSION"].split(".")[:2]))
    lowest, highest = re.fullmatch(r">=3\.(\d+),<3\.(\d+)", project["requires-python"]).groups()  # type: ignore[union-attr]
    assert (3, int(lowest)) <= minor < (3, int(highest))


def test_no_secret_is_in_a_file() -> None:
    """An environment names files of secrets, never secrets: `docker inspect` shows it to all."""
    for each in raw()["services"].values():
        for name, value in each.get("environment", {}).items():
            harmless = "required;" in value or "file:/run/secrets/" in value or value.startswith("/run/secrets/")
            assert not SECRET.search(name) or harmless, name
    assert not [name for name in variables(EXAMPLE.read_text()) if SECRET.search(name)]


def test_the_example_holds_what_the_file_asks_for_and_no_more() -> None:
    """`docker compose up` runs without a `.env`, and with a copy of the example alike."""
    asked = dict(re.findall(r"(?<!\$)\$\{(\w+):-([^}]*)\}", FILE.read_text()))
    assert asked == variables(EXAMPLE.read_text())
    assert len(re.findall(r"(?<!\$)\$\{", FILE.read_text())) == len(re.findall(r"(?<!\$)\$\{\w+:-", FILE.read_text()))


def test_the_env_file_is_made_once_for_the_owner_alone(tmp_path: Path) -> None:
    shutil.copy(EXAMPLE, tmp_path)
    assert env.main(tmp_path) == 0
    written = tmp_path / ".env"
    assert written.stat().st_mode & 0o077 == 0
    assert written.read_text() == EXAMPLE.read_text()
    written.write_text("GRAFANA_PORT=1")
    assert env.main(tmp_path) == 0
    assert written.read_text() == "GRAFANA_PORT=1"


def test_nothing_but_docker_is_needed_to_bring_it_up(tmp_path: Path) -> None:
    """`make up` and `make down` run docker and nothing else, and `.env` is made with the standard library alone."""
    for target in ("up", "down"):
        told = subprocess.run(["make", "--dry-run", target], cwd=ROOT, capture_output=True, text=True, check=True)
        assert all(line.startswith("docker compose ") for line in told.stdout.splitlines() if "make" not in line)
    for part in (EXAMPLE, ROOT / "stack"):
        copy = tmp_path / part.name
        shutil.copy(part, copy) if part.is_file() else shutil.copytree(part, copy)
    subprocess.run([sys.executable, "-I", "-S", "-c", RUN_ENV, str(tmp_path)], check=True, timeout=PATIENCE)
    assert (tmp_path / ".env").read_text() == EXAMPLE.read_text()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The compose file alone: it needs no `.env`."""
    if shutil.which("docker-compose") is None:
        reason = "docker-compose is not on PATH (run shadowtime stack install compose)"
        if os.environ.get("CI"):
            pytest.fail(f"CI needs it: {reason}", pytrace=False)
        pytest.skip(reason)
    shutil.copy(FILE, tmp_path)
    for folder in ("stack", "dashboards/provisioning"):  # where images are built
        (tmp_path / folder).mkdir(parents=True)
    return tmp_path


def config(project: Path, *options: str, **told: str) -> "subprocess.CompletedProcess[str]":
    kept = {"PATH": os.environ["PATH"], "HOME": str(project)}
    return subprocess.run(
        ["docker-compose", *options, "config"],
        cwd=project,
        env=kept | told,
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


def test_docker_compose_takes_the_profile_of_the_follower_and_what_stands_in_env(project: Path) -> None:
    """The words of `FOLLOW` are told apart as a shell does, and what is mounted is what `.env` says."""
    shutil.copy(ROOT / "docker-compose.tls.yml", project)
    (project / ".env").write_text(
        "FOLLOW=pbs --cluster 'my site' --time-zone Europe/Berlin\nFOLLOW_FROM=/var/spool/pbs\n"
    )
    files_of_both = ("-f", "docker-compose.yml", "-f", "docker-compose.tls.yml")
    for chosen in ((), files_of_both):
        done = config(project, *chosen, "--profile", "follow")
        assert done.returncode == 0, done.stderr
        taken = yaml.safe_load(done.stdout)["services"][FOLLOW]
        command = taken["command"]
        words = shlex.split(command) if isinstance(command, str) else command
        assert words == ["shadowtime", "follow", "pbs", "--cluster", "my site", "--time-zone", "Europe/Berlin"]
        mounted = [each for each in taken["volumes"] if isinstance(each, dict) and each["type"] == "bind"]
        assert {each["target"]: each["source"] for each in mounted} == {
            "/var/lib/shadowtime/lines": "/var/spool/pbs",
            "/etc/shadowtime/pools.toml": str(project / "follow" / "pools.toml"),
        }
