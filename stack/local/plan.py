"""The plan of a local stack: its processes and their addresses."""

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from types import MappingProxyType

from shadowtime.shared.metric_names import FOLLOW_JOB, SCRAPE_JOB
from shadowtime.shared.private_files import read_private, write_private
from shadowtime.shared.streaming import FOLLOW_PORT, SHADOW_PORT
from shadowtime.stack.roles import KAFKA, REDIS, VICTORIA_METRICS, roles
from shadowtime.stack.servers import (
    HOST,
    Access,
    Kafka,
    LivePageProcess,
    Redis,
    Server,
    ServerError,
    VictoriaMetrics,
    Worker,
    is_free,
    reserve,
)

METRICS = "metrics"
"""The process that writes the results of the stages to VictoriaMetrics."""

FOLLOWERS = 4
"""Number of scraped ports for followers, and also for shadows: the default port, and the ports below it for further
clusters. Some of these ports may be unused."""

ASK_PORT = 6090
"""Port of `shadowtime ask --serve`. No worker gets it."""


@dataclass(frozen=True)
class StackPlan:
    """A stack: three servers, `workers` workers for each of `stages`, the writer of metrics, and the live page.

    Redis always has a user for each role that uses Redis. Kafka and VictoriaMetrics require passwords if the stack is
    `secure`. All three servers encrypt if `tls` is set.

    Examples
    --------
    >>> plan = StackPlan("/tmp/stack", ("scheduler", "scoreboard"), workers=2)
    >>> [(worker.name, worker.port) for worker in plan.make_workers()][1:3]
    [('scheduler-2', 6067), ('scoreboard-1', 6068)]
    >>> plan.make_workers()[-1].name
    'metrics'
    """

    folder: str
    stages: tuple[str, ...]
    workers: int = 1
    kafka_port: int = 9092
    redis_port: int = 6379
    victoria_metrics_port: int = 8428
    web_port: int = 6066
    live_port: int = 6080
    secure: bool = False
    tls: bool = False
    kafka_jars: str | None = None
    """Folder with the jars of Kafka; None for those that Maven fetched."""

    @property
    def access(self) -> Access:
        """Rights and secrets of the stack."""
        return Access(Path(self.folder) / "access", roles(self.stages), self.tls)

    @classmethod
    def read(cls, folder: Path) -> "StackPlan":
        """Return the plan that `write` left in `folder`."""
        fields = json.loads(read_private(folder / "plan.json"))
        return cls(**fields | {"stages": tuple(fields["stages"])})

    def text(self) -> str:
        """Return the plan as the JSON that `read` expects."""
        return json.dumps(asdict(self), indent=2) + "\n"

    def write(self) -> None:
        """Write the plan into its folder."""
        write_private(Path(self.folder) / "plan.json", self.text())

    def make_servers(self) -> list[Server]:
        """Return Kafka, Redis and VictoriaMetrics, not yet started."""
        folder, guarded = Path(self.folder), self.access if self.secure else None
        jars = None if self.kafka_jars is None else Path(self.kafka_jars)
        servers = (self.kafka_port, self.redis_port, self.victoria_metrics_port, self.live_port)
        reserve([*servers, *(worker.port for worker in self.make_workers())])  # Kafka's controller takes a free port
        return [
            Kafka(folder / "kafka", self.kafka_port, access=guarded, jars=jars),
            Redis(folder / "redis", self.redis_port, access=self.access),
            VictoriaMetrics(
                folder / "victoria-metrics",
                self.victoria_metrics_port,
                scrape_config=folder / "scrape.json",
                access=guarded,
            ),
        ]

    def role_settings(self) -> dict[str, dict[str, str]]:
        """Return the settings of every role: the addresses of its servers, its logins there, and its seal."""
        kafka, redis, store = self.make_servers()
        reached = {KAFKA: kafka, REDIS: redis, VICTORIA_METRICS: store}
        settings: dict[str, dict[str, str]] = {}
        for role in self.access.roles:
            settings[role.name] = {}
            for server in role.servers:
                settings[role.name] |= reached[server].settings_for(role.name)
            if (seal := self.access.seal_file(role.name)) is not None:
                settings[role.name]["state_secret_file"] = str(seal)
        return settings

    def make_workers(self) -> list[Worker]:
        """Return every worker in the order of the flow, then the writer of metrics, not yet started."""
        names = [
            (stage, stage if self.workers == 1 else f"{stage}-{number}")
            for stage in self.stages
            for number in range(1, self.workers + 1)
        ]
        ports = (port for port in count(self.web_port) if port not in (self.live_port, ASK_PORT))
        return [
            Worker(name, stage, self.access.folder, Path(self.folder) / name, next(ports), len(names))
            for stage, name in [*names, (METRICS, METRICS)]
        ]

    def make_live_page(self) -> LivePageProcess:
        """Return the live page, not yet started."""
        return LivePageProcess(self.access.folder, Path(self.folder) / "live", self.live_port)

    def write_scrape_config(self) -> None:
        """Write VictoriaMetrics' scrape configuration for workers, and for optional followers and shadows, as JSON.

        JSON is valid YAML, too.
        """
        targets = [{"targets": [worker.address], "labels": {"worker": worker.name}} for worker in self.make_workers()]
        ports = [first - further for first in (FOLLOW_PORT, SHADOW_PORT) for further in range(FOLLOWERS)]
        followers = [{"targets": [f"{HOST}:{port}" for port in ports]}]
        jobs = [
            {"job_name": name, "scrape_interval": "5s", "static_configs": asked}
            for name, asked in ((SCRAPE_JOB, targets), (FOLLOW_JOB, followers))
        ]
        (Path(self.folder) / "scrape.json").write_text(json.dumps({"scrape_configs": jobs}, indent=2) + "\n")

    def require_own_ports(
        self, outside: Collection[str] = (), beside: Mapping[str, int] = MappingProxyType({})
    ) -> None:
        """Raise `ServerError` if two processes have the same port.

        Servers named in `outside` do not count. `beside` has the ports of further processes, by name.
        """
        taken: dict[int, str] = {}
        servers = [server for server in self.make_servers() if server.name not in outside]
        own = {server.name: server.port for server in (*servers, *self.make_workers(), self.make_live_page())}
        for name, port in (*own.items(), *beside.items()):
            if (other := taken.setdefault(port, name)) != name:
                raise ServerError(f"{other} and {name} cannot both listen on {HOST}:{port}; change a port")

    def require(self) -> None:
        """Raise `ServerError`, with the remedy, if a server is not available or a port is taken."""
        servers = self.make_servers()
        for server in servers:
            if (reason := server.available()) is not None:
                raise ServerError(reason)
        self.require_own_ports()
        others = [(server, f"port: --{server.name}-port") for server in (*servers, self.make_live_page())]
        others += [(worker, "first port: --web-port") for worker in self.make_workers()]
        for server, remedy in others:
            if not is_free(server.port):
                raise ServerError(
                    f"{server.name} cannot listen on {server.address}: another process does; end it "
                    f"(ss -tlnp 'sport = :{server.port}' names it), or choose another {remedy} PORT"
                )
