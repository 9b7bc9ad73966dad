"""What is said of a waiting job is true: each sentence is checked against the log by hand (tests/why_by_hand.py)."""

from typing import Any

import pytest

from shadowtime.replayer.comparison import carry_out
from shadowtime.services.pipeline import EXPLAINED, following
from shadowtime.shared.events import Decided, Envelope
from shadowtime.shared.explanation import Explanation
from shadowtime.shared.stage import StageRun
from tests.replayer.small_logs import generated, plan_of
from tests.why_by_hand import ByHand, Checked, as_read, asked, explained

POLICIES = {
    "easy": ("fcfs", False),
    "easy:plan=requested,runtime=empirical": ("fcfs", True),
    "easy-sjbf:runtime=empirical": ("fcfs", False),
    "wfp": ("wfp3", False),
    "easy:queue=spf,runtime=last-two": ("spf", False),
    "fcfs": ("fcfs", False),
    "best": ("fcfs", True),
    "probabilistic:tau=0.05,runtime=empirical": ("fcfs", True),
}


def log_of(policy: str, jobs: int = 400) -> list[Envelope]:
    found: list[Envelope] = []
    carry_out(plan_of(generated(jobs, load=3.0), policy), [found.append])
    return found


@pytest.mark.parametrize("policy", POLICIES)
def test_each_sentence_is_true(policy: str) -> None:
    order, by_requests = POLICIES[policy]
    kinds = set().union(*asked(log_of(policy), 40, 23, order, by_requests=by_requests))
    assert {"asks", "ahead", "needs", "ends"} <= kinds
