"""An order of waiting jobs that plugs into Shadowtime."""

from shadowtime.services.scheduler.ordering.columns import Waiting
from shadowtime.services.scheduler.ordering.orders import steady
from shadowtime.shared.kernels.arrays import Floats


@steady
def tallest(jobs: Waiting) -> Floats:
    """Largest size first."""
    return -jobs.processors.astype(float)
