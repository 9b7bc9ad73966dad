"""The suites of tests, by kind of plug-in."""

from collections.abc import Iterable

import pytest

from shadowtime.replayer.options import KINDS
from shadowtime.replayer.simulation import SOURCES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote
from shadowtime.testing.broken_rules import on_one_line
from shadowtime.testing.listed import choices, specs
from shadowtime.testing.policies import Policies
from shadowtime.testing.predictors import Adjusters, Bounders, Predictors
from shadowtime.testing.sources import Sources

SUITES: dict[str, type] = {
    "policies": Policies,
    "predictors": Predictors,
    "adjusters": Adjusters,
    "bounders": Bounders,
    "sources": Sources,
}


def conformance(kind: str, *names: str) -> type:
    """Return a class of tests for a kind of plug-in. Assign it to a name that pytest collects, such as `TestMine`.

    A failed test is one line: the broken rule, where the plug-in failed, and the smallest input that breaks the rule.

    Parameters
    ----------
    kind
        `policies`, `predictors`, `adjusters`, `bounders` or `sources`, as in the group of entry points.
    names
        Names or SPECs. Each is tested with every choice of the keys that it does not set. Without names, all are
        tested, except those that need a library which is not installed. Other plug-ins take no part in the tests.

    Raises
    ------
    SettingsError
        If the kind or a name is unknown.

    Examples
    --------
    >>> TestFcfs = conformance("policies", "fcfs")
    """
    if kind not in SUITES:
        raise SettingsError(f"unknown kind {quote(kind)}; known: {', '.join(SUITES)}")
    suite, tried = SUITES[kind], list(_tried(kind, names))
    tests = {name: on_one_line(getattr(suite, name)) for name in dir(suite) if name.startswith("test_")}
    return pytest.mark.parametrize("spec", tried, ids=tried)(type(suite.__name__, (suite,), tests))


def _tried(kind: str, names: Iterable[str]) -> Iterable[str]:
    if kind != "sources":
        option = KINDS[kind]
        return [spec for name in names for spec in choices(option, name)] if names else specs(option)
    if unknown := [name for name in names if name not in SOURCES]:
        raise SettingsError(f"unknown source {quote(unknown[0])}; known: {', '.join(SOURCES.names())}")
    return names or list(SOURCES)
