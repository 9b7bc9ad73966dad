"""A real JupyterHub with configurable-http-proxy and batchspawner, whose servers are jobs of a real Slurm."""

import asyncio
import json
import re
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import aiohttp

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.install import hub_folder, hub_missing
from shadowtime.stack.servers.ports import free_port
from tests.support.patience import PATIENCE
from tests.support.slurm_cluster import SlurmCluster

LIMIT = 180
"""Seconds that a server may run."""

TOKEN = "t" * 32
PAGE = ROOT / "docs" / "jupyterhub.md"
CONFIG = """\
import sys

sys.path.insert(0, {stack!r})
{page}
c.JupyterHub.authenticator_class = "dummy"
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.JupyterHub.db_url = "sqlite:///{folder}/hub.sqlite"
c.JupyterHub.cookie_secret_file = "{folder}/cookie_secret"
c.ConfigurableHTTPProxy.command = ["{proxy}"]
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{proxy_port}"
c.ConfigurableHTTPProxy.pid_file = "{folder}/proxy.pid"
c.JupyterHub.services = [{{"name": "test", "api_token": "{token}"}}]
c.JupyterHub.load_roles = [{{"name": "test", "services": ["test"], "scopes": ["admin:users", "admin:servers"]}}]
c.JupyterHub.tornado_settings = {{"slow_spawn_timeout": 1}}
c.Authenticator.allow_all = True
c.Spawner.cmd = ["{bin}/jupyterhub-singleuser"]
c.Spawner.env_keep = ["PATH", "SLURM_CONF", "TESTED_BY"]
c.BatchSpawnerBase.batchspawner_singleuser_cmd = "{bin}/batchspawner-singleuser"
c.BatchSpawnerBase.exec_prefix = "setpriv --reuid={{username}} --regid={{username}} --init-groups"
c.BatchSpawnerBase.req_prologue = "export HOME=$(mktemp -d); trap 'rm -r $HOME' EXIT"
c.BatchSpawnerBase.req_nprocs = "4"
c.BatchSpawnerBase.req_runtime = "0:{limit}"
c.MultiSlurmSpawner.daemon_resolver = {nodes!r}
script = MultiSlurmSpawner.batch_script.default_value
for part, instead in (
    ("#SBATCH --get-user-env=L\\n", ""),  # the users of tests have no login shell
    ("{{{{homedir}}}}/jupyterhub_slurmspawner_%j.log", "/dev/null"),  # and may not write at home
    ("{{{{homedir}}}}", "/tmp"),
):
    script = script.replace(part, instead)
c.MultiSlurmSpawner.batch_script = script
c.ShadowtimeProgress.shadowtime_seconds = 5
"""
"""Settings that a test needs beside the settings of the docs."""


