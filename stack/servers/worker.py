"""One stage of the pipeline as a child process. Its own web page reports whether it is healthy."""

import http.client
import os
import sys
from pathlib import Path

from shadowtime.shared.cli import ROOT
from shadowtime.shared.streaming import VARIABLE, memory_limit
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.server import Server

OURS = ("SHADOWTIME_KAFKA_", "SHADOWTIME_REDIS_", "SHADOWTIME_VICTORIA_METRICS_", "SHADOWTIME_WEB_", VARIABLE)
"""Prefixes of the settings that the stack decides. A worker reads all other settings from the environment."""


MEMORY = "SHADOWTIME_MEMORY_MB"

ENOUGH_MB = 512
"""The memory in MB with which a worker accepts every SPEC with default keys (docs/cost.md)."""


class Worker(Server):
    """A worker of a stage. `port` serves `/health` and `/metrics`.

    Parameters
    ----------
    name
        Name in the stack: the stage, with a number if the stage has several workers.
    stage
        The stage that it runs, or another argument of `shadowtime serve`.
    access
        Folder with the settings file of its role: the addresses of the servers and the logins.
    folder
        Folder for its log.
    port
        Port of its web pages on loopback.
    sharing
        The number of workers that share the memory of this machine, or of its control group.
    """

    def __init__(self, name: str, stage: str, access: Path, folder: Path, port: int, sharing: int = 1) -> None:
        super().__init__(folder, port)
        self._sharing = sharing
        self.name = name
        self.stage = stage
        self._access = access

    @classmethod
    def available(cls) -> str | None:
        """Return None, because a worker needs only this interpreter."""
        return None

    def answers(self) -> bool:
        """Return whether the worker reports that it is healthy."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=1.0)
        try:
            connection.request("GET", "/health")
            return connection.getresponse().status == http.client.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _command(self) -> list[str]:
        command = [sys.executable, "-m", "shadowtime", "serve", self.stage]
        return [*command, f"--web-host={HOST}", f"--web-port={self.port}"]

    @property
    def share_mb(self) -> int:
        """The worker's share of the memory in MB."""
        return max(1, int(memory_limit() / self._sharing / 1e6))

    def environment(self) -> dict[str, str]:
        """Return the environment of the worker: that of this process without the settings that the stack decides.

        Unless the environment sets SHADOWTIME_MEMORY_MB, the worker may use its share of the memory.
        """
        kept = {name: value for name, value in os.environ.items() if not name.upper().startswith(OURS)}
        path = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
        return {MEMORY: str(self.share_mb)} | kept | {"PYTHONPATH": path, VARIABLE: str(self._access)}


class LivePageProcess(Worker):
    """The process of the live page, which `port` serves to visitors."""

    def __init__(self, access: Path, folder: Path, port: int) -> None:
        super().__init__("live", "live", access, folder, port)

    def _command(self) -> list[str]:
        return [sys.executable, "-m", "shadowtime", self.stage, f"--host={HOST}", f"--port={self.port}"]
