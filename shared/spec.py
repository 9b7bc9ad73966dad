"""SPECs: texts that name a policy or a predictor with its keys, on the command line and in the log.

A SPEC is `NAME`, `NAME:key=value,key=value` or `NAME(key=value,key=value)`. A value may itself be a SPEC in
parentheses, as in `easy:adjustment=percentile(key=user)`.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Generic, NamedTuple, Protocol, TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from shadowtime.shared.bounds import MAX_KEYS, MAX_SPEC_DEPTH, MAX_SPEC_LENGTH
from shadowtime.shared.errors import SettingsError, in_plain_words
from shadowtime.shared.plugins import Classes
from shadowtime.shared.quoting import QUOTED, among, quote, truncate


class Spelled(NamedTuple):
    """A SPEC with all its keys, each as `key=value`: the keys that were chosen, and the keys at their defaults."""

    name: str
    chosen: tuple[str, ...]
    defaults: tuple[str, ...]

    def __str__(self) -> str:
        """Return the SPEC as a user could type it, with the chosen keys first."""
        keys = ",".join(self.chosen + self.defaults)
        return f"{self.name}({keys})" if keys else self.name

    @property
    def short(self) -> str:
        """The same SPEC without the keys at their defaults.

        >>> Spelled("empirical", (), ("prior=2",)).short
        'empirical'
        """
        return str(Spelled(self.name, self.chosen, ()))


_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_/-]*\Z")


def is_name(text: object) -> bool:
    """Return whether a value is a text that can be the name of a SPEC, or of one of its keys.

    >>> is_name("last-two"), is_name("last two"), is_name(2)
    (True, False, False)
    """
    return isinstance(text, str) and _NAME.match(text) is not None


@dataclass(frozen=True)
class Spec:
    """A parsed SPEC: its name, and the value of each key as text, in the order of the text.

    >>> str(parse("easy:adjustment=percentile(key=user)"))
    'easy(adjustment=percentile(key=user))'
    """

    name: str
    keys: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        """Return the canonical text."""
        if not self.keys:
            return self.name
        return f"{self.name}({','.join(f'{key}={value}' for key, value in self.keys.items())})"


def parse(text: str) -> Spec:
    """Return the SPEC in a text.

    Raise `SettingsError` if the text is not a SPEC. The message shows the faulty part.
    """
    if len(text) > MAX_SPEC_LENGTH:
        raise SettingsError(f"{quote(text)} is not a SPEC: it has more than {MAX_SPEC_LENGTH:,} characters")
    name, separator, rest = _split_name(text.strip())
    if not is_name(name):
        raise SettingsError(f"{quote(text)} is not a SPEC: expected NAME or NAME:key=value,key=value")
    if not separator:
        return Spec(name)
    if separator == "(":
        if not rest.endswith(")"):
            raise SettingsError(f"{quote(text)} is not a SPEC: expected a closing parenthesis at its end")
        rest = rest[:-1]

    keys: dict[str, str] = {}
    for part in _split_keys(rest, text):
        key, equals, value = part.partition("=")
        if not equals or not is_name(key.strip()) or not value.strip():
            raise SettingsError(f"{quote(part)} in {quote(text)} is not of the form key=value")
        if key.strip() in keys:
            raise SettingsError(f"key {quote(key.strip())} appears twice in {quote(text)}")
        keys[key.strip()] = value.strip()
        if len(keys) > MAX_KEYS:
            raise SettingsError(f"{quote(text)} is not a SPEC: it has more than {MAX_KEYS} keys")

    return Spec(name, keys)


def _split_name(text: str) -> tuple[str, str, str]:
    cut = re.search(r"[:(]", text)
    return (text, "", "") if cut is None else (text[: cut.start()], cut.group(), text[cut.end() :])


def _split_keys(text: str, whole: str) -> Iterable[str]:
    """Split at the commas outside parentheses."""
    depth, start = 0, 0
    for position, character in enumerate(text):
        depth += (character == "(") - (character == ")")
        if depth < 0:
            break
        if depth >= MAX_SPEC_DEPTH:
            raise SettingsError(f"{quote(whole)} is not a SPEC: it is nested more than {MAX_SPEC_DEPTH} levels deep")
        if character == "," and depth == 0:
            yield text[start:position]
            start = position + 1

    if depth != 0:
        raise SettingsError(f"parentheses in {quote(whole)} do not match")
    yield text[start:]


class Price(NamedTuple):
    """The largest memory and work that one run with a SPEC can need in a worker.

    The price is valid for up to `MAX_LIVE_JOBS` live jobs on a machine of any size. The memory of these jobs themselves
    is not part of the price.

    Parameters
    ----------
    memory
        Bytes of the learned state.
    storing
        Further bytes while the state is stored or restored.
    steps
        Steps of inner loops for the most expensive message, about a nanosecond each.
    """

    memory: int = 0
    storing: int = 0
    steps: int = 0

    def plus(self, *others: "Price") -> "Price":
        """Return the price of a run with this part and others.

        The parts are stored one after another, so the largest `storing` counts.

        >>> Price(100, 50, 5).plus(Price(10, 60, 1), Price(1))
        Price(memory=111, storing=60, steps=6)
        """
        memory, storing, steps = zip(self, *others, strict=True)
        return Price(sum(memory), max(storing), sum(steps))


class SpecSettings(BaseModel):
    """Base class of the settings that a policy or predictor reads from its SPEC."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    files: ClassVar[Mapping[str, Callable[[str], str]]] = {}
    """For each setting whose value may name a file: a function that replaces this value by the content of the file."""

    def as_keys(self, *, changed: bool = False) -> dict[str, str]:
        """Return all keys and their values as a SPEC has them; with `changed`, only those that are not the default."""
        values = self.model_dump(by_alias=True, exclude_defaults=changed)
        return {key: as_text(value) for key, value in values.items()}

    def price(self) -> Price:
        """Return the price of these settings; 0 unless a class overrides this."""
        return Price()


