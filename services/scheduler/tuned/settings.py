"""Settings of `tuned`, and the portfolio of configurations between which it moves."""

import math
from collections.abc import Callable
from itertools import product
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import AfterValidator, Field, model_validator

from shadowtime.services.scheduler.ordering import ORDERS, TimesBy, compiled, known_order
from shadowtime.services.scheduler.policies import GuardedSettings
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.work_limits import MACHINE_STEPS, MAX_OPEN
from shadowtime.shared.bounds import MAX_MEMBERS
from shadowtime.shared.quoting import QUOTED, truncate
from shadowtime.shared.spec import Price

BETWEEN = "+"
HOUR = 3600.0

MOST = 1e9
"""Largest number in a list."""


class PortfolioMember(NamedTuple):
    """A configuration of `guarded`. If not `predicted`, candidates are planned with their requests, as in EASY."""

    name: str
    settings: GuardedSettings
    predicted: bool = True


EASY = PortfolioMember("easy", GuardedSettings(), predicted=False)


def _check_parts(check: Callable[[str], Any]) -> AfterValidator:
    """Return a validator that checks every part of a list."""

    def checked(text: str) -> str:
        for part in text.split(BETWEEN):
            check(part)
        return text

    return AfterValidator(checked)


def _followed(name: str) -> None:
    try:
        compiled(ORDERS[known_order(name)])
    except ValueError as error:
        raise ValueError(f"order {truncate(name, QUOTED)}: {error}") from None


def _number(most: float) -> Callable[[str], None]:
    def check(text: str) -> None:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not 0 <= value <= most:
            raise ValueError(f"expected numbers from 0 to {most:g} with {BETWEEN} between them")

    return check


Numbers = Annotated[str, _check_parts(_number(MOST))]


class TunedSettings(PolicySettings):
    """Settings of `Tuned`: the portfolio, and the criteria of the choice."""

    orders: Annotated[str, _check_parts(_followed)] = Field(
        "unicep+wfp3+exp", description="orders of the queue in the portfolio, with + between them"
    )
    thresholds: Numbers = Field(
        "18000+36000+72000+108000+144000+180000+216000+288000+432000",
        description="values of `threshold` of `guarded` in the portfolio, in seconds",
    )
    overtaken: Numbers = Field(
        "0.35", description="values of `overtaken` of `guarded` in the portfolio, as shares of the threshold"
    )
    patience: Numbers = Field(
        "1.3", description="values of `patience` of `guarded` in the portfolio, as shares of the threshold"
    )
    taus: Annotated[str, _check_parts(_number(0.99))] = Field(
        "0", description="values of `tau` of `guarded` in the portfolio"
    )
    by: TimesBy = Field("plan", description="run times that put jobs in order, as in `guarded`")
    objective: Literal["slowdown", "wait", "weighted"] = Field(
        "slowdown",
        description="objective to minimise: mean bounded slowdown, mean wait, or the geometric mean of both",
    )
    tail: float = Field(1.0, ge=0, le=100, description="weight of the longest waits, added to the objective")
    longest: float = Field(1.25, gt=0, le=1e6, description="longest wait without penalty, as a share of EASY's")
    user: float = Field(3.0, gt=0, le=1e6, description="mean wait of a user without penalty, as a share of EASY's")
    every: int = Field(86_400, ge=1, le=10**9, description="seconds of the log between choices")
    least: int = Field(300, ge=1, le=10**9, description="jobs that have ended on all machines before the first choice")
    perturbation: float = Field(
        0.01,
        ge=1e-6,
        le=10,
        description="mean of the random numbers that are added to the losses of the members, drawn once for the run",
    )

    @model_validator(mode="after")
    def _few_and_different(self) -> "TunedSettings":
        count = 1 + math.prod(len(text.split(BETWEEN)) for text in self._lists())
        if count > MAX_MEMBERS:
            raise ValueError(
                f"the portfolio has {count:,} configurations; at most {MAX_MEMBERS} are allowed: shorten a list"
            )
        for key, parts in zip(("orders", "thresholds", "overtaken", "patience", "taus"), self._lists(), strict=True):
            meant = [ORDERS[part] if key == "orders" else float(part) for part in parts.split(BETWEEN)]
            for place, (part, value) in enumerate(zip(parts.split(BETWEEN), meant, strict=True)):
                if value in meant[:place]:
                    raise ValueError(
                        f"{key}={truncate(parts, QUOTED)}: {truncate(part, QUOTED)} equals an earlier value; "
                        "list each value once"
                    )

        return self

    def price(self) -> Price:
        """Return the price of a machine for each member of the portfolio, and of their common log."""
        members = len(self.portfolio())
        machines = Price(memory=120 * members * MAX_OPEN + 60_000_000, steps=10 * MACHINE_STEPS)
        return super().price().plus(machines)

    def _lists(self) -> tuple[str, ...]:
        return self.orders, self.thresholds, self.overtaken, self.patience, self.taus

    def portfolio(self) -> list[PortfolioMember]:
        """Return the members: EASY on requests, and every combination of the settings that are lists.

        >>> [member.name for member in TunedSettings(orders="spf", thresholds="36000+72000").portfolio()]
        ['easy', 'spf 10 h', 'spf 20 h']
        """
        parts = [text.split(BETWEEN) for text in self._lists()]
        several = [len(part) > 1 for part in parts]
        members = [EASY]
        for order, threshold, overtaken, patience, tau in product(*parts):
            seconds = float(threshold)
            settings = GuardedSettings(
                queue=order,
                by=self.by,
                threshold=seconds,
                overtaken=float(overtaken) * seconds,
                patience=float(patience) * seconds,
                tau=float(tau),
            )
            also = [
                f"{name} {float(value):g}"
                for name, value, more in zip(
                    ("overtaken", "patience", "tau"), (overtaken, patience, tau), several[2:], strict=True
                )
                if more
            ]
            members.append(PortfolioMember(", ".join([f"{order} {seconds / HOUR:.8g} h", *also]), settings))

        return members
