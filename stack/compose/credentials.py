"""Make every secret of docker-compose.yml once, and give each container its own secrets.

`python -m shadowtime.stack.compose.credentials` runs before all other containers, in a container without a network. It
is the only container that runs as root, because each file belongs to the user of one container, and no other user can
read the file (0400). The passwords themselves are in a volume that no other container has. A second run changes
nothing. `--renew` makes new secrets, except those that Grafana keeps in its own database, and those that seal the state
in Redis. `--tls` adds certificates.
"""

import argparse
import hashlib
import json
import os
import secrets
import sys
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli import run_app
from shadowtime.shared.metric_names import FOLLOW_JOB, SCRAPE_JOB
from shadowtime.shared.private_files import write_private
from shadowtime.shared.streaming import format_env_file
from shadowtime.stack.roles import (
    ADMIN,
    ASK,
    FOLLOW,
    HEALTH,
    KAFKA,
    LIVE,
    METRICS,
    REDIS,
    REPLAYER,
    SHADOW,
    SUBSCRIBER,
    VICTORIA_METRICS,
    Role,
    redis_acl,
    roles,
    seals,
)
from shadowtime.stack.servers import certify

MADE, MOUNTED = Path("/secrets"), Path("/run/secrets")

STORE_WRITER, STORE_READER, STORE = "store-writer", "store-reader", "store"
GRAFANA_ADMIN, GRAFANA_KEY = "grafana-admin", "grafana-key"
KEPT = (GRAFANA_ADMIN, GRAFANA_KEY)
"""Secrets that Grafana writes into its database at its first start."""

OTHERS = (STORE_WRITER, STORE_READER, STORE, *KEPT)
"""Secrets that Kafka and Redis do not use. `store` is the password of vmauth at VictoriaMetrics."""

FLOW = tuple(stage.name for stage in STAGES)
USERS = {
    "kafka": 1_000,
    "redis": 999,
    "victoria-metrics": 65_534,
    "vmauth": 10_002,
    "grafana": 472,
    "rights": 10_003,
    "token": 10_004,
    **{stage: 10_011 + number for number, stage in enumerate(FLOW)},
    METRICS: 10_021,
    LIVE: 10_022,
    REPLAYER: 10_023,
    "reader": 10_024,
    FOLLOW: 10_025,
    SHADOW: 10_026,
}
"""User id of each container. Each has its own, so that no container can read the files of another."""

OURS = {
    **{name: (name,) for name in (*FLOW, METRICS, LIVE, REPLAYER, FOLLOW, SHADOW)},
    "reader": (SUBSCRIBER, ASK),
}
"""The roles of each container that runs a part of Shadowtime."""

TLS = ("kafka", "redis", "vmauth")
"""Servers that have a certificate under TLS, by their names on the network."""

TOKEN = "grafana-token"  # noqa: S105
"""Folder into which the container `token` writes Grafana's token. Its group lets only `metrics` read it."""

READS = [
    *("/api/v1/query", "/api/v1/query_range", "/api/v1/query_exemplars", "/api/v1/series", "/api/v1/labels"),
    *("/api/v1/label/[^/]+/values", "/api/v1/metadata", "/api/v1/status/buildinfo", "/api/v1/format_query"),
]
"""Paths that Grafana requests from its data source. All are read-only."""

SCRAPE = "scrape.json"
"""File with VictoriaMetrics' scrape configuration for the metrics of workers and followers."""

WEB_PORT = 6066
"""Port of the metrics page of every worker, of the follower and of the shadows."""

WRITES = ["/store/api/v1/import", "/store/metrics"]
"""Paths for the writer of samples. They are below `/store`, because vmauth answers `/metrics` itself."""


def names(all_roles: Sequence[Role]) -> list[str]:
    """Return the name of every secret: passwords of `all_roles`, their seals, and `OTHERS`."""
    return [
        *(role.secret(server) for role in all_roles for server in (KAFKA, REDIS) if server in role.servers),
        *seals(all_roles),
        *OTHERS,
    ]


