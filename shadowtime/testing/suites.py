"""The suites of tests, by kind of plug-in."""

import re
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

from shadowtime.replayer.options import KINDS
from shadowtime.replayer.simulation import SOURCES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote, truncate
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


# Failed tests on one line: the broken rule, the line of the plug-in, and the smallest input that breaks the rule.

EXAMPLE = re.compile(r"[^\n:(]+: (test_\w+\(.*)", re.DOTALL)
"""The note that hypothesis adds to an exception, with the smallest input."""

MAX_INPUT = 1_000
"""Maximum length of the shown input, in characters."""

OURS = Path(__file__).parents[1]


def on_one_line(test: Callable[..., None]) -> Callable[..., None]:
    """Return a test that fails with one line, without a traceback.

    >>> def test_sizes_are_positive(self, spec):
    ...     assert spec == "", "size 0"
    >>> try:
    ...     on_one_line(test_sizes_are_positive)(None, spec="mine")
    ... except BaseException as failure:
    ...     print(failure)
    mine: broken rule: sizes are positive: AssertionError: size 0
    """

    @wraps(test)
    def brief(*arguments: Any, **options: Any) -> None:
        try:
            test(*arguments, **options)
        except Exception as error:
            pytest.fail(_line(test.__name__, str(options.get("spec", "")), error), pytrace=False)

    return brief


def _line(name: str, spec: str, error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):  # several faults: the first one
        error = error.exceptions[0]
    rule = name.removeprefix("test_").replace("_", " ")
    reason = next(iter(str(error).strip().splitlines()), "")
    parts = [f"{spec}: broken rule: {rule}: {type(error).__name__}" + (f": {reason}" if reason else "")]
    if (place := _place(error)) is not None:
        parts.append(f"at {place}")
    notes = filter(None, map(EXAMPLE.match, getattr(error, "__notes__", ())))
    inputs = [f"smallest input: {truncate(' '.join(note[1].split()), MAX_INPUT)}" for note in notes]
    return "; ".join(parts + inputs)


def _place(error: BaseException) -> str | None:
    """Return the last line of the traceback outside Shadowtime and installed libraries, as `file:line`."""
    installed = sys.prefix, sys.base_prefix
    places = [
        f"{frame.filename}:{frame.lineno}"
        for cause in (error, error.__cause__)
        if cause is not None
        for frame in extract_tb(cause.__traceback__)
        if not Path(frame.filename).is_relative_to(OURS) and not frame.filename.startswith((*installed, "<"))
    ]
    return places[-1] if places else None
