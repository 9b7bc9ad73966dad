"""What all messages have in common."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

from annotated_types import GroupedMetadata, MaxLen
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field

from shadowtime.shared.bounds import (
    MAX_AMOUNT,
    MAX_DURATION,
    MAX_INTEGER,
    MAX_NAME_LENGTH,
    MAX_PROCESSORS,
    MAX_REASON_LENGTH,
    MAX_SPEC_LENGTH,
    MAX_TIME,
)
from shadowtime.shared.wording import shortened

__all__ = [
    "MAX_DURATION",
    "MAX_INTEGER",
    "Amount",
    "AtMost",
    "Count",
    "Finite",
    "Frozen",
    "Instant",
    "Name",
    "Processors",
    "Reasons",
    "Request",
    "Seconds",
    "SpecText",
    "Whole",
]

Whole = Annotated[int, Field(ge=-MAX_INTEGER, le=MAX_INTEGER)]
Count = Annotated[int, Field(ge=0, le=MAX_INTEGER)]
Seconds = Annotated[int, Field(ge=0, le=MAX_DURATION)]
Request = Annotated[int, Field(ge=1, le=MAX_DURATION)]
Amount = Annotated[int, Field(ge=0, le=MAX_AMOUNT)]
Processors = Annotated[int, Field(ge=1, le=MAX_PROCESSORS)]

Instant = Annotated[int, Field(ge=-MAX_TIME, le=MAX_TIME)]
"""A time, in seconds, at which an event may happen; what is foreseen may come later, and is a `Whole`."""

Finite = Annotated[float, Field(allow_inf_nan=False)]

Name = Annotated[str, Field(max_length=MAX_NAME_LENGTH)]
SpecText = Annotated[str, Field(max_length=MAX_SPEC_LENGTH)]


@dataclass(frozen=True)
class AtMost(GroupedMetadata):
    """So many elements of a list, of which the first that is wrong ends the reading.

    Of a million wrong elements a million errors would be kept, which takes seconds and a gigabyte.

    >>> from pydantic import TypeAdapter, ValidationError
    >>> try:
    ...     TypeAdapter(Annotated[tuple[int, ...], AtMost(9)]).validate_json(b'["a","b","c"]')
    ... except ValidationError as error:
    ...     error.error_count()
    1
    """

    most: int

    def __iter__(self) -> Iterator[Any]:
        """Yield what pydantic understands."""
        yield MaxLen(self.most)
        yield FailFast()


def _cut(reason: object) -> object:
    if not isinstance(reason, str) or len(reason) <= MAX_REASON_LENGTH:
        return reason
    return shortened(reason, MAX_REASON_LENGTH // 2)


Reasons = Annotated[str, BeforeValidator(_cut), Field(max_length=MAX_REASON_LENGTH)]
"""Why something was or was not done, in plain English; a text that is too long is cut."""


class Frozen(BaseModel):
    """An immutable message; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
