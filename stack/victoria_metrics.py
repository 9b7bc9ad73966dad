"""VictoriaMetrics, one node, from the system's package: keeps samples of any age, 1996 too."""

import http.client
import shutil
from pathlib import Path

from stack.ports import HOST
from stack.server import Server, ServerError, Settings

BINARY = "victoria-metrics"


class VictoriaMetrics(Server):
    """A VictoriaMetrics server; clients write to and query `url`.

    Parameters
    ----------
    folder
        Data and log.
    port
        Where it listens on loopback; by default a port that is free now.
    scrape_config
        A Prometheus scrape configuration, if it shall scrape.
    settings
        Flags beside or instead of those below, such as `{"search.latencyOffset": "0s"}`.
    """

    name = "victoria-metrics"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        scrape_config: Path | None = None,
        settings: Settings | None = None,
    ) -> None:
        super().__init__(folder, port)
        self.scrape_config = scrape_config
        self.settings: Settings = settings or {}

    @property
    def url(self) -> str:
        """Root of the HTTP interface."""
        return f"http://{self.address}"

    @classmethod
    def available(cls) -> str | None:
        """Return why VictoriaMetrics cannot be had on this machine, or None if it can."""
        if shutil.which(BINARY) is None:
            return f"victoria-metrics needs {BINARY}, which is not on PATH (run python -m stack.install)"
        return None

    def answers(self) -> bool:
        """Return whether it calls itself healthy."""
        try:
            return self._get("/health", timeout=1.0) == b"OK"
        except ServerError:
            return False

    def reset_rollup_cache(self) -> None:
        """Forget cached query results; due after samples were written that are older than a few minutes."""
        self._get("/internal/resetRollupResultCache")

    def flush(self) -> None:
        """Write every sample and its index to disk, where no kill reaches them, and let queries see them.

        By itself it takes up to ten seconds. (`/internal/force_flush` leaves the index in memory, a snapshot
        does not.)
        """
        self._get("/internal/force_flush")
        self._get("/snapshot/create")
        self._get("/snapshot/delete_all")

    def _command(self) -> list[str]:
        flags: dict[str, str | int] = {
            "storageDataPath": str(self.folder / "data"),
            "httpListenAddr": self.address,
            "retentionPeriod": "100y",
            "dedup.minScrapeInterval": "1ms",
            "memory.allowedBytes": "256MiB",  # of caches; 60 % of the machine by default
        }
        if self.scrape_config is not None:
            flags["promscrape.config"] = str(self.scrape_config.resolve())
        flags |= dict(self.settings)
        return [shutil.which(BINARY) or BINARY, *(f"-{name}={value}" for name, value in flags.items())]

    def _get(self, path: str, timeout: float = 30.0) -> bytes:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=timeout)
        try:
            connection.request("GET", path)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{self.name} at {self.address} does not answer {path}: {error}") from error
        finally:
            connection.close()
        if response.status != http.client.OK:
            raise ServerError(f"{self.name} at {self.address} answers {path} with {response.status}: {body[:200]!r}")
        return body
