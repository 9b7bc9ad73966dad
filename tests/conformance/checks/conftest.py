"""What of the suites runs in `make nightly` alone."""

from collections.abc import Mapping

import pytest

from shadowtime.shared.spec import parse

DEAR = "test_memory_does_not_grow_with_the_jobs"
"""Learns 20,000 jobs under each SPEC."""

SHARED = ("by", "distribution", "fallback")
"""Keys of all policies. One reader serves all of them; in `make test` it is tried through `easy` alone."""

plain: dict[tuple[type, str], Mapping[str, str]] = {}
"""Of each suite and policy the keys of the SPEC that it tries first."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what is dear, and what tries a key of all policies through another policy than `easy`."""
    if not isinstance(item, pytest.Function) or not hasattr(item.cls, "option"):
        return
    spec = parse(str(item.callspec.params["spec"]))
    first = plain.setdefault((item.cls, spec.name), spec.keys)
    moved = any(first.get(key) != spec.keys.get(key) for key in SHARED)
    shared = moved and item.cls.option == "policy" and spec.name != "easy"
    if shared or item.originalname == DEAR:
        item.add_marker(pytest.mark.nightly)
