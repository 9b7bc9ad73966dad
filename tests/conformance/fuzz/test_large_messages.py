"""A list that is wrong from end to end is refused at its first element, wherever it stands."""

import json
from typing import Any

import pytest
from pydantic import ValidationError

from shadowtime.shared.messages.envelope import Envelope

MANY = 5_000
DECIDED = {"kind": "Decided", "time": 0}
WEIGHED = {"head": 1, "needed": 1, "after": 0, "accepted": False, "job_numbers": [], "probabilities": [], "bounds": []}
SAMPLE = {"time": 0, "cluster": "c", "policy": "p", "figures": []}
WRONG: list[Any] = [{}] * MANY


@pytest.mark.parametrize(
    "brought",
    [
        *({name: WRONG} for name in ("wait_bounds", "coverage", "change_points", "samples", "drifts")),
        *({"event": DECIDED | {name: WRONG}} for name in ("starts", "kills", "evaluated", "cut_short")),
        *(
            {"event": DECIDED | {"evaluated": [WEIGHED | {name: WRONG}]}}
            for name in ("job_numbers", "probabilities", "bounds")
        ),
        {"event": DECIDED | {"starts": [{"reason": {"kind": "probably-harmless", "riskiest": WRONG}}]}},
        {"run_time": {"point": 1, "observations": 1, "histogram": WRONG}},
        {"samples": [SAMPLE | {"figures": WRONG}]},
        {"samples": [SAMPLE | {"figures": [["x", WRONG, 1]]}]},
        {"wait_bounds": [{"grouping": "g", "quantile": 0.5, "confidence": 0.5, "starts_within": WRONG}]},
        {"scores": {"wait_bounds": WRONG}},
        {"scores": {"run_time": {"pit": WRONG}}},
        {"scores": {"calibration": {"by_order": {"bins": WRONG}}}},
    ],
)
def test_a_list_of_wrong_elements_costs_no_more_than_one(brought: dict[str, Any]) -> None:
    """One megabyte of `[{},{},…]` took ten seconds and two gigabytes, with the event loop held."""
    told = {"run": "r", "sequence": 0, "event": {"kind": "SchedulingPoint", "time": 0}} | brought
    with pytest.raises(ValidationError) as refused:
        Envelope.from_bytes(json.dumps(told).encode())
    assert refused.value.error_count() < 60
