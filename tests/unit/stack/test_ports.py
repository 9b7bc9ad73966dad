"""Tests of the free ports that servers are given."""

import pytest

from shadowtime.stack.servers import ports


def test_no_port_is_given_twice_and_none_that_is_not_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = ports.allowed()
    monkeypatch.setattr(ports, "RESERVED", set())  # those of tests before are free again, or in use
    monkeypatch.setenv(ports.PORTS, f"{first}-{first + 199}")
    row = ports.free_port(50)
    singles = [ports.free_port() for _ in range(20)]
    given = {*range(row, row + 50), *singles}
    assert len(given) == 70
    assert first <= min(given) <= max(given) < first + 200 <= last
