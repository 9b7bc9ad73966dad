"""Bounds from the history of similar waits: groupings, change points, the ensemble."""

from shadowtime.services.wait_bound.groups.bounders import BmbpBounds
from shadowtime.services.wait_bound.groups.clustering import cut
