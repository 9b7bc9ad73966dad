"""Which waiting job may start now: one pass per scheduling point."""

from shadowtime.services.scheduler.explain import Explaining, Following
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.ordering import ORDERS
from shadowtime.services.scheduler.policy import Output, Policy
from shadowtime.services.scheduler.pool import PoolScheduler
from shadowtime.services.scheduler.probabilistic import delay_bound, delay_probability
from shadowtime.services.scheduler.registry import BEST, POLICIES
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.slurm import spelled
from shadowtime.services.scheduler.tables import NEVER, Histograms, PlannedTimes, Queue, Running

__all__ = [
    "BEST",
    "NEVER",
    "ORDERS",
    "POLICIES",
    "Explaining",
    "Following",
    "Histograms",
    "Output",
    "PlannedTimes",
    "Policy",
    "PolicySettings",
    "PoolScheduler",
    "Queue",
    "Running",
    "Scheduler",
    "delay_bound",
    "delay_probability",
    "spelled",
]
