"""The whole stack as local processes, without Docker: `shadowtime stack up`, `status`, `down`."""

import os
import select
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table

from shadowtime.shared.cli import ROOT, lasting_imports
from shadowtime.shared.stages import WRITTEN_BY
from shadowtime.shared.streaming import VARIABLE
from shadowtime.stack.local.state import StackState, read_state, supervisor_of
from shadowtime.stack.servers import OWNER_ONLY, ServerError, open_log

if TYPE_CHECKING:
    from shadowtime.stack.local.plan import StackPlan

console = Console(highlight=False, soft_wrap=True, emoji=False)
app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, no_args_is_help=True, help=__doc__)

UP_SECONDS = 300.0  # the first start after a change compiles kernels: some 90 s of processor time in each worker
DOWN_SECONDS = 20.0
GUARD_SECONDS = 5.0
HOPELESS = 4
"""Restarts after which `up` gives up on a process."""

Port = Annotated[int, typer.Option(min=1, max=65_535, metavar="PORT", help="Port on loopback.")]
Folder = Annotated[Path, typer.Option(metavar="FOLDER", help="Folder of data and logs.")]
STACK = ROOT / ".stack"

DEMONSTRATION = (
    "replay --transport kafka --speed 1000 --policy best --policy easy:forecast=yes "
    "--runtime empirical --adjustment auto --wait-bound bmbp"
)
"""A replay in which every stage has results. The live page and the documentation suggest the same one."""


@app.command()
def up(
    workers: Annotated[int, typer.Option(min=1, metavar="N", help="Workers per stage.")] = 1,
    kafka_port: Port = 9092,
    redis_port: Port = 6379,
    victoria_metrics_port: Port = 8428,
    web_port: Annotated[
        int,
        typer.Option(
            min=1,
            max=65_000,
            metavar="PORT",
            help="Port of the first worker's /health. Other workers have the next ports.",
        ),
    ] = 6066,
    live_port: Port = 6080,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure", help="Kafka and VictoriaMetrics require passwords; Kafka grants each user only its rights."
        ),
    ] = False,
    tls: Annotated[bool, typer.Option("--tls", help="Servers encrypt, too; implies --secure.")] = False,
    folder: Folder = STACK,
) -> None:
    """Start the servers, the workers and the live page in the background; return when all are healthy."""
    with lasting_imports():
        from shadowtime.stack.local.plan import StackPlan
    os.umask(OWNER_ONLY)
    folder = folder.resolve()
    if (pid := supervisor_of(folder)) is not None:
        console.print(f"the stack runs already (supervisor {pid}); end it with: shadowtime stack down")
        tell_addresses(StackPlan.read(folder))
        return

    ports = (kafka_port, redis_port, victoria_metrics_port, web_port, live_port)
    plan = StackPlan(str(folder), tuple(WRITTEN_BY), workers, *ports, secure or tls, tls)
    require(plan)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)  # older versions left the folder readable for others
        plan.write()
        began = time.monotonic()
        with open_log(folder / "supervisor.log") as log:
            supervisor = subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", "shadowtime.stack.local.supervisor", str(folder)],
                cwd=ROOT,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
    except OSError as error:
        raise ServerError(f"{folder}: cannot start the stack: {error}; choose another --folder") from error

    try:
        wait_until_healthy(supervisor, folder)
    except BaseException:
        supervisor.terminate()
        supervisor.wait()
        raise

    console.print(f"healthy after {time.monotonic() - began:.1f} s")
    tell_little_memory(plan)
    tell_addresses(plan)


@app.command()
def down(folder: Folder = STACK) -> None:
    """Stop all processes of the stack. The data stay in the folder."""
    folder = folder.resolve()
    pid = supervisor_of(folder)
    if pid is None:
        console.print(f"nothing runs in {folder}")
        return
    began = time.monotonic()
    try:
        supervisor = os.pidfd_open(pid)
    except ProcessLookupError:
        console.print(f"nothing runs in {folder}")
        return

    with os.fdopen(supervisor):  # readable once the process has ended, just after its lock is free
        os.kill(pid, signal.SIGTERM)
        if not select.select([supervisor], [], [], DOWN_SECONDS)[0]:
            os.kill(pid, signal.SIGKILL)  # the guards then kill its processes
            raise ServerError(f"the supervisor {pid} did not end within {DOWN_SECONDS:g} s and was killed")

    console.print(f"ended in {time.monotonic() - began:.1f} s; data stay in {folder}")


