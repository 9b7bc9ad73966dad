"""What would this request be, had its owner asked as the record says."""

from shadowtime.services.walltime_adjustment.handler import ADJUSTERS, WalltimeAdjustments
