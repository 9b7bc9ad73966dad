"""The Grafana dashboards, one module each, with the questions that their panels answer."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
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

__getattr__ = lazy_exports(__name__)
