"""The whole pipeline, embedded, keeps within its share of one core."""

import json

import pytest

from replayer.comparison import carry_out
from tests.gates.archive import needs_archive, plan, replayed

pytestmark = [pytest.mark.archive, needs_archive]

ATTEMPTS = 3


@pytest.mark.parametrize(("trace", "processors", "limit"), [("KTH", 100, 4), ("SDSC-SP2", 128, 8), ("CTC", 338, 15)])
def test_cpu_seconds(trace: str, processors: int, limit: float, capsys: pytest.CaptureFixture[str]) -> None:
    """The best of up to three, for what else the machine does costs cycles too."""
    taken = [replayed(trace, processors, "easy", "as-logged").cpu_seconds]
    while min(taken) > limit and len(taken) < ATTEMPTS:
        taken.append(carry_out(plan(trace, processors, "easy")).cpu_seconds)
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "speed", "trace": trace, "limit": limit, "cpu_seconds": taken}))
    assert min(taken) <= limit
