"""A real Slurm with what makes logs go wrong at sites: an epilog, preemption, power saving, typed GPUs, more pools."""

import threading
from contextlib import suppress
from pathlib import Path

from tests.support.slurm_cluster import CONF, SlurmCluster

NODES = 16
EPILOG = 10
"""Seconds of the epilog, in which Slurm calls a job COMPLETING."""

SLOW = ("n01", "n02", "n03", "n04", "n05", "n06", "n13")
"""Nodes with that epilog. The others are ready at once, so that many jobs run within minutes."""

SAVED = ("n15", "n16")
"""Nodes that are powered down when they are idle."""

TROUBLES = """\
Epilog={base}/etc/epilog
SuspendProgram={base}/etc/suspend
ResumeProgram={base}/etc/resume
SuspendTime=15
SuspendTimeout=10
ResumeTimeout=60
SuspendRate=0
ResumeRate=0
SuspendExcNodes=n[01-14]
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
NodeName=n[01-12,15-16] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{twelfth},{fifteenth}-{last}] CPUs=4 \
Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000
NodeName=n[13-14] NodeHostname={host} NodeAddr=127.0.0.1 Port=[{thirteenth}-{fourteenth}] CPUs=4 Sockets=1 \
CoresPerSocket=4 ThreadsPerCore=1 RealMemory=4000 Gres=gpu:a100:1,gpu:v100:1
PartitionName=batch Nodes=n[01-12] Default=YES MaxTime=1-00:00:00 DefaultTime=10 PriorityTier=10 PreemptMode=OFF
PartitionName=debug Nodes=n01 MaxTime=30 DefaultTime=5 PriorityTier=20 PreemptMode=OFF
PartitionName=low Nodes=n[01-12] MaxTime=UNLIMITED DefaultTime=60 PriorityTier=1 PreemptMode=REQUEUE
PartitionName=secret Nodes=n[01-12] Hidden=YES MaxTime=60 DefaultTime=5 PriorityTier=10 PreemptMode=OFF
PartitionName=gpu Nodes=n[13-14] MaxTime=1-00:00:00 DefaultTime=10 PriorityTier=10 PreemptMode=OFF
PartitionName=side Nodes=n[15-16] MaxTime=1-00:00:00 DefaultTime=10 PriorityTier=10 PreemptMode=OFF
"""


class TroubledCluster(SlurmCluster):
    """A cluster of sixteen nodes of four processors; a context manager, as its base."""

    conf = CONF[: CONF.index("NodeName=")].replace("SlurmdTimeout=60", "SlurmdTimeout=20") + TROUBLES

    def __init__(self) -> None:
        super().__init__(NODES)
        first = self._ports["first"]
        self._ports |= {"twelfth": first + 11, "thirteenth": first + 12, "fourteenth": first + 13}
        self._ports |= {"fifteenth": first + 14}
        self.dead: set[str] = set()
        """Nodes that are not to be started when Slurm resumes them."""
        self._ended = threading.Event()
        self._power = threading.Thread(target=self._obey, daemon=True)

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._power.is_alive():
            self._power.join()
        super().__exit__()

    def _configure(self) -> None:
        super()._configure()
        etc = self.base / "etc"
        for name in ("suspend", "resume"):
            folder = self.base / name
            folder.mkdir()
            folder.chmod(0o777)
            lines = f'mkdir -p {folder}\nfor node in $(scontrol show hostnames "$1"); do touch {folder}/$node; done\n'
            write_program(etc / name, f"export SLURM_CONF={etc}/slurm.conf\n{lines}")
        slow = "|".join(SLOW)
        write_program(etc / "epilog", f'case "$SLURMD_NODENAME" in {slow}) sleep {EPILOG};; esac\n')
        (etc / "gres.conf").write_text(
            "NodeName=n[13-14] Name=gpu Type=a100 File=/dev/null\nNodeName=n[13-14] Name=gpu Type=v100 File=/dev/zero\n"
        )
        self._power.start()

    def _obey(self) -> None:
        """Stop and start the slurmd of nodes as Slurm's power saving asks."""
        while not self._ended.wait(0.5):
            for order in ("suspend", "resume"):
                for file in list((self.base / order).glob("*")):
                    with suppress(FileNotFoundError):
                        file.unlink()
                    self.kill(f"slurmd.{file.name}")
                    if order == "resume" and file.name not in self.dead:
                        self.run("slurmd", "-b", "-N", file.name, check=False)


def write_program(path: Path, lines: str) -> None:
    """Write a shell script."""
    path.write_text(f"#!/bin/sh\n{lines}")
    path.chmod(0o755)
