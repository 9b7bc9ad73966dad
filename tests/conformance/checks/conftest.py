"""What of the suites runs in `make nightly` alone."""

from collections.abc import Mapping

import pytest

from shadowtime.shared.spec import parse

DEAR = "test_memory_does_not_grow_with_the_jobs"
"""Learns 20,000 jobs under each SPEC."""

plain: dict[tuple[type, str], Mapping[str, str]] = {}
"""Of each suite and name the keys of the SPEC that it tries first."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Leave to nightly what is dear, and every further choice of a key."""
    if not isinstance(item, pytest.Function) or not hasattr(item.cls, "option"):
        return
    spec = parse(str(item.callspec.params["spec"]))
    first = plain.setdefault((item.cls, spec.name), spec.keys)
    if item.originalname == DEAR or spec.keys != first:
        item.add_marker(pytest.mark.nightly)
