"""Commands of the units: `python -m shadowtime.stack.units.launch SETTINGS prepare` and `… SETTINGS start SERVER`.

* `prepare` makes missing secrets. It writes a settings file for each role, and VictoriaMetrics' scrape configuration.
  Further arguments are names of the site's own servers, for which no settings are written. It also compiles missing
  kernels, once for all stages.
* `start` writes the configuration of a server, and becomes that server. A process beside it waits until the server
  answers, sets the rights of Kafka and its topics, notifies systemd that the server is ready, and ends.
"""

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from shadowtime.shared.cli import run_app
from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.kernels import get_ready
from shadowtime.shared.streaming import Settings, prepare_topics
from shadowtime.stack.local import StackPlan
from shadowtime.stack.roles import ADMIN
from shadowtime.stack.servers import OWNER_ONLY, Kafka, Server, ServerError

READY_SECONDS = 170.0


def prepare(plan: StackPlan, outside: Sequence[str]) -> None:
    """Make missing secrets. Write the settings of all roles, except for the servers named in `outside`."""
    plan.access.prepare()
    prefixes = tuple(f"{server.replace('-', '_')}_" for server in outside)
    settings = {
        role: {name: value for name, value in values.items() if not name.startswith(prefixes)}
        for role, values in plan.role_settings().items()
    }
    plan.access.write_settings(settings)
    plan.write_scrape_config()


def compile_kernels() -> None:
    """Compile the kernels of all stages that are not in the cache."""
    import shadowtime.services.pipeline  # noqa: F401 - declares the kernels

    get_ready()


def start(plan: StackPlan, name: str) -> None:
    """Become a server of the plan. A process beside it reports when the server is ready.

    Raise `ServerError` if the plan has no server called `name`.
    """
    server = next((server for server in plan.make_servers() if server.name == name), None)
    if server is None:
        raise ServerError(f"unknown server {name!r}; expected kafka, redis or victoria-metrics")
    command, environment = server.launch_command(), server.environment()
    main = os.getpid()
    if (child := os.fork()) == 0:
        if os.fork() == 0:  # its parent ends at once: so init waits for it, not the server
            os._exit(_report(plan, server, main))
        os._exit(0)
    os.waitpid(child, 0)
    os.chdir(server.folder)
    os.execve(command[0], command, dict(os.environ) if environment is None else environment)  # noqa: S606


def _report(plan: StackPlan, server: Server, main: int) -> int:
    """Wait until the server answers and tell systemd; end the server if it does not. Return the exit status."""
    deadline = time.monotonic() + READY_SECONDS
    problem = "it does not answer"
    while time.monotonic() < deadline and Path(f"/proc/{main}").exists():
        time.sleep(0.2)
        if not server.answers():
            continue
        try:
            if isinstance(server, Kafka):
                server.grant()
                asyncio.run(prepare_topics(Settings.model_validate(plan.role_settings()[ADMIN])))
        except ShadowtimeError as error:
            problem = str(error)
            continue
        notify("READY=1")
        return 0

    try:
        os.kill(main, signal.SIGTERM)
    except ProcessLookupError:
        problem = "it has ended"
    sys.stderr.write(f"{server.name} at {server.address} is not ready: {problem}\n")
    return 1


def notify(message: str) -> None:
    """Send a message to systemd, as sd_notify(3) does; nothing happens without systemd."""
    address = os.environ.get("NOTIFY_SOCKET")
    if not address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as channel:
        channel.connect("\0" + address[1:] if address.startswith("@") else address)
        channel.sendall(message.encode())


def main() -> None:
    """Prepare the stack or start a server, as the command line says. Raise `ServerError` for other arguments."""
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    os.umask(OWNER_ONLY)
    match sys.argv[1:]:
        case [settings, "prepare", *outside]:
            prepare(StackPlan.read(Path(settings)), outside)
            compile_kernels()
        case [settings, "start", name]:
            start(StackPlan.read(Path(settings)), name)
        case words:
            raise ServerError(f"expected SETTINGS prepare or SETTINGS start SERVER, found {' '.join(words)!r}")


if __name__ == "__main__":
    run_app(main)
