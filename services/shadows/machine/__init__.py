"""The simulated machine of a shadow. It gets the arrivals, withdrawals and capacity of the real cluster."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.shadows.machine.machine import PATIENCE, TwinMachine

__getattr__ = lazy_exports(__name__)
