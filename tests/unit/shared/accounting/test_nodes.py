"""How many nodes a job of sacct asks for."""

from pathlib import Path

from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.machine import Machine
from tests.unit.shared.accounting.reading import read


def test_a_job_is_told_with_the_nodes_it_asked_for_not_with_those_it_was_given(tmp_path: Path) -> None:
    jobs = [
        {"JobIDRaw": "1", "NNodes": "3", "ReqTRES": "cpu=4,node=2", "AllocTRES": "cpu=4,node=3"},
        {"JobIDRaw": "2", "NNodes": "3", "ReqTRES": "cpu=4", "AllocTRES": "cpu=4,node=3"},
    ]
    workload = prepare(read(tmp_path, *jobs))
    assert [workload[row].nodes for row in range(2)] == [2, 3]
    assert [event.nodes for event in Machine(workload).next_instant() if event.kind == "JobSubmitted"] == [2, 3]
