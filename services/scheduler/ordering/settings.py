"""Settings of policies that put waiting jobs in order."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from shadowtime.services.scheduler.ordering.distribution_measures import TimesBy
from shadowtime.services.scheduler.ordering.orders import ORDERS
from shadowtime.services.scheduler.settings import Forecast, PlanSettings, PolicySettings, unless_default

AS_QUEUE = "queue"
"""In the place of an order of candidates: that of the queue."""


def known_order(name: str) -> str:
    """Return the name of an order, having seen that there is one.

    >>> known_order("srf")
    'srf'
    """
    if name not in ORDERS:
        raise ValueError(f"unknown order; known: {', '.join(ORDERS.names())}")
    _ = ORDERS[name]  # of a plug-in: that it can be used
    return name


OrderName = Annotated[str, AfterValidator(known_order)]
CandidatesName = Annotated[str, AfterValidator(lambda name: name if name == AS_QUEUE else known_order(name))]

AS_SUBMITTED = ("fcfs", "BF")
BY_PRIORITY = (*AS_SUBMITTED, "priority")
"""Orders of the queue that do not change as time passes."""

QUEUE = "order of the queue: who is served first, and whom backfilling must not delay"
CANDIDATES = "order in which the jobs behind the first that does not fit are tried; queue: as the queue"

Weight = Annotated[
    float,
    Field(
        ge=0,
        le=1e6,
        description="of the delay in seconds, which counts against what jobs are sorted by",
        exclude_if=lambda weight: not weight,
    ),
]
"""A SPEC leaves it out where it is not used, so that it stays short."""


class OrderedSettings(PolicySettings):
    """In which order a policy serves waiting jobs: docs/ordering.md."""

    queue: OrderName = unless_default("fcfs", QUEUE)
    candidates: CandidatesName = unless_default(AS_QUEUE, CANDIDATES)
    by: TimesBy = unless_default(
        "plan",
        "run times that put jobs in order: those that the policy plans with, requests, predicted points, or means of "
        "the predicted distributions",
    )
    threshold: Annotated[float, Field(ge=0)] = unless_default(
        math.inf,
        "seconds of waiting after which a job of the queue goes before all that have waited less, in order of arrival",
    )


def require_foretold(forecast: Forecast, orders: Sequence[str], info: ValidationInfo) -> None:
    """See that waits are forecast only where the queue is in one of some orders.

    Raises
    ------
    ValueError
        If it is not.
    """
    queue = info.data.get("queue", "fcfs")
    if forecast and queue not in orders:
        known = "order of arrival" if orders == AS_SUBMITTED else "order of arrival or of priority"
        raise ValueError(f"waits are forecast where the queue is in {known}, and this has queue={queue}")


class OrderedPlanSettings(PlanSettings, OrderedSettings):
    """Settings of a policy that decides by run times, in an order that can be chosen."""

    FORETOLD: ClassVar[tuple[str, ...]] = AS_SUBMITTED
    """Orders of the queue in which it can be run ahead."""
    SAMPLED: ClassVar[bool] = True

    @field_validator("forecast")
    @classmethod
    def _in_order(cls, forecast: Forecast, info: ValidationInfo) -> Forecast:
        require_foretold(forecast, cls.FORETOLD, info)
        return forecast

    @property
    def foretold(self) -> bool:
        """Whether the queue is in an order in which it can be run ahead."""
        return self.queue in self.FORETOLD
