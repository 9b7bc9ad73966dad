"""The five stages and the replayer as processes, to be killed."""

import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from types import TracebackType

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.stages.topics import DECISIONS, SCORES
from shadowtime.shared.streaming.kafka.clients import partition_of
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.roles import SUBSCRIBER
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.forked import Forked
from tests.support.kafka_cluster import KafkaCluster
from tests.support.patience import PATIENCE
from tests.support.redis_cluster import RedisCluster
from tests.support.topic_logs import sequences, without_duplicates

Process = Forked | subprocess.Popen[bytes]


class Workers:
    """Worker processes of every stage over one Kafka and one Redis; dead ones are started again by `tend`.

    They are forked, unless they are to be `typed`: as a shell starts and Python ends them.
    """

    def __init__(
        self,
        kafka: Kafka | KafkaCluster,
        redis: Redis | RedisCluster,
        folder: Path,
        per_stage: int = 1,
        *,
        typed: bool = False,
        **settings: str,
    ) -> None:
        self.typed = typed
        self.folder = folder
        self.kafka = kafka
        self.redis = redis
        self.environment = {
            **os.environ,
            "SHADOWTIME_KAFKA_BOOTSTRAP": kafka.address,
            "SHADOWTIME_REDIS_URL": redis.url,
            "SHADOWTIME_WEB_PORT": "0",
            "SHADOWTIME_CONNECT_SECONDS": str(PATIENCE),
            **{f"SHADOWTIME_{name.upper()}": value for name, value in settings.items()},
        }
        self.names = [f"{stage.name}-{number}" for stage in STAGES for number in range(per_stage)]
        self.processes: dict[str, Process] = {}
        self.starts = dict.fromkeys(self.names, 0)
        self.replays: list[Process] = []

    @property
    def kafka_settings(self) -> Settings:
        """How to read what lies on the topics, as someone who watches."""
        settings = Settings(kafka_bootstrap=self.kafka.address)
        if isinstance(self.kafka, KafkaCluster) or self.kafka.access is None:
            return settings
        return settings.model_validate(self.kafka.settings_for(SUBSCRIBER))

    def __enter__(self) -> "Workers":
        self.tend()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for process in (*self.processes.values(), *self.replays):
            with suppress(ProcessLookupError):
                process.send_signal(signal.SIGCONT)
                process.kill()
            process.wait()

    def tend(self) -> None:
        """Start every worker that does not run."""
        for name in self.names:
            if name not in self.processes or self.processes[name].poll() is not None:
                self.processes[name] = self.start(["serve", name.rpartition("-")[0]], name)
                self.starts[name] += 1

    def start(self, arguments: list[str], name: str) -> Process:
        path = self.folder / f"{name}.log"
        if not self.typed:
            return Forked(arguments, self.environment, path)
        with path.open("ab") as log:
            command = [sys.executable, "-m", "shadowtime", *arguments]
            return subprocess.Popen(command, cwd=ROOT, env=self.environment, stdout=log, stderr=log)

    def signal(self, name: str, number: signal.Signals) -> None:
        self.processes[name].send_signal(number)

    def logs(self) -> str:
        return "\n".join(f"--- {path.name}\n{path.read_text()[-1500:]}" for path in sorted(self.folder.glob("*.log")))

    def replay(self, run: str, decisions: Path, *arguments: str) -> Process:
        """Start a replay over Kafka."""
        options = ["--transport", "kafka", "--run", run, "--decisions", str(decisions), *arguments]
        self.replays.append(self.start(["replay", *options], f"replay-{run.replace('/', '-')}"))
        return self.replays[-1]

    def wait_for_decisions(self, run: str, count: int = 1, seconds: float = PATIENCE) -> None:
        """Wait until the scheduler has answered for a run, and the stage behind it too: all are at work then."""
        settings = self.kafka_settings
        partition = partition_of(run, settings.partitions)
        until = time.monotonic() + seconds
        while min(map(len, sequences(settings, run, partition, (DECISIONS, SCORES)).values())) < count:
            assert time.monotonic() < until, f"no decision of run {run!r} within {seconds} s\n{self.logs()}"
            self.tend()  # one that gets no partition for long ends itself, to be started again
            time.sleep(0.2)

    def wait_for_answers(self, settings: Settings, run: str, last: int) -> None:
        """Wait until the last stage has answered each event of a run up to sequence `last`, once and in order."""
        partition = partition_of(run, settings.partitions)
        until = time.monotonic() + PATIENCE
        while True:
            answered = sequences(settings, run, partition, (SCORES,))[SCORES]
            if without_duplicates(answered) == list(range(last + 1)):
                return
            assert time.monotonic() < until, f"answered: {answered[-5:]}, wanted up to {last}\n{self.logs()}"
            self.tend()
            time.sleep(0.2)

    def finish(self, process: Process, seconds: float = 2 * PATIENCE) -> None:
        """Wait for a replay, tending the workers."""
        until = time.monotonic() + seconds
        while process.poll() is None:
            self.tend()
            assert time.monotonic() < until, f"the replay did not end within {seconds} s\n{self.logs()}"
            time.sleep(0.1)
        assert process.returncode == 0, f"the replay ended with {process.returncode}\n{self.logs()}"
