"""Everything that a SPEC can name: the default keys of each, and each choice of its keys that have choices."""

from typing import Literal, get_args, get_origin

from shadowtime.services.catalogue import REGISTRIES, canonical


def specs(option: str) -> list[str]:
    """Return a SPEC for every class behind an option, and one more for each further choice of a key.

    >>> [each for each in specs("policy") if each.startswith("fcfs")]
    ['fcfs', 'fcfs(distribution=prior)', 'fcfs(distribution=ignore)', 'fcfs(fallback=incremental)']
    """
    found: list[str] = []
    for name, listed in sorted(REGISTRIES[option].classes.items()):
        found.append(canonical(option, name))
        for key, field in listed.Settings.model_fields.items():
            choices = get_args(field.annotation) if get_origin(field.annotation) is Literal else ()
            found += [canonical(option, f"{name}:{key}={each}") for each in choices if each != field.default]
    return found
