"""A real Slurm with a node of A100 (a100 in TRES) and a node of v100; devices that all have stand in for GPUs."""

from tests.support.slurm_cluster import CONF, SlurmCluster

TYPED = """\
GresTypes=gpu
AccountingStorageTRES=gres/gpu,gres/gpu:a100,gres/gpu:v100
NodeName=n01 NodeHostname={host} NodeAddr=127.0.0.1 Port={first} CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 \
RealMemory=4000 MemSpecLimit=500 Gres=gpu:A100:2
NodeName=n02 NodeHostname={host} NodeAddr=127.0.0.1 Port={last} CPUs=4 Sockets=1 CoresPerSocket=4 ThreadsPerCore=1 \
RealMemory=4000 Gres=gpu:v100:2
PartitionName=batch Nodes=n[01-02] Default=YES MaxTime=1-00:00:00 DefaultTime=10
"""


class GpuCluster(SlurmCluster):
    """A cluster of two nodes of four processors and two GPUs; a context manager, as its base."""

    conf = CONF[: CONF.index("PreemptType=")] + TYPED

    def __init__(self) -> None:
        super().__init__(2)

    def _configure(self) -> None:
        super()._configure()
        lines = [
            f"NodeName={node} Name=gpu Type={name} File=/dev/{device}\n"
            for node, name in (("n01", "A100"), ("n02", "v100"))
            for device in ("null", "zero")
        ]
        (self.base / "etc" / "gres.conf").write_text("".join(lines))
