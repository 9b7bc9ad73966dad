"""Classes and functions by name: the project's own, and those that installed distributions provide as entry points."""

from collections import UserDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

from shadowtime.shared.errors import SettingsError
from shadowtime.shared.private_files import check_private
from shadowtime.shared.quoting import quote, truncate

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

Of = TypeVar("Of")


class Plugins(UserDict[str, Of]):
    """Objects of one kind by name: the project's own and plug-ins.

    The metadata of installed distributions are read once: when a name is not the project's own, or when all names are
    listed. A plug-in is imported when it is looked up, or when an iteration has to check it. The project's own names
    take precedence; a plug-in with such a name is among `errors`.

    Parameters
    ----------
    kind
        Name of the kind, for messages.
    own
        The project's own objects.
    group
        GROUP of the entry points `shadowtime.GROUP`. With None there are no plug-ins.
    wrong
        Function that gets a loaded object and its name. It returns the object's fault, or None.
    """

    def __init__(
        self, kind: str, own: Mapping[str, Of], group: str | None, wrong: Callable[[Any, str], str | None]
    ) -> None:
        super().__init__(own)
        self._kind, self._group, self._wrong = kind, group, wrong
        self._loaded: dict[str, Of | str] = {}
        self._points: dict[str, list[EntryPoint]] | None = None
        self._own = set(self.data)

    def names(self) -> list[str]:
        """Return all names in order, including those of plug-ins. No plug-in is imported for this."""
        return sorted({*self.data, *self._entry_points()})

    def plugged_in(self) -> list[str]:
        """Return the names of the usable plug-ins."""
        return [name for name in self if name not in self._own]

    def register(self, name: str, plug_in: Of) -> None:
        """Add an object for this process only. It replaces an object that was registered under the same name.

        Raise `SettingsError` if the name is taken, or the object is unusable.
        """
        if name in self._own or name in self._entry_points():
            raise SettingsError(f"{self._kind} {quote(name)} exists already; give yours another `name`")
        if wrong := self._wrong(plug_in, name):
            raise SettingsError(f"{self._kind} {quote(name)} is not a valid {self._kind}: {wrong}")
        self.data[name] = plug_in

    def unregister(self, name: str, before: Of | None = None) -> None:
        """Remove a registered object. With `before`, register that object in its place."""
        if before is None:
            self.data.pop(name, None)
        else:
            self.data[name] = before

    def errors(self) -> list[str]:
        """Return one line for each unusable plug-in: its name, its distribution and its fault."""
        loaded = [self._load(name) for name in sorted(self._entry_points())]
        return [name for name in loaded if isinstance(name, str)]

    def __missing__(self, name: str) -> Of:
        """Return a plug-in.

        Raises
        ------
        KeyError
            If no plug-in has this name.
        SettingsError
            If the plug-in is unusable. The message names its distribution and entry point.
        """
        if name not in self._entry_points():
            raise KeyError(name)
        loaded = self._load(name)
        if isinstance(loaded, str):
            raise SettingsError(loaded)
        return loaded

    def __contains__(self, name: object) -> bool:
        return name in self.data or name in self._entry_points()

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all usable objects."""
        yield from self.data
        for name in sorted(self._entry_points()):
            if name not in self.data and not isinstance(self._load(name), str):
                yield name

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _entry_points(self) -> "dict[str, list[EntryPoint]]":
        if self._points is None:
            self._points = {}
            if self._group is not None:
                from importlib.metadata import entry_points

                for point in entry_points(group=f"shadowtime.{self._group}"):
                    self._points.setdefault(point.name, []).append(point)
        return self._points

    def _load(self, name: str) -> Of | str:
        """Return a plug-in, or a line about its fault."""
        points = self._entry_points()[name]
        classes = self._loaded
        if name not in classes:
            others = [_describe(point) for point in sorted(points, key=_describe)]
            if name in self._own:
                others.insert(0, "shadowtime itself")
            if len(others) > 1:
                classes[name] = f"{self._kind} {quote(name)} exists twice: {' and '.join(others)}"
            else:
                classes[name] = self._imported(points[0])

        return classes[name]

    def _imported(self, point: "EntryPoint") -> Of | str:
        whose = f"{self._kind} {quote(point.name)} of {_describe(point)}"
        try:
            _check_module(point.module)
            loaded = point.load()
            wrong = self._wrong(loaded, point.name)
        except (Exception, SystemExit) as error:  # the import of a third-party module may raise anything
            return f"{whose} cannot be imported: {type(error).__name__}: {truncate(str(error), 300)}"
        return f"{whose} is not a valid {self._kind}: {wrong}" if wrong else cast("Of", loaded)


def _check_module(name: str) -> None:
    """Raise `UntrustedFile` if somebody else can change the file of a module, or a package around it."""
    from importlib.util import find_spec

    parts = name.split(".")
    for count in range(1, len(parts) + 1):
        spec = find_spec(".".join(parts[:count]))  # imports the package around it, which was checked before
        if spec is not None and spec.origin is not None and spec.has_location:
            check_private(Path(spec.origin))


class Classes(Plugins[type[Of]]):
    """Classes of one kind by name.

    Parameters
    ----------
    kind, own, group
        See `Plugins`. `own` are the classes; each has a `name`.
    base
        The protocol that a plug-in implements.
    settings
        The base class of a plug-in's `Settings`; None if no SPEC names such a class.
    """

    def __init__(
        self,
        kind: str,
        own: Iterable[type[Any]],
        group: str | None = None,
        base: type[Any] = object,
        settings: type[Any] | None = None,
    ) -> None:
        super().__init__(kind, {plug_in.name: plug_in for plug_in in own}, group, self._wrong_class)
        self.base, self.settings = base, settings

    def _wrong_class(self, loaded: Any, name: str) -> str | None:
        if not isinstance(loaded, type):
            return "it is not a class"
        if getattr(loaded, "name", None) != name:
            return f"its `name` is not {name!r}"
        settings: Any = getattr(loaded, "Settings", None)
        if self.settings is not None and not (isinstance(settings, type) and issubclass(settings, self.settings)):
            return f"its `Settings` is not a subclass of {self.settings.__name__}"
        if self.settings is not None:
            settings.model_rebuild()  # raises now, not at the first use, if the settings are faulty
        lacking = [name for name in dir(self.base) if name[0] != "_" and not hasattr(loaded, name)]
        return f"it has no {', '.join(lacking)}" if lacking else None


def _describe(point: "EntryPoint") -> str:
    distribution = "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"
    return f"{distribution} (entry point {point.name} = {point.value})"