def files(all_roles: Sequence[Role], made: Mapping[str, str], *, tls: bool = False) -> dict[str, dict[str, str]]:
    """Return the texts of the files of each container, by container and file name.

    `made` has each secret by its name. `tls` says whether servers encrypt.

    >>> made = {name: name for name in names(roles(FLOW))}
    >>> print(files(roles(FLOW), made)["replayer"]["replayer.env"], end="")
    SHADOWTIME_KAFKA_BOOTSTRAP=kafka:9092
    SHADOWTIME_KAFKA_SECURITY_PROTOCOL=SASL_PLAINTEXT
    SHADOWTIME_KAFKA_USERNAME=replayer
    SHADOWTIME_KAFKA_PASSWORD=kafka-replayer
    """
    by_name = {role.name: role for role in all_roles}
    digests = {name: hashlib.sha256(secret.encode()).hexdigest() for name, secret in made.items()}
    return {
        "kafka": {"broker.properties": _broker(made[by_name[ADMIN].secret(KAFKA)])},
        "redis": {"users.acl": redis_acl(all_roles, digests), "health": made[by_name[HEALTH].secret(REDIS)]},
        "victoria-metrics": {"password": made[STORE], SCRAPE: _scraped()},
        "vmauth": {"auth.yml": _routes(made)},
        "grafana": {"admin": made[GRAFANA_ADMIN], "key": made[GRAFANA_KEY], "store": made[STORE_READER]},
        "rights": {role.secret(KAFKA): made[role.secret(KAFKA)] for role in all_roles if KAFKA in role.servers},
        "token": {"admin": made[GRAFANA_ADMIN]},
        **{
            container: {f"{name}.env": format_env_file(_settings(by_name[name], made, tls=tls)) for name in its_roles}
            for container, its_roles in OURS.items()
        },
    }


def _settings(role: Role, made: Mapping[str, str], *, tls: bool) -> dict[str, str]:
    """Return the settings of a role: addresses of its servers, and its logins there."""
    places = {
        KAFKA: {"bootstrap": "kafka:9092", "security_protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT"},
        REDIS: {"url": f"{'rediss' if tls else 'redis'}://redis:6379/0"},
        VICTORIA_METRICS: {"url": f"{'https' if tls else 'http'}://vmauth:8427/store"},
    }
    secrets: dict[str, str] = {}
    for server in role.servers:
        user, secret = (STORE_WRITER, STORE_WRITER) if server == VICTORIA_METRICS else (role.name, role.secret(server))
        authority = {"ca_file": str(MOUNTED / "ca.pem")} if tls else {}
        settings = places[server] | authority | {"username": user, "password": made[secret]}
        secrets |= {f"{server.replace('-', '_')}_{name}": value for name, value in settings.items()}
    if role.seal is not None:
        secrets["state_secret"] = made[role.seal]

    return secrets


def _broker(password: str) -> str:
    """Return the broker's login configuration for its administrator and itself, on the loopback of its container."""
    module = "org.apache.kafka.common.security.plain.PlainLoginModule"
    return f'jaas={module} required username="{ADMIN}" password="{password}" user_{ADMIN}="{password}";\n'


def _scraped() -> str:
    """Return VictoriaMetrics' scrape configuration: containers of stages and of metrics, followers and shadows.

    The containers' names become a label, which alerts and panels use. JSON is valid YAML, too. Followers and shadows
    are optional. So they have their own scrape job, without DNS discovery: that would fail if they do not exist.
    """
    job = {
        "job_name": SCRAPE_JOB,
        "scrape_interval": "5s",
        "dns_sd_configs": [{"names": [*FLOW, METRICS], "type": "A", "port": WEB_PORT}],
        "relabel_configs": [{"source_labels": ["__meta_dns_name"], "target_label": "worker"}],
    }
    targets = [{"targets": [f"{name}:{WEB_PORT}" for name in (FOLLOW, SHADOW)]}]
    follower = {"job_name": FOLLOW_JOB, "scrape_interval": "5s", "static_configs": targets}
    return json.dumps({"scrape_configs": [job, follower]})


