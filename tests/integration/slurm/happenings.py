"""All that happens to jobs on a production machine, within some three minutes on `SlurmCluster`."""

import time
from collections.abc import Callable

from tests.support.slurm_cluster import USERS, SlurmCluster

TWICE = 'test "$SLURM_RESTART_COUNT" && exec sleep 5; sleep 120'
"""Runs until it is put back, however late that is on a busy machine, and briefly when it is started again."""


def happen(cluster: SlurmCluster, trouble: Callable[[int], None] = lambda step: None) -> None:
    """Let it happen, and `trouble` at each step; return when all jobs are over."""
    submit, control = cluster.submit, cluster.control
    first, second, third, fourth, _ = USERS
    submit(second, "timeout", "-n", "2", "-t", "1", wrap="sleep 300")
    submit(second, "failed", "-n", "1", "-t", "2", wrap="sleep 3; exit 3")
    requeue = submit(second, "requeue", "-n", "2", "-t", "3", "--requeue", wrap=TWICE)
    again = submit(second, "requeuehold", "-n", "2", "-t", "3", "--requeue", wrap=TWICE)
    away = submit(second, "away", "-n", "1", "-t", "3", "--requeue", wrap=TWICE)
    victim = submit(first, "victim", "-n", "2", "-t", "5", wrap="sleep 200")
    stretch = submit(first, "stretch", "-n", "1", "-t", "1", wrap="sleep 55")
    suspend = submit(first, "suspend", "-n", "1", "-t", "5", wrap="sleep 90")
    shrink = submit(first, "shrink", "-N", "2", "-n", "8", "-t", "5", wrap="sleep 150")
    low = submit(third, "low", "-p", "low", "-n", "8", "-t", "10", wrap="sleep 20")
    submit(second, "infinite", "-p", "low", "-n", "2", "-t", "UNLIMITED", wrap="sleep 15")
    cluster.wait_for(low, "RUNNING")
    trouble(1)
    array = submit(second, "array", "--array=0-9%3", "-n", "1", "-t", "2", wrap="sleep 4")
    before = submit(third, "first", "-n", "2", "-t", "2", wrap="sleep 6")
    submit(third, "then|afterwards", "-n", "2", "-t", "2", "-d", f"afterok:{before}", wrap="sleep 3")
    held = submit(first, "held", "-n", "4", "-t", "3", "--hold", wrap="sleep 5")
    submit(first, "later", "-n", "1", "-t", "2", "--begin=now+30", wrap="sleep 3")
    submit(fourth, "exclusive", "-N", "1", "--exclusive", "-t", "2", wrap="sleep 5")
    submit(fourth, "memory", "-n", "1", "--mem=3500", "-t", "2", wrap="sleep 5")
    submit(first, "twoparts", "-p", "debug,batch", "-n", "2", "-t", "2", wrap="sleep 3")
    submit(first, "range", "-N", "1-3", "-t", "2", wrap="sleep 4")
    cancelled = submit(fourth, "cancelled", "-n", "32", "-t", "5", wrap="sleep 5")
    changed = submit(fourth, "changed", "-n", "30", "-t", "2", wrap="sleep 4")
    cluster.run(
        "sbatch",
        "-D",
        "/tmp",
        "-o",
        "/dev/null",
        "-J",
        "het",
        "-n2",
        "-t2",
        "--wrap",
        "sleep 5",
        ":",
        "-n4",
        "-t2",
        user=third,
    )
    for number in range(12):
        size, limit, seconds = 1 << number % 5, 1 + number % 4, 3 + 2 * number % 9
        submit(USERS[number % 5], f"plain{number % 3}", f"-n{size}", f"-t{limit}", wrap=f"sleep {seconds}")
    trouble(2)
    control("update", f"jobid={changed}", "timelimit=4")
    control("update", f"jobid={changed}", "numcpus=20", "numtasks=20")
    cluster.run("scancel", str(cancelled), user=fourth)
    cluster.run("scancel", f"{array}_[7-9]", user=second)
    control("update", f"jobid={stretch}", "timelimit=3")
    control("update", f"jobid={victim}", "timelimit=7")
    control("suspend", str(suspend))
    trouble(3)
    control("resume", str(suspend))
    control("update", f"jobid={shrink}", "numnodes=1")
    control("requeue", str(requeue))
    control("requeuehold", str(again))
    control("update", "nodename=n03", "state=drain", "reason=test")
    cluster.run("scancel", str(victim), user=first)
    time.sleep(5)
    trouble(4)
    control("requeue", str(away))
    time.sleep(10)
    control("release", str(held))
    control("update", "nodename=n03", "state=resume")
    control("release", str(again))
    trouble(5)
    cluster.wait_until_idle(400)
