"""An order of waiting jobs that plugs into Shadowtime."""

from shadowtime.services.scheduler.orders import steady
from shadowtime.services.scheduler.waiting import Waiting
from shadowtime.shared.arrays import Floats


@steady
def tallest(jobs: Waiting) -> Floats:
    """Largest size first."""
    return -jobs.processors.astype(float)
