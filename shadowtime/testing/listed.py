"""SPECs of all classes: each with its default keys, and with each further choice of a key that has choices."""

from typing import Literal, get_args, get_origin

from shadowtime.services.catalogue import REGISTRIES, canonical
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.spec import Spec, parse


def specs(option: str) -> list[str]:
    """Return a SPEC for every usable class behind an option, and one more for each further choice of a key.

    >>> [value for value in specs("policy") if value.startswith("fcfs")]
    ['fcfs', 'fcfs(distribution=prior)', 'fcfs(distribution=ignore)', 'fcfs(fallback=incremental)']
    """
    return [
        spec for name in sorted(REGISTRIES[option].classes) if is_usable(option, name) for spec in choices(option, name)
    ]


def is_usable(option: str, name: str) -> bool:
    """Return whether a class can be made with its default keys. It cannot if it needs a library that is missing."""
    try:
        canonical(option, name)
    except SettingsError:
        return False
    return True


def own_specs(option: str) -> list[str]:
    """Return the `specs` of the classes that are no plug-ins, because a fault of another plug-in must fail no test."""
    others = set(REGISTRIES[option].classes.plugged_in())
    return [spec for spec in specs(option) if parse(spec).name not in others]


def choices(option: str, spec: str) -> list[str]:
    """Return a SPEC with all its keys, and one more for each further choice of a key that it does not set."""
    chosen = parse(spec)
    specs = [canonical(option, spec)]
    for key, field in REGISTRIES[option].classes[chosen.name].Settings.model_fields.items():
        if key not in chosen.keys and get_origin(field.annotation) is Literal:
            others = [choice for choice in get_args(field.annotation) if choice != field.default]
            specs += [canonical(option, str(Spec(chosen.name, {**chosen.keys, key: str(value)}))) for value in others]

    return specs
