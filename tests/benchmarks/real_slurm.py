"""How near the policy `slurm` comes to a real Slurm: 2,000 jobs on 26 nodes of 16 processors that only sleep.

`nice -n -15 python -m tests.benchmarks.real_slurm FOLDER` as root takes some 25 minutes. What `shadowtime check-starts`
reads is in FOLDER then, sacct.txt, site.toml, pools.txt and names.json, beside the jobs as they were drawn, what
scontrol shows, and what squeue, sprio, sshare and sdiag said each half minute.
"""

import argparse
import json
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from shadowtime.shared.accounting.slurm.head import FIELDS
from tests.support.slurm_cluster import DAEMONS, SlurmCluster, unavailable

SEED = 23
NODES, PER_NODE, SIDE = 26, 16, 4
"""Nodes, their processors, and how many of them are the partition `side` alone."""

LOAD = 0.9
"""Mean of what is sent over what the machine can do in that time."""

SWING, WAVES = 0.5, 3
"""Arrivals come at (1 + SWING sin) of the mean rate, in so many waves: quiet and busy by turns."""

SIZES, SIZE_CHANCES = (1, 2, 4, 8, 16), (0.30, 0.20, 0.20, 0.18, 0.12)
MEDIAN_RUN, SIGMA_RUN, RUNS = 40.0, 0.7, (10.0, 180.0)
OVERSTATED = (1.5, 8.0)
RESERVED_NODES, RESERVED_FROM, RESERVED_FOR = 4, 0.45, 300
"""Nodes reserved, from which part of the run on, for how many seconds."""

SHARES = {"alpha": 50, "beta": 30, "gamma": 20}
MEMBERS = {
    "games": ("alpha", 3, 0.25),
    "news": ("alpha", 1, 0.20),
    "mail": ("beta", 1, 0.15),
    "backup": ("beta", 1, 0.15),
    "man": ("gamma", 2, 0.15),
    "lp": ("gamma", 1, 0.10),
}
"""Account and shares of each user, and their part of the jobs."""

CONF = (
    DAEMONS
    + """\
SchedulerType=sched/backfill
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/multifactor
PriorityDecayHalfLife=00:10:00
PriorityCalcPeriod=00:01:00
PriorityMaxAge=00:30:00
PriorityWeightAge=1000
PriorityWeightFairshare=10000
PriorityWeightJobSize=500
PriorityWeightPartition=2000
PriorityWeightQOS=2000
AccountingStorageEnforce=associations,limits,qos
NodeName={nodes} NodeHostname={host} NodeAddr=127.0.0.1 Port=[{first}-{last}] CPUs=16 Sockets=1 CoresPerSocket=16 \
ThreadsPerCore=1 RealMemory=16000
PartitionName=batch Nodes=n[01-22] Default=YES MaxTime=1:00:00 PriorityJobFactor=10
PartitionName=quick Nodes=n[01-22] MaxTime=1:00:00 PriorityJobFactor=20
PartitionName=side Nodes=n[23-26] MaxTime=1:00:00 PriorityJobFactor=10
"""
)
PARTITIONS = {"batch": 0.65, "quick": 0.20, "side": 0.15}
QOS_CHANCE = 0.15
"""Of so many jobs the QOS is `express`: priority 10, usage counted twice."""


class Job(NamedTuple):
    """A job to be sent: when, seconds after the beginning; whose and where; what it asks for and does."""

    at: float
    user: str
    partition: str
    qos: str
    size: int
    seconds: int
    limit: int


class LoadedCluster(SlurmCluster):
    """A cluster with accounts of unequal shares."""

    conf = CONF

    def _account(self) -> None:
        self.run("sacctmgr", "-iQ", "add", "cluster", "shadow", check=False)
        self.run("sacctmgr", "-iQ", "add", "qos", "express", "priority=10", "usagefactor=2")
        for account, shares in SHARES.items():
            self.run("sacctmgr", "-iQ", "add", "account", account, "cluster=shadow", f"fairshare={shares}")
        for user, (account, shares, _) in MEMBERS.items():
            told = (f"account={account}", f"fairshare={shares}", "qos=normal,express")
            self.run("sacctmgr", "-iQ", "add", "user", user, *told)


