"""Gate 6: `ask --job` of 20 random waiting jobs of CTC, each sentence checked against the log by hand."""

import json

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.services.catalogue import canonical
from shadowtime.shared.messages.envelope import Envelope
from tests.gates.archive import needs_archive, plan
from tests.support.why_by_hand import asked

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize(
    ("policy", "by_requests"), [("easy", False), ("easy:runtime=empirical,forecast=yes", False), ("cautious", True)]
)
def test_each_sentence_about_twenty_waiting_jobs_of_ctc_is_true(
    policy: str, by_requests: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    log: list[Envelope] = []
    run = plan("CTC", 338, policy)._replace(wait_bound=canonical("wait-bound", "bmbp:publish=plain"))
    carry_out(run, [log.append])
    kinds = asked(log, 20, 1996, "fcfs", by_requests=by_requests)
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "why", "policy": policy, "jobs": 20, "events": len(log), "kinds": kinds}))
    assert kinds["asks"] == 20
    assert kinds["ahead"] + kinds["first"] == 20
    assert kinds["ends"] > 10
