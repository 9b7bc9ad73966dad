"""What all messages have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

LARGEST = 2**53
"""No number in a message is larger: every reader of JSON, and every sum of 64 bits, takes them exactly."""

LONGEST = 2**39
"""Seconds (17,000 years); no job requests or runs longer."""

Whole = Annotated[int, Field(ge=-LARGEST, le=LARGEST)]
Count = Annotated[int, Field(ge=0, le=LARGEST)]
Seconds = Annotated[int, Field(ge=0, le=LONGEST)]
Request = Annotated[int, Field(ge=1, le=LONGEST)]


class Frozen(BaseModel):
    """An immutable message; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
