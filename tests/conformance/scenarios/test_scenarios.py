"""Small schedules worked out by hand, one text file each: why, machine and policy, jobs with their expected starts."""

from pathlib import Path

import pytest

from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import configure
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, JobStarted
from shadowtime.testing.workloads import TraceRow, workload

SCENARIOS = sorted(Path(__file__).parent.glob("*.txt"))
COLUMNS = ["job_number", "submit_time", "processors", "requested_time", "run_time", "expected_start"]


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_jobs_start_when_expected(path: Path) -> None:
    why, header, columns, *lines = path.read_text().splitlines()
    assert why.startswith("# ")
    words = header.split()
    settings = dict(zip(words[::2], words[1::2], strict=True))
    assert columns.split() == COLUMNS
    rows = [[int(word) for word in line.split()] for line in lines]
    expected = {row[0]: row[-1] for row in rows}

    processors = int(settings.pop("processors"))
    policy, runtime, adjustment = configure(**settings)
    opened = ClusterOpened(
        time=0, cluster=path.stem, processors=processors, policy=policy, runtime=runtime, adjustment=adjustment
    )
    starts: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            starts[envelope.event.job_number] = envelope.event.time

    EmbeddedReplay(opened, Machine(workload(processors, [TraceRow(*row[:-1]) for row in rows])), [note]).run_to_end()
    assert starts == expected, why


def test_there_are_scenarios() -> None:
    assert len(SCENARIOS) >= 8
