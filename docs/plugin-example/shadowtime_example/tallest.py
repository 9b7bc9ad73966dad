"""An order of waiting jobs that plugs into Shadowtime."""

from shadowtime.services.scheduler import WaitingColumns, steady
from shadowtime.shared.kernels import Floats


@steady
def tallest(jobs: WaitingColumns) -> Floats:
    """Largest size first."""
    return -jobs.processors.astype(float)
