"""Why a policy that plans every waiting job starts one; the other reasons are in `shared.events`."""

from typing import Annotated, Literal

from pydantic import Field

from shared.message import Frozen, Whole


class Reserved(Frozen):
    """Its place in the plan of all waiting jobs has come.

    `guaranteed_start` is the latest start that it was promised when it was first planned, in seconds; None without
    guarantees.
    """

    kind: Literal["reserved"] = "reserved"
    guaranteed_start: Whole | None = None


class Speculated(Frozen):
    """Started for less time than it asks for, in a hole of the plan; if that is too short, it waits again.

    `hole` is how long so many processors are free, in seconds, None if always; `attempt` counts from 1. A test run is
    to show whether a long job fails at once.
    """

    kind: Literal["speculated"] = "speculated"
    hole: Whole | None = None
    attempt: Annotated[int, Field(ge=1)]
    test_run: bool
