"""VictoriaMetrics, one node, from the system's package. It keeps samples for 100 years: logs may be from 1996."""

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
"""Page that needs no password."""

PREFIX = "SHADOWTIME_STORE_"
"""Prefix of environment variables that VictoriaMetrics reads as flags."""

USER = "shadowtime"
"""The only user of VictoriaMetrics, for both writing and reading samples."""

KEYS = ("delete", "forceFlush", "forceMerge", "snapshot", "search.resetCache", "pprof", "flags", "config")
"""Actions that need the administrator's key, each set by a flag such as `-deleteAuthKey`."""


class VictoriaMetrics(Server):
    """A VictoriaMetrics server. Clients write to and query `url`.

    Parameters
    ----------
    folder, port
        As in `Server`.
    scrape_config
        A Prometheus scrape configuration; without it, nothing is scraped.
    settings
        Additional flags, such as `{"search.latencyOffset": "0s"}`. They override those below.
    access
        Passwords. Without it, the server asks for none.
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
        """Return the reason why VictoriaMetrics is not available on this machine, or None if it is."""
        if shutil.which(BINARY) is None:
            return f"victoria-metrics needs {BINARY}, which is not on PATH (run shadowtime stack install)"
        return None

    def answers(self) -> bool:
        """Return whether the server reports that it is healthy."""
        try:
            return self.get(HEALTH_PAGE, timeout=1.0) == b"OK"
        except ServerError:
            return False

    def settings_for(self, role: str) -> dict[str, str]:
        """Return the settings with which a process of a role reaches this server."""
        settings = {"victoria_metrics_url": self.url}
        if self.access is None:
            return settings
        if self.access.tls:
            settings["victoria_metrics_ca_file"] = str(self.access.authority)
        secret = self.access.secret_file(METRICS, VICTORIA_METRICS)
        return settings | {"victoria_metrics_username": USER, "victoria_metrics_password_file": str(secret)}

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
            flags["promscrape.suppressScrapeErrors"] = "true"  # `up` shows them; absent followers would fill the log
        if self.access is not None and self.access.tls:
            flags |= {"tls": "true", "tlsCertFile": str(self.access.certificate), "tlsKeyFile": str(self.access.key)}
        if self.access is not None:
            flags |= {"envflag.enable": "true", "envflag.prefix": PREFIX}  # keeps passwords out of the process list
        flags |= dict(self.settings)
        return [shutil.which(BINARY) or BINARY, *(f"-{name}={value}" for name, value in flags.items())]

    def environment(self) -> dict[str, str] | None:
        """Return the environment of the server, with its passwords; None for the environment of this process."""
        if self.access is None:
            return None
        key = self.access.secret(ADMIN, VICTORIA_METRICS)
        flags = {"httpAuth.username": USER, "httpAuth.password": self.access.secret(METRICS, VICTORIA_METRICS)}
        flags |= {f"{name}AuthKey": key for name in KEYS}
        return {**os.environ, **{PREFIX + name.replace(".", "_"): value for name, value in flags.items()}}

    def get(self, path: str, timeout: float = 30.0) -> bytes:
        """Return a page of the server. Raise `ServerError` if the server does not answer with status 200."""
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
