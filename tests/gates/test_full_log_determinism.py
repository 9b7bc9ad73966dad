"""The decision log of a full log is the same bytes when repeated, and when stopped, restored and continued."""

from hashlib import sha256
from io import BytesIO

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.replayer.comparison.records import DecisionLog
from tests.gates.archive import needs_archive, plan

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize("policy", ["easy", "best"])
def test_kth(policy: str) -> None:
    run, log = plan("KTH", 100, policy), BytesIO()
    carry_out(run, [DecisionLog(log)])
    whole = sha256(log.getvalue()).hexdigest()

    again = BytesIO()
    carry_out(run, [DecisionLog(again)])
    assert sha256(again.getvalue()).hexdigest() == whole

    parts = BytesIO()
    replay = run.replay([DecisionLog(parts)])
    for _ in range(3):
        for _ in range(12_345):
            replay.step()
        snapshot = replay.snapshot()
        replay = run.replay([DecisionLog(parts)])
        replay.restore(snapshot)
    replay.run_to_end()
    assert sha256(parts.getvalue()).hexdigest() == whole
