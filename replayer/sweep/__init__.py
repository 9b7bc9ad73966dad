"""Sweeps: grids of policies, machine sizes and loads on one log, and the best under constraints."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.sweep.grid_sweep import Constraint, Grid, campaign_of, print_sweep
    from shadowtime.replayer.sweep.ranges import specs_of, values_of

__getattr__ = lazy_exports(__name__)
