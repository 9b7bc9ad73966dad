"""Troubles that make logs go wrong at sites, for some minutes on `TroubledCluster`: some 2,000 lives of jobs."""

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import ClassVar

from tests.support.slurm_cluster import USERS, SlurmCluster
from tests.support.troubled_cluster import TroubledCluster

HOSTILE = (
    "new\n99999|99999|COMPLETED|1|1|1|1",
    "x\nfoo|bar",
    "x\n12345",
    "forged\n"
    + "|".join(["70000001", "70000001", "COMPLETED", *["1795700000"] * 4, "900", "00:00:00", "60", "64", "64"]),
    "quotes \" and '",
    "\x1b[2J\r\ttab",
    "naïve ☃",
    "n" * 900,
)


class Troubles:
    """The troubles of some minutes. `kill` is called now and then, to end the follower and to start it again."""

    def __init__(self, cluster: TroubledCluster, seconds: float, kill: Callable[[], None], seed: int = 49) -> None:
        self.done: Counter[str] = Counter()
        self._cluster = cluster
        self._seconds = seconds
        self._kill = kill
        self._draw = random.Random(seed)
        self._arrays: list[int] = []
        self._partitions = ["batch", "batch", "batch", "debug", "secret"]
        self._background: list[threading.Thread] = []

    def happen(self) -> None:
        """Let everything happen, and return when no job waits or runs."""
        began = time.monotonic()
        planned = sorted(self._planned())
        while (passed := time.monotonic() - began) < self._seconds:
            while planned and planned[0][0] <= passed:
                name = planned.pop(0)[1]
                self.done[name] += 1
                getattr(self, f"_{name}")()
            self._submit_some()
            self._meddle()
            time.sleep(max(0.0, 1.0 - (time.monotonic() - began - passed)))
        for _, name in planned:
            self.done[name] += 1
            getattr(self, f"_{name}")()
        for thread in self._background:
            thread.join()
        self._settle()

    def _settle(self) -> None:
        cluster = self._cluster
        for name in ("works", "course"):
            cluster.control("delete", f"reservationname={name}")
        for node in cluster.nodes:
            cluster.control("update", f"nodename={node}", "state=resume")
        for _ in range(5):
            for job in cluster.run("squeue", "-har", "-t", "suspended", "-O", "JobArrayID", check=False).split():
                cluster.control("resume", job)
            with suppress(RuntimeError):
                cluster.wait_until_idle(60)
                return
        for user in USERS:
            cluster.run("scancel", f"--user={user}", check=False)
        cluster.wait_until_idle(180)

    def _planned(self) -> list[tuple[float, str]]:
        kills = [(self._seconds * (number + 0.5) / 10, "kill_follower") for number in range(10)]
        others = {
            "maintain": (0.1,),
            "reserve": (0.15, 0.6),
            "drain": (0.2, 0.7),
            "kill_node": (0.25, 0.65),
            "make_partition": (0.3, 0.55),
            "restart_slurmctld": (0.45,),
            "cancel_everything_of_one": (0.5,),
            "power_down": (0.4,),
        }
        return kills + [(self._seconds * share, name) for name, shares in others.items() for share in shares]

    def _submit_some(self) -> None:
        draw, kind = self._draw, self._draw.random()
        size, sleep = draw.choice((1, 1, 1, 2, 4)), draw.choice((1, 1, 2, 3, 8))
        if kind < 0.30:
            tasks = draw.randrange(4, 20)
            array = self._submit(
                "array", f"--array=0-{tasks}%{draw.choice((2, 5, 20))}", "-n", str(size), wrap=f"sleep {sleep}"
            )
            self._arrays += [array] if array else []
        elif kind < 0.40:
            count = draw.randrange(2, 8)
            options = ("-p", "low", "--requeue", f"--array=0-{count}", "-n", "4", "-t", str(draw.choice((1, 2, 60))))
            self._submit("low", *options, wrap=f"sleep {draw.choice((10, 30, 90))}")
        elif kind < 0.43:
            self._submit("big", "-n", str(draw.choice((12, 16, 24))), wrap=f"sleep {sleep}")
        elif kind < 0.56:
            gres = draw.choice(("gpu:a100:1", "gpu:v100:1", "gpu:1"))
            self._submit("gpu", "-p", "gpu", f"--gres={gres}", "-n", "1", wrap=f"sleep {sleep}")
        elif kind < 0.60:
            self._submit("side", "-p", "side", "-n", str(draw.choice((1, 3, 6))), wrap=f"sleep {sleep}")
        elif kind < 0.68:
            self._submit(draw.choice(HOSTILE), "-n", "1", wrap=f"sleep {sleep}; exit {draw.choice((0, 0, 3))}")
        elif kind < 0.72:
            self._submit("later", f"--begin=now+{draw.randrange(2, 20)}", "-n", str(size), wrap=f"sleep {sleep}")
        elif kind < 0.75:
            self._submit("timeout", "-t", "1", "-n", "1", wrap="sleep 400")
        else:
            for _ in range(draw.randrange(1, 4)):
                partition = draw.choice(self._partitions)
                self._submit("plain", "-p", partition, "-n", str(size), wrap=f"sleep {sleep}")

    def _submit(self, name: str, *options: str, wrap: str) -> int | None:
        limit = () if "-t" in options else ("-t", str(self._draw.choice((1, 2, 5, 30))))
        try:
            job = self._cluster.submit(self._draw.choice(USERS), name, *options, *limit, wrap=wrap)
        except (RuntimeError, subprocess.TimeoutExpired):
            return None
        self.done["submitted"] += 1
        return job

    def _meddle(self) -> None:
        """Do something to a job that waits or runs."""
        draw, cluster = self._draw, self._cluster
        kind = draw.choice(
            ("requeue", "cancel", "hold", "release", "limit", "suspend", "resume", "release", "resume", "tasks")
        )
        states = {"requeue": "running", "suspend": "running", "resume": "suspended", "cancel": "pending,running"}
        listing = cluster.run("squeue", "-har", "-t", states.get(kind, "pending"), "-O", "JobArrayID", check=False)
        if not (jobs := listing.split()):
            return
        job = draw.choice(jobs)
        self.done[kind] += 1
        if kind in ("requeue", "hold", "release", "suspend", "resume"):
            cluster.control(kind, job)
        elif kind == "cancel":
            cluster.run("scancel", job, check=False)
        elif kind == "limit":
            cluster.control("update", f"jobid={job}", f"timelimit={draw.choice((1, 3, 9))}")
        elif kind == "tasks" and self._arrays and draw.random() < 0.3:
            cluster.run("scancel", str(draw.choice(self._arrays)), check=False)

    def _kill_follower(self) -> None:
        self._kill()

    def _maintain(self) -> None:
        seconds = ("starttime=now", "duration=2", "users=root")
        self._cluster.control(
            "create", "reservation", "reservationname=works", *seconds, "nodes=n01,n02", "flags=maint,ignore_jobs"
        )

    def _reserve(self) -> None:
        told = ("starttime=now", "duration=1", "nodes=n03", f"users={USERS[0]}", "flags=ignore_jobs")
        self._cluster.control("create", "reservation", "reservationname=course", *told)
        self._submit("course", "--reservation=course", "-n", "2", wrap="sleep 5")

    def _drain(self) -> None:
        self._cluster.control("update", "nodename=n04", "state=drain", "reason=test")
        self._later(25, lambda: self._cluster.control("update", "nodename=n04", "state=resume"))

    def _kill_node(self) -> None:
        """Kill a node, and send jobs there: Slurm requeues them with the submission that they had."""
        cluster, node = self._cluster, "n05"
        cluster.kill(f"slurmd.{node}")
        for options in (("-n", "1"), ("-n", "1", "--array=0-2")):
            self._submit("dead", "-w", node, "--requeue", *options, wrap="sleep 10")
        self._later(self._draw.choice((15, 45)), lambda: cluster.start_node(node))

    def _make_partition(self) -> None:
        name = f"fresh{len(self._partitions)}"
        self._cluster.control("create", f"partitionname={name}", "nodes=n05,n06,n07,n08", "maxtime=60", "state=up")
        self._partitions += [name, name]

    def _restart_slurmctld(self) -> None:
        self._cluster.kill("slurmctld")
        self._cluster.start_slurmctld()

    def _cancel_everything_of_one(self) -> None:
        self._cluster.run("scancel", f"--user={self._draw.choice(USERS)}", check=False)

    def _power_down(self) -> None:
        self._cluster.control("update", "nodename=n12", "state=power_down_asap", "reason=test")
        self._later(40, lambda: self._cluster.control("update", "nodename=n12", "state=power_up"))

    def _later(self, seconds: float, work: Callable[[], object]) -> None:
        def wait() -> None:
            time.sleep(seconds)
            with suppress(RuntimeError, subprocess.SubprocessError):
                work()

        thread = threading.Thread(target=wait, daemon=True)
        thread.start()
        self._background.append(thread)


