"""Adjusted requests: the time that the owner should have requested, by the owner's record."""

from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, WalltimeAdjustments
