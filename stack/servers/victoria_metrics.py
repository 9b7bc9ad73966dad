"""VictoriaMetrics, one node, from the system's package: keeps samples of any age, 1996 too."""

import base64
import http.client
import os
import shutil
from pathlib import Path
from urllib.parse import urlencode

from shadowtime.stack.roles import ADMIN, METRICS, VICTORIA_METRICS
from shadowtime.stack.servers.access import Access
from shadowtime.stack.servers.ports import HOST
from shadowtime.stack.servers.server import Server, ServerError, Settings

BINARY = "victoria-metrics"
HEALTH_PAGE = "/health"
"""Open to all."""

PREFIX = "SHADOWTIME_STORE_"
"""Of the environment's variables that are flags of VictoriaMetrics."""

USER = "shadowtime"
"""The one user that VictoriaMetrics knows: whoever writes samples or reads them."""

KEYS = ("delete", "forceFlush", "forceMerge", "snapshot", "search.resetCache", "pprof", "flags", "config")
"""Actions that need the administrator's key, or one of their own: `-deleteAuthKey` and the like."""


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
    access
        Whose passwords it asks for; without, it asks for none.
    """

    name = "victoria-metrics"

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        *,
        scrape_config: Path | None = None,
        settings: Settings | None = None,
        access: Access | None = None,
    ) -> None:
        super().__init__(folder, port)
        self.access = access
        self.scrape_config = scrape_config
        self.settings: Settings = settings or {}

    @property
    def url(self) -> str:
        """Root of the HTTP interface."""
        return f"{'https' if self.access is not None and self.access.tls else 'http'}://{self.address}"

    @classmethod
    def available(cls) -> str | None:
        """Return why VictoriaMetrics cannot be had on this machine, or None if it can."""
        if shutil.which(BINARY) is None:
            return f"victoria-metrics needs {BINARY}, which is not on PATH (run shadowtime stack install)"
        return None

    def answers(self) -> bool:
        """Return whether it calls itself healthy."""
        try:
            return self._get(HEALTH_PAGE, timeout=1.0) == b"OK"
        except ServerError:
            return False

    def settings_for(self, role: str) -> dict[str, str]:
        """Return how a process of a role reaches this server."""
        settings = {"victoria_metrics_url": self.url}
        if self.access is None:
            return settings
        if self.access.tls:
            settings["victoria_metrics_ca_file"] = str(self.access.authority)
        secret = self.access.secret_file(METRICS, VICTORIA_METRICS)
        return settings | {"victoria_metrics_username": USER, "victoria_metrics_password_file": str(secret)}

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
            flags["promscrape.suppressScrapeErrors"] = "true"  # `up` tells; its log would grow while nobody follows
        if self.access is not None and self.access.tls:
            flags |= {"tls": "true", "tlsCertFile": str(self.access.certificate), "tlsKeyFile": str(self.access.key)}
        if self.access is not None:
            flags |= {"envflag.enable": "true", "envflag.prefix": PREFIX}  # no list of processes shows what is there
        flags |= dict(self.settings)
        return [shutil.which(BINARY) or BINARY, *(f"-{name}={value}" for name, value in flags.items())]

    def environment(self) -> dict[str, str] | None:
        """Return the environment of the server, with its passwords; None for that of this process."""
        if self.access is None:
            return None
        key = self.access.secret(ADMIN, VICTORIA_METRICS)
        flags = {"httpAuth.username": USER, "httpAuth.password": self.access.secret(METRICS, VICTORIA_METRICS)}
        flags |= {f"{name}AuthKey": key for name in KEYS}
        return {**os.environ, **{PREFIX + name.replace(".", "_"): value for name, value in flags.items()}}

    def _get(self, path: str, timeout: float = 30.0) -> bytes:
        context = None if self.access is None else self.access.context()
        connection = (
            http.client.HTTPConnection(HOST, self.port, timeout=timeout)
            if context is None
            else http.client.HTTPSConnection(HOST, self.port, timeout=timeout, context=context)
        )
        headers, query = {}, ""
        if self.access is not None and path != HEALTH_PAGE:
            login = f"{USER}:{self.access.secret(METRICS, VICTORIA_METRICS)}"
            headers["Authorization"] = f"Basic {base64.b64encode(login.encode()).decode()}"
            query = "?" + urlencode({"authKey": self.access.secret(ADMIN, VICTORIA_METRICS)})

        try:
            connection.request("GET", path + query, headers=headers)
            response = connection.getresponse()
            body = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise ServerError(f"{self.name} at {self.address} does not answer {path}: {error}") from error
        finally:
            connection.close()

        if response.status != http.client.OK:
            raise ServerError(f"{self.name} at {self.address} answers {path} with {response.status}: {body[:200]!r}")
        return body
