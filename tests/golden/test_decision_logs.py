"""The decision log of the bundled trace, to the byte: no decision changes unless someone meant it to."""

import pytest

from tests.golden.decision_logs import FILE, POLICIES, digest, recorded_digests


@pytest.mark.parametrize("policy", POLICIES)
def test_decisions_on_the_bundled_trace_are_as_recorded(policy: str) -> None:
    assert digest(policy) == recorded_digests().get(policy), (
        f"the decisions of {policy!r} on the bundled trace differ from {FILE.name}. "
        "If that was meant: .venv/bin/python -m tests.golden"
    )
