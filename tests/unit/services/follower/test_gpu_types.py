"""Types of GPUs: named in the log, and nowhere is an answer given as if they were all alike."""

from dataclasses import replace

from shadowtime.services.scheduler.explain.stage import Explaining
from shadowtime.shared.accounting.machine_parts import parts_of_nodes
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobChanged, JobStarted, JobSubmitted
from shadowtime.shared.messages.machine_capacity import GpuType, Pool
from shadowtime.shared.text.explanations import brief_of
from tests.unit.services.follower.looks import WAITS as SEEN
from tests.unit.services.follower.looks import look, mirror
from tests.unit.services.follower.slurm_texts import WAITS, read

TYPES = (GpuType(name="a100", gpus=2), GpuType(name="v100", gpus=4))
A100 = "cpu=8,mem=7200M,node=1,gres/gpu=2,gres/gpu:a100=2"


def test_pools_name_their_types_only_if_there_are_several() -> None:
    has = {"processors": 8, "nodes": 1, "memory": 4000}
    nodes = [
        ("g1", ["gpu"], has | {"gpus": 2}, {"a100": 2}),
        ("g2", ["gpu"], has | {"gpus": 4}, {"v100": 4}),
        ("h1", ["other"], has | {"gpus": 4}, {"v100": 4}),
    ]
    mixed, alike = parts_of_nodes(nodes).pools
    assert (mixed.gpus, mixed.gpu_types) == (6, TYPES)
    assert (alike.gpus, alike.gpu_types) == (4, None)


def test_a_job_names_the_type_that_it_asks_for_and_keeps_it_as_it_starts() -> None:
    assert read(WAITS).gpu_type == ""
    assert read(WAITS, **{"tres-alloc": A100}).gpu_type == "a100"
    seen = mirror()
    (told,) = look(seen, 20, replace(SEEN, gpu_type="a100"))
    assert isinstance(told, JobSubmitted)
    assert told.gpu_type == "a100"
    assert look(seen, 30, replace(SEEN, gpu_type="v100")) == [JobChanged(time=29, job_number=7, gpu_type="v100")]
    runs = replace(SEEN, state="running", start=35, gpu_type="a100")  # what it got, of any type
    assert [type(event) for event in look(seen, 40, runs)] == [JobStarted]


def explained(*, gpus: int, kind: str | None, types: tuple[GpuType, ...] | None = TYPES) -> str:
    pool = Pool(name="gpu", processors=8, gpus=6, gpu_types=types)
    opened = ClusterOpened(time=0, cluster="mine", processors=8, mode="recorded", pools=(pool,))
    stage = Explaining(opened)
    job = JobSubmitted(
        time=0, job_number=7, requested_processors=1, requested_time=60, pool=0, gpus=gpus, gpu_type=kind
    )
    stage.handle(Envelope(run="r", sequence=1, event=job))
    why = stage.explain(7, "r", 1)
    assert why is not None
    return brief_of(why)


def test_why_says_that_types_are_counted_together() -> None:
    note = "GPUs of all types are counted together here (2 a100, 4 v100)."
    assert explained(gpus=2, kind=None).endswith(note)
    assert explained(gpus=2, kind="a100").endswith(f"{note} It asks for a100, and may wait for that type alone.")
    assert note not in explained(gpus=0, kind=None)
    assert "counted together" not in explained(gpus=2, kind=None, types=None)