class Configurable(Protocol):
    """A class that a SPEC can name. It is constructed from its settings alone."""

    name: ClassVar[str]
    Settings: ClassVar[type[SpecSettings]]


Made = TypeVar("Made", covariant=True)

CONTENTS: ContextVar[Mapping[str, str]] = ContextVar("CONTENTS", default=MappingProxyType({}))
"""Contents of files by the names in SPECs, to be used instead of these files."""


class Registry(Generic[Made]):
    """All policies, or all predictors of one kind, by name.

    Parameters
    ----------
    kind, classes, group, base, settings
        See `Classes`; there, `classes` is `own`.
    aliases
        Short names of SPECs. A command replaces them; a run cannot have them.
    common
        Keys that a command accepts in a SPEC of this kind, and that no class reads.
    """

    def __init__(
        self,
        kind: str,
        classes: Iterable[type[Any]],
        aliases: Iterable[str] = (),
        common: Iterable[str] = (),
        group: str | None = None,
        base: type[Any] = object,
        settings: type[SpecSettings] = SpecSettings,
    ) -> None:
        self.kind = kind
        self.common = tuple(common)
        self.aliases = tuple(aliases)
        self.classes: Classes[Any] = Classes(kind, classes, group, base, settings)

    def canonical(self, spec: Spec) -> Spec:
        """Return `spec` with all keys and their values, in the order in which the class declares them.

        The name of a file is replaced by the value in the file. `build` reads no file, so a worker needs only the log.

        Raise `SettingsError` if the name or a key is unknown, or a value is out of range. The message lists the known
        names or keys.
        """
        keys = self._keys(Spec(spec.name, {**spec.keys, **self.contents(spec)}))
        return Spec(spec.name, keys.as_keys())

    def contents(self, spec: Spec) -> dict[str, str]:
        """Return, for each key of `spec` that may name a file, its value with the contents of the file.

        Raise `SettingsError` if a file cannot be read. Files in `CONTENTS` are not read.
        """
        read = self.classes[spec.name].Settings.files if spec.name in self.classes else {}
        known = CONTENTS.get()
        return {
            key: known[value] if value in known else read[key](value) for key, value in spec.keys.items() if key in read
        }

    def build(self, spec: Spec) -> Made:
        """Return a new object of the class that `spec` names. Raise `SettingsError` as `canonical` does."""
        keys = self._keys(spec)
        made: Made = self.classes[spec.name](keys)
        return made

    def price(self, spec: Spec) -> Price:
        """Return the price of one run with `spec`. Raise `SettingsError` as `canonical` does."""
        return self._keys(spec).price()

    def _keys(self, spec: Spec) -> SpecSettings:
        chosen = self.classes.get(spec.name)
        if chosen is None and spec.name in self.aliases:
            raise SettingsError(
                f"{self.kind} {spec.name!r} is a short name, but a run needs a full SPEC; "
                f"`shadowtime list policies {spec.name}` prints it"
            )

        if chosen is None:
            raise SettingsError(
                f"unknown {self.kind} {quote(spec.name)}"
                + among(spec.name, sorted([*self.classes.names(), *self.aliases]))
            )

        model: type[SpecSettings] = chosen.Settings
        unknown = [key for key in spec.keys if key not in model.model_fields]
        if unknown and unknown[0] in self.common:
            raise SettingsError(
                f"{self.kind} {spec.name!r} does not read the key {unknown[0]!r}: commands accept it in the SPEC of a "
                f"{self.kind}, but in a run it is a setting of its own"
            )
        if unknown:
            keys = among(unknown[0], [*model.model_fields, *self.common], "known keys")
            raise SettingsError(f"{self.kind} {spec.name!r} has no key {quote(unknown[0])}{keys}")
        try:
            return model.model_validate(spec.keys)
        except ValidationError as error:
            raise wrong_key(f"{self.kind} {spec.name!r}", error) from None
        except SettingsError as failure:
            raise SettingsError(f"{self.kind} {spec.name!r}: {failure}") from None
        except Exception as failure:  # a plug-in's validator may raise anything
            what = f"{type(failure).__name__}: {truncate(str(failure))}"
            raise SettingsError(f"{self.kind} {spec.name!r}: its settings failed: {what}") from failure


def wrong_key(whose: str, error: ValidationError) -> SettingsError:
    """Return an error that names the first faulty key, its value and its fault."""
    first = error.errors()[0]
    wrong = in_plain_words(first)
    if not first["loc"]:  # the fault is about several keys
        return SettingsError(f"{whose}: {truncate(wrong)}")
    key = ".".join(map(str, first["loc"]))
    value = "" if first["type"] == "missing" else f"={truncate(str(first['input']), QUOTED)}"
    unit = "; times are in seconds, without a unit" if _WITH_UNIT.fullmatch(str(first["input"])) else ""
    return SettingsError(f"{whose}: {key}{value}: {truncate(wrong)}{unit}")


_WITH_UNIT = re.compile(r"\d{1,12}(\.\d{1,6})? ?(s|min|h|d)")


def as_text(value: object) -> str:
    """Return a key's value as it is written in a SPEC."""
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)
