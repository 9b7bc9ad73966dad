"""Orders of the queue: their names, settings and keys."""

from shadowtime.services.scheduler.ordering.bypassed_work import BypassedWork
from shadowtime.services.scheduler.ordering.columns import WaitingColumns
from shadowtime.services.scheduler.ordering.compiled import compiled, sort_keys
from shadowtime.services.scheduler.ordering.distribution_measures import RunTimeMeasures, TimesBy
from shadowtime.services.scheduler.ordering.ordering import InOrder, Ordering
from shadowtime.services.scheduler.ordering.orders import ORDERS, Key, steady
from shadowtime.services.scheduler.ordering.settings import (
    AS_QUEUE,
    BY_PRIORITY,
    CANDIDATES,
    QUEUE,
    CandidatesName,
    OrderedPlanSettings,
    OrderedSettings,
    OrderName,
    Weight,
    known_order,
    require_forecast,
)
