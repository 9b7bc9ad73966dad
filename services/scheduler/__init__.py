"""Scheduler stage: one pass at each scheduling point decides which waiting jobs start now."""

from shadowtime.services.scheduler.explain import Explaining, Following
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.machine import LogMachine, MachineJobs
from shadowtime.services.scheduler.ordering import ORDERS, WaitingColumns, steady
from shadowtime.services.scheduler.policies import Easy
from shadowtime.services.scheduler.policy import FITS_NOW, Output, Policy, start, start_heads
from shadowtime.services.scheduler.pool_scheduler import PoolScheduler
from shadowtime.services.scheduler.probabilistic import delay_bound, delay_probability
from shadowtime.services.scheduler.registry import AIMS, OBJECTIVES, POLICIES, RECOMMENDED
from shadowtime.services.scheduler.settings import PolicySettings
from shadowtime.services.scheduler.slurm import spelled
from shadowtime.services.scheduler.tables import (
    NEVER,
    Histograms,
    PlannedTimes,
    Queue,
    Running,
    fits_each,
    fitting_together,
)
from shadowtime.services.scheduler.tuned import log_machine
from shadowtime.services.scheduler.work_limits import MAX_STARTS
