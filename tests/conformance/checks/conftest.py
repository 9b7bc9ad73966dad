"""What of the suites runs in `make nightly` alone."""

import pytest

from shadowtime.services.catalogue import canonical
from shadowtime.shared.spec import parse

DEAR = "test_memory_does_not_grow_with_the_jobs"
"""Learns 20,000 jobs. A class that forgets under its default keys mostly forgets under the others."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """Mark the dear test of every SPEC that has other keys than the default ones."""
    if isinstance(item, pytest.Function) and item.originalname == DEAR:
        spec = str(item.callspec.params["spec"])
        if spec != canonical(item.cls.option, parse(spec).name):
            item.add_marker(pytest.mark.nightly)