def no_hub(user: str) -> str | None:
    """Return why there can be no JupyterHub for this user; None if there can."""
    if (reason := hub_missing()) is not None:
        return reason
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"]
    command += [str(hub_folder() / "bin" / "jupyterhub"), "--version"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return f"user {user} cannot run the Python of {hub_folder()}: {done.stderr}" if done.returncode else None


class Shown(NamedTuple):
    """An event of the page of a pending server, and its second."""

    time: float
    message: str


class Notebook(NamedTuple):
    """A server: its job, what its user saw, and when it was submitted, started, and ready for its user."""

    job: str
    shown: list[Shown]
    submitted: int
    started: int
    ready: float

    @property
    def lines(self) -> list[Shown]:
        """The events that have an expected start."""
        return [each for each in self.shown if each.message.startswith("waiting: ")]


class NotebookHub:
    """A hub at `url`; `log` has what it and its proxy said."""

    def __init__(self, cluster: SlurmCluster, url: str, folder: Path, session: aiohttp.ClientSession) -> None:
        self.url, self.log = url, folder / "hub.log"
        self._cluster = cluster
        self._session = session

    async def call(self, method: str, path: str) -> Any:
        """Return the answer of the hub's API."""
        async with self._session.request(method, f"{self.url}hub/api/{path}") as answer:
            assert answer.status < 400, f"{method} {path}: {await answer.text()}"
            return await answer.json() if answer.content_type == "application/json" else None

    async def start(self, user: str) -> Notebook:
        """Start a server as its user does, look at its page until it is ready, and stop it."""
        shown: list[Shown] = []
        await self.call("POST", f"users/{user}/server")
        ready = False
        async with self._session.get(f"{self.url}hub/api/users/{user}/server/progress") as answer:
            async for line in answer.content:
                if line.startswith(b"data:"):
                    event = json.loads(line.removeprefix(b"data:"))
                    shown.append(Shown(time.time(), event["message"]))
                    assert not event.get("failed"), f"{shown}: {self.log.read_text()}"
                    ready |= bool(event.get("ready"))
        assert ready, f"{shown}: {self.log.read_text()}"
        at = time.time()
        job = (await self.call("GET", f"users/{user}?include_stopped_servers"))["servers"][""]["state"]["job_id"]
        async with self._session.get(f"{self.url}user/{user}/api/status") as answer:
            assert answer.status in (200, 403), await answer.text()  # it is the notebook server that answers
        command = ("env", "SLURM_TIME_FORMAT=%s", "squeue", "-h", "-j", job, "-O", "SubmitTime,StartTime")
        submitted, started = map(int, (await asyncio.to_thread(self._cluster.run, *command)).split())
        await self.stop(user)
        return Notebook(job, shown, submitted, started, at)

    async def stop(self, user: str) -> None:
        """Stop the server of a user, also one that waits, and wait until its job is gone."""
        await self.call("DELETE", f"users/{user}/server")
        while (await self.call("GET", f"users/{user}"))["server"] is not None or self._pending(user):
            await asyncio.sleep(0.5)

    def _pending(self, user: str) -> bool:
        return bool(self._cluster.run("squeue", "-h", "-u", user, "-n", "spawner-jupyterhub", "-t", "R,CG,PD").strip())


@asynccontextmanager
async def notebook_hub(cluster: SlurmCluster, folder: Path, url: str, token_file: Path) -> AsyncIterator[NotebookHub]:
    """Run a hub whose spawner asks the live page at `url`."""
    port, hub_port, proxy_port = free_port(), free_port(), free_port()
    binaries = hub_folder() / "bin"
    values = {"port": port, "hub_port": hub_port, "proxy_port": proxy_port, "folder": folder, "token": TOKEN}
    values |= {"bin": binaries, "proxy": hub_folder() / "node_modules/.bin/configurable-http-proxy", "limit": LIMIT}
    values |= {"stack": str(ROOT / "stack"), "nodes": dict.fromkeys(cluster.nodes, "127.0.0.1")}
    page = re.search(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    assert page is not None
    told = page[1].replace("SlurmSpawner", "MultiSlurmSpawner").replace("http://127.0.0.1:6080", url)
    told = told.replace('"mine"', '"shadow"').replace("/etc/jupyterhub/shadowtime-token", str(token_file))
    (folder / "jupyterhub_config.py").write_text(CONFIG.format(**values, page=told))
    environment = {**cluster.environment, "PATH": f"{binaries}:{cluster.environment['PATH']}"}
    environment = {name: value for name, value in environment.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    with (folder / "hub.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            *(binaries / "jupyterhub", "-f", folder / "jupyterhub_config.py"),
            cwd=folder, env=environment, stdout=log, stderr=log,
        )  # fmt: skip
    patience = aiohttp.ClientTimeout(total=None, connect=PATIENCE)
    headers = {"Authorization": f"token {TOKEN}"}
    try:
        async with aiohttp.ClientSession(timeout=patience, headers=headers) as session:
            hub = NotebookHub(cluster, f"http://127.0.0.1:{port}/", folder, session)
            async with asyncio.timeout(PATIENCE):
                while not await _answers(session, f"{hub.url}hub/health"):
                    assert process.returncode is None, hub.log.read_text()
                    await asyncio.sleep(0.2)
            yield hub
    finally:
        if process.returncode is None:
            process.terminate()
            await process.wait()


async def _answers(session: aiohttp.ClientSession, url: str) -> bool:
    try:
        async with session.get(url) as answer:
            return answer.status == 200
    except aiohttp.ClientError:
        return False
