"""Columns of a campaign's tables. Each column is a figure of the cells with a unit."""

import re
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from shadowtime.shared.messages import (
    AdjustmentScores,
    PolicyScores,
    PredictionWorkloadScores,
    RunTimeScores,
    WaitForecastScores,
    WorkloadErrors,
)
from shadowtime.shared.quoting import among

Unit = Literal["s", "min", "h", "days", "%", ""]
FACTORS: dict[Unit, float] = {"s": 1, "min": 1 / 60, "h": 1 / 3600, "days": 1 / 86_400, "%": 100, "": 1}

KEYS = {
    *PolicyScores.model_fields,
    "tail_mean_wait",
    "cpu_milliseconds_per_job",
    "wait_bound_milliseconds_per_job",
    *(f"run_time.{name}" for name in {*RunTimeScores.model_fields, "error_share", "pit_distance"} - {"pit"}),
    *(f"adjustment.{name}" for name in AdjustmentScores.model_fields),
    *(f"wait_forecast.{name}" for name in WaitForecastScores.model_fields),
    *(
        f"prediction_workload.{workload}.{name}"
        for workload in PredictionWorkloadScores.model_fields
        for name in WorkloadErrors.model_fields
    ),
}
FAMILIES = (
    "log.",
    "calibration.",
    "wait_bounds.",
    "slowdown.",
    "jobs_of_shape.",
    "guaranteed_to_actual.",
    "users.",
    "workload.",
)
"""Prefixes of keys whose end depends on the log or the policy."""


BY_EVENTS = ("log.", "slowdown.", "jobs_of_shape.", "guaranteed_to_actual.", "workload.")
"""Prefixes of keys whose figures a cell on the compiled machine does not have."""


def _known(key: str) -> str:
    if key not in KEYS and not key.startswith(FAMILIES):
        raise ValueError(f"unknown figure{among(key, [*sorted(KEYS), *(f'{family}…' for family in FAMILIES)])}")
    return key


class Column(BaseModel):
    """A column: a figure of the scores in a unit, rounded to `digits` decimals.

    With `of`, it is a share of the same figure in the row called `of`, in per cent. With `change_from`, it is the
    difference from the figure of that row, in per cent of it and with its sign.

    One `*` in the key matches any text. The table has one row for each matched text.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    key: Annotated[str, AfterValidator(_known), Field(pattern=r"^[^*]*\*?[^*]*$")]
    name: str | None = None
    unit: Unit = ""
    digits: Annotated[int, Field(ge=0, le=6)] = 2
    of: str | None = None
    change_from: str | None = None

    @model_validator(mode="after")
    def _has_one_base(self) -> "Column":
        if self.of is not None and self.change_from is not None:
            raise ValueError("of and change_from exclude each other; give one of them")
        return self

    @property
    def base(self) -> str | None:
        """Row whose figure is 100 %; None if the column is not relative to a row."""
        return self.of if self.change_from is None else self.change_from

    @property
    def heading(self) -> str:
        """Name of the column."""
        return self.name or self.key.replace("_", " ").replace(".", ", ")

    @property
    def factor(self) -> float:
        """Factor by which a figure of the scores is multiplied."""
        return 100 if self.base is not None else FACTORS[self.unit]

    @property
    def shown_unit(self) -> str:
        """Unit that the heading shows after the name; may be empty."""
        if self.change_from is not None:
            return f"% from {self.change_from}"
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
