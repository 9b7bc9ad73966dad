"""What everything in the registries says on the bundled trace, to the byte: it changes only if someone means it to."""

import pytest

from shadowtime.services.catalogue import REGISTRIES
from tests.conformance.golden.digests import LISTED, digest, file, recorded_digests

ANEW = ".venv/bin/python -m tests.conformance.golden"


@pytest.mark.parametrize(("option", "name"), LISTED)
def test_what_is_said_on_the_bundled_trace_is_as_recorded(option: str, name: str) -> None:
    recorded = recorded_digests(option)
    assert name in recorded, f"{file(option).name} has no digest of {name!r}. It is written by: {ANEW}"
    assert digest(option, name) == recorded[name], (
        f"what {option} {name!r} says on the bundled trace differs from {file(option).name}. If that was meant: {ANEW}"
    )


@pytest.mark.parametrize("option", REGISTRIES)
def test_nothing_is_recorded_that_is_not_listed(option: str) -> None:
    unknown = {(option, name) for name in recorded_digests(option)} - set(LISTED)
    assert not unknown, f"{file(option).name} has digests of what is gone: {unknown}. It is written by: {ANEW}"
