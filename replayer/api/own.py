"""Policies and predictors of a notebook or a script: classes, objects and functions that no distribution provides."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from copy import deepcopy
from inspect import Parameter, signature
from typing import Any

import numpy as np
from pydantic import ValidationError

from shadowtime.services.catalogue import REGISTRIES
from shadowtime.services.scheduler import Output, Policy, Queue, Running, start_heads
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Integers, IntegerTable
from shadowtime.shared.quoting import quote
from shadowtime.shared.spec import SpecSettings, is_name

PolicyFunction = Callable[[int, Queue, Running, int], Sequence[int]]
"""A policy as a function of `(now, queue, running, free)`. It returns the rows of the queue to start, in order."""


def require_several(policies: object) -> None:
    """Raise `SettingsError` if policies are not a list or another sequence. A SPEC without a list is an error, too."""
    if isinstance(policies, str) or not isinstance(policies, Sequence):
        raise SettingsError(f"policies: expected a list of policies, found {policies!r}")


class OwnClasses:
    """The policies and predictors of one replay that no distribution provides. Within `with`, their names are known.

    Examples
    --------
    >>> def first_only(now, queue, running, free):
    ...     return [0] if queue.processors[0] <= free else []
    >>> own = OwnClasses()
    >>> own.spec_of("policy", "easy:forecast=yes"), own.spec_of("policy", first_only)
    ('easy:forecast=yes', 'first-only')
    >>> with own:
    ...     "first-only" in REGISTRIES["policy"].classes
    True
    >>> "first-only" in REGISTRIES["policy"].classes
    False
    """

    def __init__(self) -> None:
        self._made: dict[tuple[str, str], type[Any]] = {}
        self._before: list[dict[tuple[str, str], type[Any] | None]] = []

    def __len__(self) -> int:
        return len(self._made)

    def spec_of(self, kind: str, own: Any) -> str:
        """Return the SPEC of a policy or predictor: a text unchanged, the name of anything else.

        Parameters
        ----------
        kind
            `policy`, `runtime`, `adjustment` or `wait-bound`.
        own
            A SPEC, a class, an object, or a function or another callable as a policy (`PolicyFunction`). An object is
            copied for each replay.

        Raises
        ------
        SettingsError
            If a method is missing, or the name is not that of a SPEC, or is that of another of these objects.
        """
        if isinstance(own, str):
            return own
        if kind == "policy" and callable(own) and not isinstance(own, type) and not hasattr(own, "schedule"):
            own = FunctionPolicy.of(own)
        classes = REGISTRIES[kind].classes
        of = own if isinstance(own, type) else type(own)
        needed = ("schedule",) if kind == "policy" else ("predict_one", "learn_one")
        if lacking := [name for name in needed if getattr(of, name, None) in (None, getattr(classes.base, name, None))]:
            raise SettingsError(
                f"{kind}: expected a SPEC{', a function' if kind == 'policy' else ''}, or a class or object with the "
                f"method{'s' if len(lacking) > 1 else ''} {' and '.join(lacking)}; found {quote(repr(own))}"
            )
        kept = None if own is of else _settings_of(own)
        made = _configurable(own, classes.base, classes.settings or SpecSettings, kept)
        if not is_name(made.name):
            raise SettingsError(
                f"{kind}: `name` {quote(str(made.name))}: expected a letter, then letters, digits, '-', '_' or '/'"
            )
        if (kind, made.name) in self._made:
            raise SettingsError(f"{kind} {made.name!r} occurs twice; give each {kind} a unique `name`")
        self._made[kind, made.name] = made
        keys = ",".join(f"{key}={value}" for key, value in kept.as_keys(changed=True).items()) if kept else ""
        return f"{made.name}:{keys}" if keys else str(made.name)

    def __enter__(self) -> "OwnClasses":
        """Register the classes. Raise `SettingsError` if a name belongs to another policy or predictor."""
        before: dict[tuple[str, str], type[Any] | None] = {}
        self._before.append(before)
        try:
            for (kind, name), made in self._made.items():
                classes = REGISTRIES[kind].classes
                known = classes.data.get(name)
                classes.register(name, made)
                before[kind, name] = known
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """Forget the classes."""
        for (kind, name), before in self._before.pop().items():
            REGISTRIES[kind].classes.unregister(name, before)


def _configurable(own: Any, base: Any, settings: type[SpecSettings], kept: SpecSettings | None) -> type[Any]:
    """Return a class that is made from settings alone, has a name, and has the methods of `base` that `own` lacks.

    The keys of an object are those of the settings that it has `kept`. Without them, they are those of `settings`: keys
    with values that the object may not have would be false.
    """
    of: Any = own if isinstance(own, type) else type(own)
    whole: Any = of if base in of.__mro__ else type(of.__name__, (of, base), {})
    begins = of.__init__ if of is own and of.__init__ not in (object.__init__, base.__init__) else None
    takes_settings = begins is not None and _takes_settings(begins)
    called = getattr(own, "name", None) or _name_of(of)

    def make(_: type[Any], chosen: SpecSettings) -> Any:
        if of is own:
            made = whole.__new__(whole)
            if begins is not None:
                begins(made, *([chosen] if takes_settings else []))
        else:
            made = deepcopy(own)
            made.__class__ = whole
        if not hasattr(made, "settings"):
            made.settings = chosen
        elif settings is not SpecSettings and not isinstance(made.settings, settings):
            raise SettingsError(
                f"{called}: `settings`: expected {settings.__name__}, found {quote(repr(made.settings))}; keep this in "
                "an attribute of another name"
            )
        if not hasattr(made, "name"):
            made.name = called
        return made

    keys = getattr(of, "Settings", settings) if own is of else type(kept) if kept else settings
    names = {"name": called, "Settings": keys}
    return type(of.__name__, (whole,), names | {"__new__": make, "__doc__": of.__doc__})


def _settings_of(own: Any) -> SpecSettings | None:
    """Return the settings that an object keeps in an attribute; None if it has none that a SPEC can state."""
    kept = [value for value in getattr(own, "__dict__", {}).values() if isinstance(value, SpecSettings)]
    with suppress(ValidationError):
        for settings in kept[:1]:
            if type(settings).model_validate(settings.as_keys(changed=True)) == settings:
                return settings
    return None


def _takes_settings(begins: Callable[..., None]) -> bool:
    """Return whether a constructor needs `settings` besides `self`. Raise `SettingsError` if it needs anything else."""
    _, *others = signature(begins).parameters.values()
    variable = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
    needed = [other.name for other in others if other.default is Parameter.empty and other.kind not in variable]
    if needed not in ([], ["settings"]):
        name = begins.__qualname__.partition(".")[0]
        raise SettingsError(
            f"{name}: its constructor needs {', '.join(needed)}; pass an object of the class instead of the class"
        )
    return bool(needed)


def _name_of(of: type[Any]) -> str:
    """Return the name of a class as a SPEC has it.

    >>> _name_of(type("LongestFirst", (), {})), _name_of(type("longest_first", (), {}))
    ('longest-first', 'longest-first')
    """
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", of.__name__).replace("_", "-").lower()
    return re.sub(r"[^a-z0-9-]", "", words).strip("-") or "function"


class FunctionPolicy(Policy):
    """A policy that asks a function which rows of the queue to start."""

    function: PolicyFunction

    @classmethod
    def of(cls, function: PolicyFunction) -> "FunctionPolicy":
        """Return the policy that asks a function, named by its `name`, else as the function, else as its class."""
        named = getattr(function, "func", function)  # of a `functools.partial`
        own: Any = type(getattr(named, "__name__", type(named).__name__), (cls,), {})
        policy: Any = own.__new__(own)
        policy.function = function
        if called := getattr(function, "name", None):
            policy.name = called
        made: FunctionPolicy = policy
        return made

    def schedule(self, now: int, queue: Queue, running: Running, free: int) -> Sequence[Output]:
        """Return the starts of the rows that the function returned; raise `SettingsError` if they cannot start."""
        with _read_only(queue.table, running.table):
            rows = _rows(type(self).__name__, self.function(now, queue, running, free), len(queue))
        needed = int(queue.processors[rows].sum())
        if needed > max(free, 0) and len(rows):
            raise SettingsError(
                f"{type(self).__name__} starts jobs on {needed} processors, and {free} are free; return fewer rows"
            )
        return start_heads(queue, rows.tolist())


@contextmanager
def _read_only(*tables: IntegerTable) -> Iterator[None]:
    """Make tables read-only, because a function that sorts columns in place would change the scheduler's tables."""
    for table in tables:
        table.setflags(write=False)
    try:
        yield
    finally:
        for table in tables:
            table.setflags(write=True)


