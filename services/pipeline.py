"""The data flow: one line per stage, in the order in which an event passes them."""

from services.runtime_distribution.handler import RuntimeDistribution
from services.scheduler.handler import Scheduler
from services.scoreboard.handler import Scoreboard
from services.wait_bound.handler import WaitBounds
from services.walltime_adjustment.handler import WalltimeAdjustments
from shared import topics
from shared.stage import Stage

STAGES = (
    Stage("runtime_distribution", topics.JOBS, topics.RUNTIME_DISTRIBUTIONS, RuntimeDistribution),
    Stage("walltime_adjustment", topics.RUNTIME_DISTRIBUTIONS, topics.WALLTIME_ADJUSTMENTS, WalltimeAdjustments),
    Stage("wait_bound", topics.WALLTIME_ADJUSTMENTS, topics.WAIT_BOUNDS, WaitBounds),
    Stage("scheduler", topics.WAIT_BOUNDS, topics.DECISIONS, Scheduler),
    Stage("scoreboard", topics.DECISIONS, topics.SCORES, Scoreboard),
)
