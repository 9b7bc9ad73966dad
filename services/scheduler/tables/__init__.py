"""The state of one pool as columns: waiting and running jobs, free resources."""

from shadowtime.services.scheduler.tables.enqueue import enqueue, forget, revised
from shadowtime.services.scheduler.tables.expected_end import (
    CORRECTIONS,
    RunningJobs,
    RunningTable,
    WaitingTable,
    expected_ends,
)
from shadowtime.services.scheduler.tables.histograms import UNKNOWN, Histograms
from shadowtime.services.scheduler.tables.job_table import (
    ADJUSTED,
    NEVER,
    PREDICTED,
    REQUESTED,
    SHORTENED,
    SIZE,
    SLOT,
    START,
    JobTable,
    PlannedTimes,
    Queue,
    Running,
    columns_of,
)
from shadowtime.services.scheduler.tables.resources import fits_each, fitting_together, front
