"""How long will this job wait at most: a bound with a stated confidence."""

from shadowtime.services.wait_bound.binomial import upper_rank
from shadowtime.services.wait_bound.handler import BOUNDERS, WaitBounds

__all__ = [
    "BOUNDERS",
    "WaitBounds",
    "upper_rank",
]
