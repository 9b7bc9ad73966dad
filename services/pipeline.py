"""The data flow: one entry per stage, in the order in which an event passes through them."""

from shadowtime.services.runtime_distribution import RuntimeDistribution
from shadowtime.services.scheduler import Scheduler
from shadowtime.services.scoreboard import Scoreboard
from shadowtime.services.wait_bound import WaitBounds
from shadowtime.services.walltime_adjustment import WalltimeAdjustments
from shadowtime.shared.stages import Stage, chained, topics

STAGES = chained(
    Stage(
        "runtime_distribution",
        topics.JOBS,
        topics.RUNTIME_DISTRIBUTIONS,
        RuntimeDistribution,
        ("run_time", "revisions"),
        price=RuntimeDistribution.price,
    ),
    Stage(
        "walltime_adjustment",
        topics.RUNTIME_DISTRIBUTIONS,
        topics.WALLTIME_ADJUSTMENTS,
        WalltimeAdjustments,
        ("adjustment",),
        price=WalltimeAdjustments.price,
    ),
    Stage(
        "wait_bound",
        topics.WALLTIME_ADJUSTMENTS,
        topics.WAIT_BOUNDS,
        WaitBounds,
        ("wait_bounds", "coverage", "change_points", "wait_ranges"),
        price=WaitBounds.price,
    ),
    Stage("scheduler", topics.WAIT_BOUNDS, topics.DECISIONS, Scheduler, ("forecast", "Decided"), price=Scheduler.price),
    Stage("scoreboard", topics.DECISIONS, topics.SCORES, Scoreboard, ("scores", "samples", "drifts")),
)
