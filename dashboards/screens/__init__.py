"""The Grafana dashboards, one module each, with the questions that their panels answer."""

from shadowtime.dashboards.screens import (
    drift,
    health,
    home,
    policies,
    runtime_distribution,
    scheduler,
    scoreboard,
    twin,
    wait_bound,
    walltime_adjustment,
)

DASHBOARDS = {
    "home": home.dashboard,
    "policies": policies.dashboard,
    "scoreboard": scoreboard.dashboard,
    "runtime_distribution": runtime_distribution.dashboard,
    "walltime_adjustment": walltime_adjustment.dashboard,
    "wait_bound": wait_bound.dashboard,
    "scheduler": scheduler.dashboard,
    "twin": twin.dashboard,
    "drift": drift.dashboard,
    "health": health.dashboard,
}
"""Dashboards by file name. A stage's dashboard has the stage's name."""
