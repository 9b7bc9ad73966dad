"""Forecasts of the starts of waiting jobs: the queue is run ahead, once or through sampled futures."""

from shadowtime.services.scheduler.forecasting.by_reservation import Placed
from shadowtime.services.scheduler.forecasting.forecaster import (
    Forecaster,
    Futures,
    SchedulerState,
    as_submitted,
    starts_within,
    why_none,
)
from shadowtime.services.scheduler.forecasting.pass_by_pass import PassByPass, Reserving, easy_ahead
from shadowtime.services.scheduler.forecasting.sampled import SampledFutures, easy_futures, forecaster_of
