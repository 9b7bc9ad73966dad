"""The data flow: one line per stage, in the order in which an event passes them."""

from shadowtime.services.runtime_distribution.handler import RuntimeDistribution
from shadowtime.services.scheduler.explaining import Explaining, Following
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scoreboard.handler import Scoreboard
from shadowtime.services.wait_bound.handler import WaitBounds
from shadowtime.services.walltime_adjustment.handler import WalltimeAdjustments
from shadowtime.shared import topics
from shadowtime.shared.events import ClusterOpened
from shadowtime.shared.explanation import Explains
from shadowtime.shared.stage import Stage, chained

STAGES = chained(
    Stage("runtime_distribution", topics.JOBS, topics.RUNTIME_DISTRIBUTIONS, RuntimeDistribution, ("run_time",)),
    Stage(
        "walltime_adjustment",
        topics.RUNTIME_DISTRIBUTIONS,
        topics.WALLTIME_ADJUSTMENTS,
        WalltimeAdjustments,
        ("adjustment",),
    ),
    Stage(
        "wait_bound",
        topics.WALLTIME_ADJUSTMENTS,
        topics.WAIT_BOUNDS,
        WaitBounds,
        ("wait_bounds", "coverage", "change_points"),
    ),
    Stage("scheduler", topics.WAIT_BOUNDS, topics.DECISIONS, Scheduler, ("forecast", "Decided")),
    Stage("scoreboard", topics.DECISIONS, topics.SCORES, Scoreboard, ("scores", "samples", "drifts")),
)

EXPLAINED = Stage("scheduler", topics.WAIT_BOUNDS, topics.DECISIONS, Explaining)
"""Stage `scheduler` for who reads its state and asks why a job waits; it is driven by none."""


def following(opened: ClusterOpened) -> Explains:
    """Return what tells the same of a run from the envelopes that the scheduler writes, or the scoreboard."""
    return Following(opened)
