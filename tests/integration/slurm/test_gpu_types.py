"""A real Slurm with two types of GPUs: the log has what jobs ask for and get, and `why` waits for what squeue says."""

import time
from pathlib import Path

import pytest

from shadowtime.services.scheduler.explain.stage import Explaining
from shadowtime.shared.messages.envelope import CapacityChanged, ClusterOpened, Envelope, JobStarted, JobSubmitted
from shadowtime.shared.messages.gpu_types import GpuType
from shadowtime.shared.text.explanations import brief_of
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.follower_process import following
from tests.support.gpu_cluster import GpuCluster
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import unavailable

pytestmark = pytest.mark.nightly

SLEEPS = "sleep 1000"


def reason_of(cluster: GpuCluster, job: int) -> str:
    return cluster.run("squeue", "-h", "-j", str(job), "-O", "Reason:|").strip().rstrip("|")


def said(log: list[Envelope]) -> dict[int, str]:
    """Return why each waiting job waits, in a sentence."""
    opened = log[0].event
    assert isinstance(opened, ClusterOpened)
    stage = Explaining(opened)
    for envelope in log[1:]:
        stage.handle(envelope)
    return {job.job_number: brief_of(why) for job, why in stage.waiting_jobs()}


def test_types_of_gpus_are_kept_apart_beside_a_real_slurm(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    require_reason(unavailable())
    with GpuCluster() as cluster, following(cluster, kafka, redis_server, tmp_path / "log") as follower:
        follower.wait_until_told(int(time.time()))

        def submit(name: str, gpus: str) -> int:
            return cluster.submit("games", name, "-n", "1", "-t", "30", f"--gres=gpu:{gpus}", wrap=SLEEPS)

        with pytest.raises(RuntimeError, match="node configuration is not available"):
            cluster.submit("games", "large", "-n", "1", "--mem=3600", "--gres=gpu:A100:1", wrap=SLEEPS)
        holds = submit("holds", "A100:2")
        cluster.wait_for(holds, "RUNNING")
        waits = submit("waits", "A100:1")
        passes, either = submit("passes", "v100:1"), submit("either", "1")
        cluster.wait_for(passes, "RUNNING")
        cluster.wait_for(either, "RUNNING")
        last = submit("last", "1")
        time.sleep(20)  # Slurm looks at all jobs, and gives each its reason
        reasons = {job: reason_of(cluster, job) for job in (waits, last)}
        log = follower.wait_until_told(int(time.time()))
        words = said(log)
        cluster.control("update", "NodeName=n02", "State=DRAIN", "Reason=test")
        cluster.run("scancel", str(passes))
        time.sleep(12)
        later = follower.wait_until_told(int(time.time()))

    opened = log[0].event
    assert isinstance(opened, ClusterOpened)
    assert opened.pools
    assert opened.pools[0].memory == 3_500 + 4_000, "MB; of n01, 500 are Slurm's own (MemSpecLimit)"
    assert set(reasons.values()) <= {"Resources", "Priority"}
    assert words == {waits: "It needs 1 a100 GPU, and 0 are free.", last: "It needs 1 GPU of any type, and 0 are free."}
    asked = {event.event.job_number: event.event.gpu_type for event in log if isinstance(event.event, JobSubmitted)}
    assert (asked[waits], asked[last]) == ("a100", None)
    got = {event.event.job_number: event.event.gpu_types for event in log if isinstance(event.event, JobStarted)}
    a100, v100 = GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=1)
    assert got == {holds: (a100,), passes: (v100,), either: (v100,)}
    changes = [event.event for event in later if isinstance(event.event, CapacityChanged)]
    assert changes[-1].gpu_types == (a100, v100), "of a drained node only what is in use is left"
    assert changes[-1].gpus == 3
