"""What of the suites runs in `make nightly` alone."""

from collections.abc import Mapping

import pytest

from shadowtime.services.catalogue import canonical
from shadowtime.shared.spec import parse

DEAR = "test_memory_does_not_grow_with_the_jobs"
"""Learns 20,000 jobs. A class that forgets under its default keys mostly forgets under the others."""

SHARED = ("by", "distribution", "fallback")
"""Keys of all policies. One reader serves all of them; in `make test` it is tried through `easy` alone."""

plain: dict[tuple[type, str], Mapping[str, str]] = {}
"""Of each suite and policy the keys of the SPEC that it tries first."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark what tries other keys than the plain SPEC and is dear, or is tried through another policy too."""
    if not isinstance(item, pytest.Function) or not hasattr(item.cls, "option"):
        return
    text = str(item.callspec.params["spec"])
    spec = parse(text)
    first = plain.setdefault((item.cls, spec.name), spec.keys)
    dear = item.originalname == DEAR and text != canonical(item.cls.option, spec.name)
    shared = (
        item.cls.option == "policy" and spec.name != "easy" and any(first.get(k) != spec.keys.get(k) for k in SHARED)
    )
    if dear or shared:
        item.add_marker(pytest.mark.nightly)