def drawn(jobs: int, seconds: float) -> list[Job]:
    """Return the jobs, in the order in which they are sent; run times are scaled to the load."""
    draw = np.random.default_rng(SEED)
    places = np.linspace(0, 1, 10_001)
    come = places - SWING * (np.cos(2 * np.pi * WAVES * places) - 1) / (2 * np.pi * WAVES)
    at = np.interp(np.sort(draw.random(jobs)), come / come[-1], places) * seconds
    sizes = draw.choice(SIZES, jobs, p=SIZE_CHANCES)
    runs = np.clip(draw.lognormal(np.log(MEDIAN_RUN), SIGMA_RUN, jobs), *RUNS)
    runs *= LOAD * NODES * PER_NODE * seconds / (runs * sizes).sum()
    low, high = np.log(OVERSTATED).tolist()
    over = np.exp(draw.uniform(low, high, jobs))
    limits = np.ceil(runs * over / 60).astype(int) + 1
    users = draw.choice(list(MEMBERS), jobs, p=[part for *_, part in MEMBERS.values()])
    partitions = draw.choice(list(PARTITIONS), jobs, p=list(PARTITIONS.values()))
    qos = np.where(draw.random(jobs) < QOS_CHANCE, "express", "normal")
    columns = (at, users, partitions, qos, sizes, np.rint(runs).astype(int), limits)
    return [Job(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def send(cluster: SlurmCluster, jobs: list[Job], began: float) -> None:
    """Submit each job at its time."""

    def submit(number: int, job: Job) -> None:
        options = ("-n", job.size, "-t", job.limit, "-p", job.partition, "-q", job.qos)
        cluster.submit(job.user, f"j{number}", *map(str, options), wrap=f"sleep {job.seconds}")

    with ThreadPoolExecutor(6) as pool:
        sent = []
        for number, job in enumerate(jobs):
            time.sleep(max(0.0, began + job.at - time.time()))
            sent.append(pool.submit(submit, number, job))
        failed = [error for each in sent if (error := each.exception())]
    print(f"{time.time() - began:.0f} s: all sent, {len(failed)} refused {failed[:1]}", flush=True)


def record(cluster: SlurmCluster, folder: Path, name: str) -> None:
    """Append what some commands print."""
    commands = {
        "sprio": ("sprio", "-hl"),
        "sdiag": ("sdiag",),
        "sshare": ("sshare", "-alP"),
        "squeue": ("squeue", "-h", "-o", "%i|%T|%P|%u|%Q|%C|%r|%V|%S"),
    }
    for kind, command in commands.items():
        with (folder / f"{kind}.txt").open("a") as file:
            file.write(f"# {time.time():.1f} {name}\n{cluster.run(*command, check=False)}")


def write_site(cluster: SlurmCluster, folder: Path) -> None:
    """Have `shadowtime slurm-site` ask for the settings."""
    program = str(Path(sys.executable).with_name("shadowtime"))
    told = ("-o", "site.toml", "--pools", "pools.txt", "--names", "names.json")
    subprocess.run([program, "slurm-site", *told], cwd=folder, env=cluster.environment, check=True)


def run(folder: Path, jobs: list[Job], seconds: float) -> None:
    """Run it all."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "jobs.json").write_text(json.dumps([job._asdict() for job in jobs]))
    with LoadedCluster(NODES) as cluster:
        began = time.time() + 15
        begins = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began + RESERVED_FROM * seconds))
        last = NODES - SIDE
        cluster.run(
            *("scontrol", "create", "reservation", "reservationname=works", f"starttime={begins}"),
            *(f"duration={RESERVED_FOR // 60}", f"nodes=n[{last - RESERVED_NODES + 1}-{last}]", "users=root"),
            "flags=ignore_jobs",
        )
        for name in ("config", "partition", "node", "reservation"):
            (folder / f"scontrol-{name}.txt").write_text(cluster.run("scontrol", "show", name))
        write_site(cluster, folder)
        print(f"begins at {began:.0f}, {time.ctime(began)}", flush=True)
        with ThreadPoolExecutor(1) as pool:
            sending = pool.submit(send, cluster, jobs, began)
            while not sending.done() or cluster.run("squeue", "-h", "-t", "pending,running,completing").strip():
                record(cluster, folder, f"{time.time() - began:.0f}")
                time.sleep(30)
            sending.result()
        time.sleep(5)
        record(cluster, folder, "over")
        since = time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(began - 60))
        asked = ("env", "SLURM_TIME_FORMAT=%s", "sacct", "-aPXD", "--noconvert", "-S", since, "-o", ",".join(FIELDS))
        (folder / "sacct.txt").write_text(cluster.run(*asked))
        shutil.copytree(cluster.base / "log", folder / "log", dirs_exist_ok=True)
    print("over", time.ctime(), flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--jobs", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=1200.0)
    told = parser.parse_args()
    if why := unavailable():
        sys.exit(why)
    run(told.folder, drawn(told.jobs, told.seconds), told.seconds)
