"""The reference lists all values of a key; every one of them is accepted."""

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin

import pytest
from pydantic import ValidationError

from shadowtime.services.catalogue import REGISTRIES


def listed(annotation: Any, metadata: list[Any]) -> Iterator[object]:
    """Yield the values that `docs/generate.py` writes for a key: words, and the ends of a range."""
    if get_origin(annotation) is Literal:
        yield from get_args(annotation)
    elif get_origin(annotation) in (Union, types.UnionType):
        for argument in get_args(annotation):
            yield from listed(argument, [])
    elif annotation is bool:
        yield from ("yes", "no")
    for entry in metadata:
        yield from (end for end in (getattr(entry, "ge", None), getattr(entry, "le", None)) if end is not None)


KEYS = [
    pytest.param(settings, key, value, id=f"{name}:{key}={value}")
    for registry in REGISTRIES.values()
    for name, settings in ((name, kind.Settings) for name, kind in sorted(registry.classes.items()))
    for key, field in settings.model_fields.items()
    for value in listed(field.annotation, field.metadata)
]


@pytest.mark.parametrize(("settings", "key", "value"), KEYS)
def test_a_listed_value_is_accepted(settings: Any, key: str, value: object) -> None:
    try:
        settings.model_validate({key: value})
    except ValidationError as error:
        pytest.fail(str(error))