def _rows(name: str, returned: Any, jobs: int) -> Integers:
    """Return the rows that a function returned by number or by a flag for each row of the queue.

    Raise `SettingsError` if they are no rows of the queue.

    >>> _rows("mine", [2, 0], 3), _rows("mine", np.array([True, False, True]), 3)
    (array([2, 0]), array([0, 2]))
    >>> _rows("mine", [3], 3)
    Traceback (most recent call last):
    shadowtime.shared.errors.SettingsError: mine: expected rows 0 to 2 of the queue, each once; found [3]
    """
    if isinstance(returned, Iterable) and not isinstance(returned, Sequence) and not hasattr(returned, "__array__"):
        returned = list(returned)  # of a generator or a set
    if returned is None:
        raise SettingsError(f"{name}: expected the rows to start, found None; return an empty list to start none")
    rows = np.atleast_1d(np.asarray(returned))
    if rows.dtype == np.bool_ and rows.shape == (jobs,):
        rows = np.flatnonzero(rows)
    if not rows.size:
        return np.empty(0, dtype=np.int64)
    whole = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    if not whole or rows.min() < 0 or rows.max() >= jobs or len(np.unique(rows)) < len(rows):
        expected = f"rows 0 to {jobs - 1} of the queue, each once" if jobs else "no row, because the queue is empty"
        raise SettingsError(f"{name}: expected {expected}; found {rows.tolist()!s:.60}")
    return rows.astype(np.int64)