def _routes(made: Mapping[str, str]) -> str:
    """Return the configuration of vmauth: two users with their allowed paths, and the login at VictoriaMetrics."""
    basic = b64encode(f"{STORE}:{made[STORE]}".encode()).decode()
    lines = ["users:"]
    for user, paths, dropped in ((STORE_WRITER, WRITES, 1), (STORE_READER, READS, 0)):
        lines += [
            f"- username: {user}",
            f'  password: "{made[user]}"',
            "  url_map:",
            f"  - src_paths: {paths}".replace("'", '"'),
            f"    drop_src_path_prefix_parts: {dropped}",
            "    url_prefix: http://victoria-metrics:8428",
            f'    headers: ["Authorization: Basic {basic}"]',
        ]
    return "\n".join(lines) + "\n"


def make(folder: Path, wanted: Sequence[str], *, renew: bool = False) -> dict[str, str]:
    """Return the secrets with the names `wanted`, by name. Missing secrets are made, with 128 random bits each.

    With `renew`, new secrets are made, except those that Grafana keeps, and those that seal state.
    """
    made, kept = {}, {*KEPT, *seals(roles(FLOW))}
    for name in wanted:
        path = folder / name
        if (renew and name not in kept) or not path.exists() or not path.stat().st_size:  # empty after a power cut
            write_private(path, secrets.token_hex(16))
        made[name] = path.read_text()

    return made


def add_certificates(folder: Path, contents: Mapping[str, dict[str, str]]) -> None:
    """Add a certificate and its key to each server's files, and write the authorities' certificates for all to read.

    Each server has its own certificate authority. The key of the authority is deleted after the certificate is made.
    """
    for server in TLS:
        here = folder / f"tls-{server}"
        here.mkdir(mode=0o700, exist_ok=True)
        certify(here, [f"DNS:{server}"])
        contents[server] |= {name: (here / name).read_text() for name in ("server.pem", "server.key")}
        contents[server]["keystore.pem"] = contents[server]["server.key"] + contents[server]["server.pem"]

    authorities = "".join((folder / f"tls-{server}" / "ca.pem").read_text() for server in TLS)
    write_private(MOUNTED / "ca.pem", authorities, mode=0o444)


def give(folder: Path, contents: Mapping[str, Mapping[str, str]]) -> None:
    """Write each container's files atomically, readable by its user only. Obsolete files are deleted."""
    for container, wanted in contents.items():
        here = folder / container
        here.mkdir(exist_ok=True)
        here.chmod(0o755)
        for old in here.iterdir():
            if old.name not in wanted and old.is_file():
                old.unlink()
        for name, text in wanted.items():
            write_private(here / name, text, mode=0o400, user=USERS[container])

    token = folder / TOKEN
    if not token.exists():  # an existing folder belongs to another user and cannot be changed
        token.mkdir()
        token.chmod(0o750)
        if os.geteuid() == 0:
            os.chown(token, USERS["token"], USERS[METRICS])


def main() -> None:
    """Make the missing secrets, and write the files of all containers."""
    parser = argparse.ArgumentParser(prog="python -m shadowtime.stack.compose.credentials", description=__doc__)
    parser.add_argument(
        "--renew", action="store_true", help="make all secrets anew, except those that Grafana keeps or that seal state"
    )
    parser.add_argument("--tls", action="store_true", help="add a certificate for each server; clients then use TLS")
    arguments = parser.parse_args()
    all_roles = roles(FLOW)
    made = make(MADE, names(all_roles), renew=arguments.renew)
    contents = files(all_roles, made, tls=arguments.tls)
    if arguments.tls:
        add_certificates(MADE, contents)
    give(MOUNTED, contents)
    sys.stdout.write(f"{len(made)} secrets are there, for {len(USERS)} containers\n")


if __name__ == "__main__":
    run_app(main)
