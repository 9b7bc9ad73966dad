"""Settings of policies that put waiting jobs in order."""

import math
from collections.abc import Sequence
from typing import Annotated, ClassVar

from pydantic import AfterValidator, Field, ValidationInfo, field_validator

from shadowtime.services.scheduler.ordering.distribution_measures import TimesBy
from shadowtime.services.scheduler.ordering.orders import ORDERS
from shadowtime.services.scheduler.settings import FORECAST, Forecast, PlanSettings, PolicySettings, unless_default
from shadowtime.shared.quoting import among

AS_QUEUE = "queue"
"""Value of the key `candidates` that stands for the order of the queue."""


def known_order(name: str) -> str:
    """Return the name of an order, or raise `ValueError` if there is no such order.

    >>> known_order("srf")
    'srf'
    """
    if name not in ORDERS:
        raise ValueError(f"unknown order{among(name, ORDERS.names())}")
    _ = ORDERS[name]  # loads the order of a plug-in, which raises if it cannot be used
    return name


OrderName = Annotated[str, AfterValidator(known_order)]
CandidatesName = Annotated[str, AfterValidator(lambda name: name if name == AS_QUEUE else known_order(name))]

AS_SUBMITTED = ("fcfs", "BF")
BY_PRIORITY = (*AS_SUBMITTED, "priority")
"""Orders of the queue by arrival or by the site's priority. They do not change as time passes."""

QUEUE = "order of the queue; the first job that does not fit is the head, which backfilling must not delay"
CANDIDATES = "order in which the jobs behind the head are tried; queue: the order of the queue"

Weight = Annotated[
    float,
    Field(
        ge=0,
        le=1e6,
        description="weight of the wait in seconds; the weighted wait is subtracted from the sort key",
        exclude_if=lambda weight: not weight,
    ),
]
"""Weight of the wait. To stay short, a SPEC omits a weight of 0."""


class OrderedSettings(PolicySettings):
    """Settings of the order in which a policy serves waiting jobs: docs/ordering.md."""

    queue: OrderName = unless_default("fcfs", QUEUE)
    candidates: CandidatesName = unless_default(AS_QUEUE, CANDIDATES)
    by: TimesBy = unless_default(
        "plan",
        "run times that put jobs in order: those that the policy plans with, requests, predicted points, or means of "
        "the predicted distributions",
    )
    threshold: Annotated[float, Field(ge=0)] = unless_default(
        math.inf,
        "seconds of waiting after which a job goes first, in order of arrival",
    )


def require_forecast(forecast: Forecast, orders: Sequence[str], info: ValidationInfo) -> None:
    """Check that waits are forecast only if the order of the queue is one of `orders`.

    Raise `ValueError` if waits are forecast with another order.
    """
    queue = info.data.get("queue", "fcfs")
    if forecast and queue not in orders:
        known = "queue=fcfs" if orders == AS_SUBMITTED else "queue=fcfs or queue=priority"
        raise ValueError(f"a forecast needs {known}; found queue={queue}")


class OrderedPlanSettings(PlanSettings, OrderedSettings):
    """Settings of a policy that decides by run times and has a configurable order."""

    FORECAST_ORDERS: ClassVar[tuple[str, ...]] = AS_SUBMITTED
    """Orders of the queue in which the policy can be run ahead."""

    forecast: Forecast = unless_default(False, FORECAST.format(what="the policy"))  # type: ignore[assignment]

    @field_validator("forecast")
    @classmethod
    def _in_order(cls, forecast: Forecast, info: ValidationInfo) -> Forecast:
        require_forecast(forecast, cls.FORECAST_ORDERS, info)
        return forecast

    @property
    def can_forecast(self) -> bool:
        """Whether the policy can be run ahead with its order of the queue."""
        return self.queue in self.FORECAST_ORDERS