@app.command()
def status(folder: Folder = STACK) -> None:
    """Show each process; the exit status is 0 if all are healthy, else 1."""
    folder = folder.resolve()
    state = read_state(folder) if supervisor_of(folder) is not None else None
    if state is None:
        console.print(f"nothing runs in {folder}; start it with: shadowtime stack up")
        raise typer.Exit(1)
    table = Table("process", "address", "pid", "restarts", "health", box=None)
    for process in state.processes:
        health = (
            "healthy"
            if process.healthy
            else f"not healthy: {process.failure or 'does not answer yet'}; see {process.log}"
        )
        table.add_row(process.name, process.address, str(process.pid or "-"), str(process.restarts), health)

    console.print(table)
    if missing := state.expected - len(state.processes):
        console.print(f"{missing} more processes start when the servers answer")
    raise typer.Exit(0 if state.healthy else 1)


@app.command(context_settings={"allow_extra_args": True, "ignore_unknown_options": True})
def install(context: typer.Context) -> None:
    """Install missing servers. Further arguments: compose, browser, registry, slurm, jupyterhub, --yes."""
    from shadowtime.stack.install import main as install_all

    raise typer.Exit(install_all(context.args))


def require(plan: "StackPlan") -> None:
    """Raise `ServerError` if the plan cannot be carried out. Wait for processes of a killed supervisor to end."""
    deadline = time.monotonic() + GUARD_SECONDS
    while True:
        try:
            return plan.require()
        except ServerError:
            left = (Path(plan.folder) / "state.json").exists() and time.monotonic() < deadline
            if not left:
                raise

        time.sleep(0.1)


def wait_until_healthy(supervisor: "subprocess.Popen[bytes]", folder: Path) -> None:
    """Wait until every process is healthy.

    Raise `ServerError` if a process fails or takes too long; the message names it. Also raise it if the supervisor
    ends.
    """
    deadline = time.monotonic() + UP_SECONDS
    while True:
        state = read_state(folder)
        if state is not None and state.supervisor == supervisor.pid:
            if state.healthy:
                return
            if time.monotonic() > deadline or any(process.restarts >= HOPELESS for process in state.processes):
                raise ServerError(culprit(state))

        if supervisor.poll() is not None or time.monotonic() > deadline:
            log = folder / "supervisor.log"
            raise ServerError(f"the supervisor ended, or did not start; the end of {log}:\n{tail(log)}")
        time.sleep(0.05)


def culprit(state: StackState) -> str:
    """Return an error message about the first process that is not healthy, with the end of its log."""
    process = next(process for process in state.processes if not process.healthy)
    why = process.failure or "it does not answer"
    end = tail(Path(process.log))
    return f"{process.name} at {process.address} does not become healthy: {why}; the end of {process.log}:\n{end}"


def tail(log: Path) -> str:
    """Return the last 10 lines of a log, or that there is no log."""
    return "\n".join(log.read_text(errors="replace").splitlines()[-10:]) if log.exists() else "(no log)"


def tell_little_memory(plan: "StackPlan") -> None:
    """Print a note if a worker's share of the memory may not be enough for some runs."""
    from shadowtime.stack.servers import ENOUGH_MB, MEMORY

    share = plan.make_workers()[0].share_mb
    if MEMORY not in os.environ and share < ENOUGH_MB:
        console.print(
            f"note: each worker may use {share} MB of memory, and needs about 160 MB without runs; "
            f"runs with some SPECs are refused below {ENOUGH_MB} MB"
        )


def tell_addresses(plan: "StackPlan") -> None:
    """Print the addresses of all processes, and commands to try next."""
    for server in (*plan.make_servers(), *plan.make_workers()):
        console.print(f"  {server.name:24}{server.address}", markup=False)
    console.print(f"  {'live page':24}http://{plan.make_live_page().address}/", markup=False)
    command, here = Path(sys.executable).with_name("shadowtime"), Path.cwd()
    run = command.relative_to(here) if command.is_relative_to(here) else command
    console.print("\nA live replay of the bundled trace at 1,000 times real time, and what is decided:")
    if Path(plan.folder) != STACK:
        console.print(f"  export {VARIABLE}={shlex.quote(str(plan.access.folder))}", markup=False)
    console.print(f"  {run} {DEMONSTRATION} &", markup=False)
    console.print(f"  {run} watch decisions", markup=False)
