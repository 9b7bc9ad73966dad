"""What all messages have in common."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Seconds = Annotated[int, Field(ge=0)]


class Frozen(BaseModel):
    """An immutable message; unknown fields are an error."""

    model_config = ConfigDict(frozen=True, extra="forbid")
