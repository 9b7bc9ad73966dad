"""Nightly runs all its parts, whatever becomes of one, and says so."""

import pytest

from shadowtime.shared.cli.paths import ROOT
from tests import nightly
from tests.mutation.configuration import configuration
from tests.nightly import Part


def test_a_part_that_fails_does_not_stop_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    collect = ("pytest", "--collect-only", "-q", "-p", "no:cacheprovider", "tests/repository/test_nightly.py")
    made = [Part("missing", ("tests.no_such_module",)), Part("collected", collect)]
    monkeypatch.setattr(nightly, "parts", lambda: made)
    assert nightly.main() == 1
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[-2:]]
    assert [row[:3] for row in rows] == [["missing", "-", "failed"], ["collected", "0", "passed"]]


def test_the_modules_that_are_mutated_and_their_tests_exist() -> None:
    found = configuration(ROOT).tests
    assert found
    for module, tests in found.items():
        assert (ROOT / tests[-1]).samefile(ROOT / module)
        assert tests[-1].parts[0] == "shadowtime"  # else its examples see classes that no other module has
