"""A real Slurm on this machine, from Debian's packages: munged, mariadbd, slurmdbd, slurmctld and a slurmd per node.

It has a folder and ports of its own. It takes root: slurmd starts jobs as their users, for whom system users stand in
that every Debian has.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Self

from shadowtime.stack.servers.ports import free_port

COMMANDS = ("munged", "mariadbd", "mariadb-install-db", "slurmdbd", "slurmctld", "slurmd", "squeue", "sacct")
PLUGIN = "accounting_storage_mysql.so"
REST_COMMAND = "slurmrestd"
REST_USER = "lp"
"""As whom slurmrestd runs: it refuses to be root or Slurm's own user."""

USERS = ("games", "news", "mail", "backup", "man")
SECONDS = 60.0
PATH = f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"

DAEMONS = """\
ClusterName=shadow
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={ctld}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
StateSaveLocation={base}/state
SlurmdSpoolDir={base}/spool/%n
SlurmctldPidFile={base}/run/slurmctld.pid
SlurmdPidFile={base}/run/slurmd.%n.pid
SlurmctldLogFile={base}/log/slurmctld.log
SlurmdLogFile={base}/log/slurmd.%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
ReturnToService=2
SlurmdTimeout=60
SlurmctldTimeout=60
KillWait=2
MinJobAge=300
SlurmdParameters=config_overrides
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd}
AccountingStoragePass={base}/munge/socket
"""
"""Of slurm.conf what is the same whatever the cluster is for."""

CONF = (
    DAEMONS
    + """\
SchedulerType=sched/backfill
SchedulerParameters=bf_interval=5,bf_resolution=60,bf_continue
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
DefMemPerCPU=900
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightJobSize=100
PriorityWeightPartition=10000
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
AccountingStorageEnforce=associations,limits
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=4 Sockets=1 CoresPerSocket=4 \
ThreadsPerCore=1 RealMemory=4000
PartitionName=batch Nodes={nodes} Default=YES MaxTime=1-00:00:00 DefaultTime=10 PriorityTier=10 PreemptMode=OFF
PartitionName=debug Nodes=n01 MaxTime=30 DefaultTime=5 PriorityTier=20 PreemptMode=OFF
PartitionName=low Nodes={nodes} MaxTime=UNLIMITED DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE
"""
)