SACCT = ("sacct", "-anXDP", "-S", "now-1minutes", "-o", "JobID,Submit,Start,End")
SQUEUE = ("squeue", "-har", "-t", "running", "-O", "JobArrayID:|,StartTime:|")


class Watcher:
    """Looks at sinfo, squeue and sacct every two seconds, and counts the usable processors of each pool by itself."""

    POOLS: ClassVar = {f"n{number:02d}": 0 if number < 13 else (number - 11) // 2 for number in range(1, 17)}
    NOT = ("drain", "down", "fail", "maint", "reserved", "powering_down", "power_drain", "inval", "reboot_issued")

    def __init__(self, cluster: SlurmCluster) -> None:
        self.seen: list[tuple[float, dict[int, int]]] = []
        self.ran: set[tuple[str, int]] = set()
        """Array and task, or job, and start of what squeue has shown to run: accounting loses some of it."""
        self.ended: set[tuple[str, int, int, int]] = set()
        """Array and task, or job, submission, start and end of each row of sacct: Slurm rewrites some of them."""
        self._cluster = cluster
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(2.0):
            before = time.time()
            with suppress(RuntimeError, subprocess.SubprocessError):
                lines = self._cluster.run("sinfo", "-haN", "-O", "NodeList:|,StateComplete:|,CPUsState:|").split()
                usable: Counter[int] = Counter({0: 0, 1: 0, 2: 0})
                for name, state, counts, _ in {tuple(line.split("|")) for line in lines}:
                    held, *_, total = map(int, counts.split("/"))
                    wakes = "powering_up" in state or "powered_down" in state
                    silent = "not_responding" in state and not wakes
                    words = state.split("+")
                    gone = silent or any(word.startswith(self.NOT) for word in words[1:] + words[:1])
                    usable[self.POOLS[name]] += held if gone else total
                listing = self._cluster.run("env", "SLURM_TIME_FORMAT=%s", *SQUEUE).split()
                self.ran |= {(job, int(start)) for job, start in (line.split("|")[:2] for line in listing)}
                self.seen.append(((before + time.time()) / 2, dict(usable)))
                rows = (line.split("|") for line in self._cluster.run("env", "SLURM_TIME_FORMAT=%s", *SACCT).split())
                self.ended |= {
                    (job, int(submit), int(start), int(end))
                    for job, submit, start, end in rows
                    if start.isdigit() and end.isdigit()
                }
