"""A follower beside a real Slurm, as a process that is killed and started again."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import uuid4

from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages import FOLLOWED, Envelope, run_name
from shadowtime.shared.streaming.settings import Settings
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.lives import log_of
from tests.support.patience import PATIENCE
from tests.support.slurm_cluster import SlurmCluster

WATCHES = "lp"
"""As whom Slurm's commands run: sdiag counts their load apart."""


class FollowerProcess:
    """A follower that is killed and started again.

    Tests share Kafka and Redis, and each of them has a Slurm of its own. So each follows a cluster of its own `name`:
    else it would continue the run of another test.
    """

    def __init__(
        self, cluster: SlurmCluster, kafka: Kafka, redis: Redis, log: Path, policy: str = "easy", name: str = ""
    ) -> None:
        self.cluster = name or f"shadow-{uuid4().hex[:8]}"
        self.run = run_name(self.cluster, FOLLOWED)
        self.settings = Settings(kafka_bootstrap=kafka.address, redis_url=redis.url)
        self._command = [
            *(sys.executable, "-m", "shadowtime", "follow", "slurm", "--cluster", self.cluster, "--history", "1day"),
            *("--every", "5", "--policy", policy, "--kafka-bootstrap", kafka.address, "--redis-url", redis.url),
            *("--web-port", "0", "--patience", "90"),  # slurmdbd may have lost what happened while it was away
            *("--via", f"setpriv --reuid={WATCHES} --regid={WATCHES} --init-groups"),  # whose load is counted apart
        ]
        self._environment = cluster.environment
        self._log = log
        self.start()

    def start(self) -> None:
        with self._log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        assert self.process.poll() is None, self._log.read_text()
        self.process.kill()
        self.process.wait()

    def wait_until_told(self, second: int) -> list[Envelope]:
        """Return the log once it has come to a second of Unix."""
        until = time.monotonic() + PATIENCE
        while time.monotonic() < until:
            assert self.process.poll() is None, self._log.read_text()
            log = log_of(self.settings, self.run)
            if log and log[0].event.unix_start + log[-1].event.time > second:  # type: ignore[union-attr]
                return log
            time.sleep(2)
        raise AssertionError(f"not told within {PATIENCE} s: {self._log.read_text()}")


@contextmanager
def following(
    cluster: SlurmCluster, kafka: Kafka, redis: Redis, log: Path, policy: str = "easy", name: str = ""
) -> Iterator[FollowerProcess]:
    process = FollowerProcess(cluster, kafka, redis, log, policy, name)
    try:
        yield process
    finally:
        process.process.kill()
        process.process.wait()
