"""Adjusted requests: the times that users should have requested, by the run times of similar ended jobs."""

from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, WalltimeAdjustments
