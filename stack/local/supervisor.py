"""The process that keeps the stack running, in the background: `python -m shadowtime.stack.local.supervisor FOLDER`.

`shadowtime stack up` starts it. On SIGTERM it ends the workers, then the servers, then itself. Its processes never
outlive it, because each has a guard (`stack/servers/server.py`).
"""

import asyncio
import logging
import os
import signal
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path

from shadowtime.shared.errors import ShadowtimeError
from shadowtime.shared.streaming import Settings, prepare_topics
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.local.restart_loop import RestartLoop
from shadowtime.stack.local.state import Process, StackState, hold_lock, write_state
from shadowtime.stack.roles import ADMIN
from shadowtime.stack.servers import OURS, OWNER_ONLY, Kafka, Server, ServerError

log = logging.getLogger("stack")

TELL_SECONDS = 0.2
WORKERS_STOP_SECONDS = 8.0
SERVERS_STOP_SECONDS = 5.0


class Supervisor:
    """Restart loops of servers and workers, and their state."""

    def __init__(self, plan: StackPlan) -> None:
        self._folder = Path(plan.folder)
        self._plan = plan
        self._servers = plan.make_servers()
        self._workers = [*plan.make_workers(), plan.make_live_page()]
        self._loops: list[RestartLoop] = []
        self._written: StackState | None = None
        self._unwritten = False
        self._stopping = threading.Event()

    def stop(self, *_: object) -> None:
        """Ask `run` to end all processes and return. Also a signal handler."""
        self._stopping.set()

    def run(self) -> None:
        """Keep the stack running until `stop` is called."""
        servers = self._start(self._servers)
        workers: list[RestartLoop] = []
        try:
            while not self._stopping.wait(TELL_SECONDS):
                if not workers and all(loop.healthy for loop in servers) and self._granted():
                    workers = self._start(self._workers)
                self._publish_state()
        finally:
            began = time.monotonic()
            _end(workers, WORKERS_STOP_SECONDS)
            _end(servers, SERVERS_STOP_SECONDS)
            log.info("all processes ended in %.1f s", time.monotonic() - began)

    def _granted(self) -> bool:
        """Under `secure`, set all rights and create the topics: workers may not do so. Return False on failure."""
        if not self._plan.secure:
            return True
        try:
            for server in self._servers:
                if isinstance(server, Kafka):
                    server.grant()
            admin = self._plan.role_settings()[ADMIN]
            asyncio.run(prepare_topics(Settings.model_validate(admin)))
        except ShadowtimeError as error:
            log.warning("%s; trying again", error)
            return False

        return True

    def _start(self, servers: Sequence[Server]) -> list[RestartLoop]:
        loops = [RestartLoop(server) for server in servers]
        self._loops += loops
        for loop in loops:
            loop.start()
        return loops

    def _publish_state(self) -> None:
        processes = tuple(
            Process(
                loop.name,
                loop.server.address,
                loop.pid,
                loop.restarts,
                loop.healthy,
                loop.failure,
                str(loop.server.log),
            )
            for loop in self._loops
        )
        state = StackState(os.getpid(), len(self._servers) + len(self._workers), processes)
        if state == self._written:
            return
        try:
            write_state(self._folder, state)
        except OSError as error:  # such as a full disk: the processes continue, and the next call tries again
            if not self._unwritten:
                log.warning("%s cannot be written: %s; trying again", self._folder / "state.json", error.strerror)
            self._unwritten = True
        else:
            self._written, self._unwritten = state, False


def _end(loops: Sequence[RestartLoop], seconds: float) -> None:
    for loop in loops:
        loop.stop_within(seconds)
    for loop in loops:
        loop.join()


def main() -> int:
    """Run the supervisor of the folder that the command line names. Return the exit status: 2 if it cannot run."""
    folder = Path(sys.argv[1])
    logging.getLogger("aiokafka").setLevel(logging.ERROR)
    os.umask(OWNER_ONLY)
    for name in [name for name in os.environ if name.upper().startswith(OURS)]:
        del os.environ[name]  # the stack sets these variables itself
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    try:
        with hold_lock(folder):
            plan = StackPlan.read(folder)
            plan.write_scrape_config()
            plan.access.prepare()
            plan.access.write_settings(plan.role_settings())
            (folder / "state.json").unlink(missing_ok=True)
            supervisor = Supervisor(plan)
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                signal.signal(number, supervisor.stop)
            try:
                supervisor.run()
            finally:
                plan.access.remove_settings(role.name for role in plan.access.roles)
                (folder / "state.json").unlink(missing_ok=True)
    except (ServerError, OSError) as error:
        log.error("%s", error)
        return 2

    return 0


if __name__ == "__main__":
    sys.exit(main())
