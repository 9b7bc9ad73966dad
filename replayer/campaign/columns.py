"""Columns of a campaign's tables. Each column is a figure of the cells with a unit."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from shadowtime.shared.messages import AdjustmentScores, PolicyScores, RunTimeScores, WaitForecastScores

Unit = Literal["s", "min", "h", "days", "%", ""]
FACTORS: dict[Unit, float] = {"s": 1, "min": 1 / 60, "h": 1 / 3600, "days": 1 / 86_400, "%": 100, "": 1}

KEYS = {
    *PolicyScores.model_fields,
    "cpu_milliseconds_per_job",
    "wait_bound_milliseconds_per_job",
    *(f"run_time.{name}" for name in {*RunTimeScores.model_fields, "error_share", "pit_distance"} - {"pit"}),
    *(f"adjustment.{name}" for name in AdjustmentScores.model_fields),
    *(f"wait_forecast.{name}" for name in WaitForecastScores.model_fields),
}
FAMILIES = ("calibration.", "wait_bounds.", "slowdown.", "jobs_of_shape.", "guaranteed_to_actual.", "users.")
"""Prefixes of keys whose end depends on the log or the policy."""


def _known(key: str) -> str:
    if key not in KEYS and not key.startswith(FAMILIES):
        there = ", ".join([*sorted(KEYS), *(f"{family}…" for family in FAMILIES)])
        raise ValueError(f"unknown figure; known: {there}")
    return key


class Column(BaseModel):
    """A column: a figure of the scores in a unit. With `of`, it is a share of the same figure in the row called `of`.

    One `*` in the key matches any text. Each matched text has a table row of its own.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[str, AfterValidator(_known), Field(pattern=r"^[^*]*\*?[^*]*$")]
    name: str | None = None
    unit: Unit = ""
    digits: Annotated[int, Field(ge=0, le=6)] = 2
    of: str | None = None

    @property
    def heading(self) -> str:
        """Name of the column."""
        return self.name or self.key.replace("_", " ").replace(".", ", ")

    @property
    def factor(self) -> float:
        """Factor by which a figure of the scores is multiplied."""
        return 100 if self.of is not None else FACTORS[self.unit]

    @property
    def shown_unit(self) -> str:
        """Unit that the heading shows after the name; may be empty."""
        return f"% of {self.of}" if self.of is not None else self.unit

    def matches(self, key: str) -> str | None:
        """Return the text that `*` matches in the key of a figure; None if the key does not match this column.

        >>> column = Column(key="wait_bounds.*.plain.coverage")
        >>> column.matches("wait_bounds.all.plain.coverage"), column.matches("mean_wait")
        ('all', None)
        >>> Column(key="mean_wait").matches("mean_wait")
        ''
        """
        before, star, after = self.key.partition("*")
        match = re.fullmatch(f"{re.escape(before)}{'(.+)' if star else '()'}{re.escape(after)}", key)
        return None if match is None else match[1]


DEFAULT_COLUMNS = (
    Column(key="mean_wait", name="mean wait", unit="min", digits=1),
    Column(key="mean_bounded_slowdown", name="slowdown"),
    Column(key="max_wait", name="longest wait", unit="h", digits=1),
)