DBD_CONF = """\
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd}
SlurmUser=slurm
AuthType=auth/munge
AuthInfo=socket={base}/munge/socket
PidFile={base}/run/slurmdbd.pid
LogFile={base}/log/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={sql}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""


def unavailable(*more: str) -> str | None:
    """Return why there can be no Slurm here, or none of `more` of its commands; None if there can."""
    if os.geteuid():
        return "a Slurm takes root"
    missing = [command for command in (*COMMANDS, *more) if shutil.which(command, path=PATH) is None]
    if missing or not list(Path("/usr/lib").glob(f"*/slurm*/{PLUGIN}")):
        return f"{', '.join(missing) or PLUGIN} not found; shadowtime stack install slurm"
    return None


class SlurmCluster:
    """A cluster of so many nodes of four processors, with a slurmrestd if `rest`; a context manager."""

    conf = CONF

    def __init__(self, nodes: int = 8, *, rest: bool = False) -> None:
        self.base = Path(tempfile.mkdtemp(prefix="slurm-", dir="/tmp"))  # socket names are short
        self.nodes = [f"n{number:02d}" for number in range(1, nodes + 1)]
        self.environment = os.environ | {"SLURM_CONF": str(self.base / "etc/slurm.conf"), "PATH": PATH}
        self._ports = {"ctld": free_port(), "dbd": free_port(), "sql": free_port(), "first": free_port(nodes)}
        self._munged: subprocess.Popen[bytes] | None = None
        self._mariadbd: subprocess.Popen[bytes] | None = None
        self._slurmrestd: subprocess.Popen[bytes] | None = None
        self._with_rest = rest

    @property
    def rest_url(self) -> str:
        """Where slurmrestd is asked, by root."""
        return f"unix:{self._rest_socket}"

    @property
    def _rest_socket(self) -> Path:
        return self.base / "rest" / "socket"

    def __enter__(self) -> Self:
        try:
            self._configure()
            self._start_munged()
            self._start_database()
            self.start_slurmdbd()
            self._account()
            self.start_slurmctld()
            for node in self.nodes:
                self.start_node(node)
            self._wait(
                lambda: not self.run("sinfo", "-h", "-t", "unknown,down,no_respond", "-o", "%n").strip(), "nodes"
            )
            if self._with_rest:
                self._start_slurmrestd()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in (*(f"slurmd.{node}" for node in self.nodes), "slurmctld", "slurmdbd"):
            self.kill(name)
        for process in (self._slurmrestd, self._mariadbd, self._munged):
            if process is not None:
                process.kill()
                process.wait()
        self._end_jobs()
        shutil.rmtree(self.base, ignore_errors=True)

    def _end_jobs(self) -> None:
        """Kill the steps of jobs that still run: they outlive their slurmd, and wait for it for ever."""
        mark = f"SLURM_CONF={self.environment['SLURM_CONF']}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    os.kill(int(folder.name), signal.SIGKILL)

    def run(self, *command: str, user: str | None = None, check: bool = True) -> str:
        """Return what a command prints, run as root or as a user."""
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--init-groups"] if user else []
        done = subprocess.run(
            [*prefix, *command],
            env=self.environment | ({"HOME": "/tmp", "USER": user} if user else {}),
            capture_output=True,
            text=True,
            errors="surrogateescape",  # squeue cuts names off within a character
            timeout=SECONDS,
            check=False,
        )
        if check and done.returncode:
            raise RuntimeError(f"{' '.join(command)}: {done.stderr}")
        return done.stdout

    def submit(self, user: str, name: str, *options: str, wrap: str) -> int:
        """Submit a job and return its number."""
        command = ("sbatch", "--parsable", "-D", "/tmp", "-o", "/dev/null", "-J", name, *options, "--wrap", wrap)
        return int(self.run(*command, user=user))

    def control(self, *words: str) -> None:
        """Tell slurmctld something, whatever it answers."""
        self.run("scontrol", *words, check=False)

    def state(self, job: int) -> str:
        """Return the state of a job."""
        return self.run("squeue", "-h", "-t", "all", "-j", str(job), "-o", "%T", check=False).strip()

    def wait_for(self, job: int, state: str) -> None:
        """Wait until a job is in a state."""
        self._wait(lambda: self.state(job) == state, f"job {job} {state}")

    def wait_until_idle(self, seconds: float) -> None:
        """Wait until no job waits or runs."""
        states = "pending,running,suspended,completing"
        self._wait(lambda: not self.run("squeue", "-h", "-t", states, check=False).strip(), "idle machine", seconds)

    def start_slurmctld(self) -> None:
        """Start slurmctld, with the state that it has saved."""
        self._as("slurm", "slurmctld")
        self._wait(lambda: "UP" in self.run("scontrol", "ping", check=False), "slurmctld")

    def start_slurmdbd(self) -> None:
        """Start slurmdbd."""
        self._as("slurm", "slurmdbd")
        self._wait(lambda: self._said("sacctmgr", "-n", "list", "cluster"), "slurmdbd")

    def start_node(self, node: str) -> None:
        """Start a node."""
        subprocess.run(["slurmd", "-N", node], env=self.environment, check=True, timeout=SECONDS)

    def kill(self, name: str, number: signal.Signals = signal.SIGKILL) -> None:
        """End a daemon, and wait until it is gone."""
        file = self.base / "run" / f"{name}.pid"
        with suppress(OSError, ValueError):
            pid = int(file.read_text())
            os.kill(pid, number)
            until = time.monotonic() + SECONDS
            while time.monotonic() < until:
                os.kill(pid, 0)
                time.sleep(0.1)
        file.unlink(missing_ok=True)

    def _configure(self) -> None:
        for part, owner in (
            *(("etc", "root"), ("run", "slurm"), ("log", "slurm"), ("state", "slurm"), ("spool", "root")),
            *(("db", "mysql"), ("munge", "munge")),
        ):
            (self.base / part).mkdir()
            shutil.chown(self.base / part, owner)
            (self.base / part).chmod(0o755)
        self.base.chmod(0o755)
        first = self._ports["first"]
        told = {
            **self._ports,
            "base": self.base,
            "host": os.uname().nodename,
            "nodes": f"n[01-{len(self.nodes):02d}]",
            "last": first + len(self.nodes) - 1,
        }
        etc = self.base / "etc"
        (etc / "slurm.conf").write_text(self.conf.format(**told))
        (etc / "cgroup.conf").write_text("CgroupPlugin=cgroup/v1\n")  # of which nothing here makes use
        (etc / "slurmdbd.conf").write_text(DBD_CONF.format(**told))
        shutil.chown(etc / "slurmdbd.conf", "slurm")
        (etc / "slurmdbd.conf").chmod(0o600)

    def _start_munged(self) -> None:
        folder = self.base / "munge"
        (folder / "key").write_bytes(os.urandom(128))
        (folder / "key").chmod(0o600)
        shutil.chown(folder / "key", "munge")
        files = {"key-file": "key", "pid-file": "pid", "seed-file": "seed", "log-file": "log", "socket": "socket"}
        options = [f"--{option}={folder / name}" for option, name in files.items()]
        command = ["setpriv", "--reuid=munge", "--regid=munge", "--clear-groups", "munged", "-F", "--force", *options]
        with (self.base / "log" / "munged").open("wb") as log:
            self._munged = subprocess.Popen(command, env=self.environment, stdout=log, stderr=log)
        self._wait((folder / "socket").exists, "munged")

    def _start_database(self) -> None:
        folder = self.base / "db"
        plain = ["--no-defaults", "--user=mysql", f"--datadir={folder / 'data'}"]
        subprocess.run(
            ["mariadb-install-db", *plain, "--skip-test-db", "--auth-root-authentication-method=normal"],
            env=self.environment,
            capture_output=True,
            check=True,
            timeout=SECONDS,
        )
        socket = folder / "socket"
        options = ["--bind-address=127.0.0.1", f"--port={self._ports['sql']}", "--innodb-buffer-pool-size=64M"]
        options += [f"--socket={socket}", "--innodb-lock-wait-timeout=900"]
        with (self.base / "log" / "mariadbd").open("wb") as log:
            self._mariadbd = subprocess.Popen(
                ["mariadbd", *plain, *options], env=self.environment, stdout=log, stderr=log
            )
        client = ("mariadb", "--no-defaults", "-S", str(socket))
        self._wait(lambda: self._said(*client, "-e", "select 1"), "mariadb")
        hosts = ("localhost", "127.0.0.1")
        made = [
            f"create user slurm@'{host}' identified by 'slurm'; grant all on *.* to slurm@'{host}';" for host in hosts
        ]
        self.run(*client, "-e", "create database slurm_acct_db; " + " ".join(made))

    def _start_slurmrestd(self) -> None:
        folder = self._rest_socket.parent
        folder.mkdir()
        shutil.chown(folder, REST_USER)
        user = [f"--reuid={REST_USER}", f"--regid={REST_USER}", "--init-groups"]
        command = ["setpriv", *user, "slurmrestd", "-a", "rest_auth/local", f"unix:{self._rest_socket}"]
        environment = self.environment | {"SLURM_BITSTR_LEN": "0"}
        with (self.base / "log" / "slurmrestd").open("wb") as log:
            self._slurmrestd = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._wait(self._rest_socket.exists, "slurmrestd")

    def _account(self) -> None:
        for words in (
            ("add", "cluster", "shadow"),
            ("add", "account", "projecta,projectb", "cluster=shadow"),
            *(("add", "user", user, f"account=project{'ab'[at % 2]}") for at, user in enumerate(USERS)),
        ):
            self.run("sacctmgr", "-iQ", *words, check=False)

    def _as(self, user: str, *command: str) -> None:
        prefix = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"]
        subprocess.run([*prefix, *command], env=self.environment, check=True, timeout=SECONDS, capture_output=True)

    def _said(self, *command: str) -> bool:
        try:
            self.run(*command)
        except (RuntimeError, subprocess.TimeoutExpired):
            return False
        return True

    def _wait(self, true: Callable[[], object], what: str, seconds: float = SECONDS) -> None:
        until = time.monotonic() + seconds
        while not true():
            if time.monotonic() > until:
                raise RuntimeError(f"no {what} within {seconds:g} s; see {self.base / 'log'}")
            time.sleep(0.2)
