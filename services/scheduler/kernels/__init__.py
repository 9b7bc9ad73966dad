"""Compiled passes over the queue and the machine, shared by the policies."""

from shadowtime.services.scheduler.kernels.conservative_plan import (
    COLUMNS,
    FIRST,
    NUMBER,
    SHAPE,
    STARTS,
    SUBMIT,
    UNPLANNED,
    PlannedStarts,
    carried,
    plan,
    reserve_pass,
    settled,
)
from shadowtime.services.scheduler.kernels.guarded import (
    BEFORE_ELDEST,
    FITS,
    Guards,
    HeldResources,
    JobArrays,
    Pass,
    guarded_pass,
)
from shadowtime.services.scheduler.kernels.profile import EACH_STEP, FOREVER, begin, earliest, has_room_at, take
from shadowtime.services.scheduler.kernels.release_walk import UNBOUNDED, Walk, by_time, walk
from shadowtime.services.scheduler.kernels.slurm import (
    BackfillCandidate,
    Bounds,
    Outlook,
    backfill_pass,
    charge_periods,
    main_pass,
)
from shadowtime.services.scheduler.kernels.terminations import (
    Distributions,
    RunningEnds,
    condition,
    ends_of,
    refined_edges,
    terminations,
)
