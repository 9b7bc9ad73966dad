"""Synthetic workloads: jobs of the Lublin model, with users and requests."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.replayer.synthetic.generator import generate
    from shadowtime.replayer.synthetic.waits import easy_waits
    from shadowtime.replayer.synthetic.waits_by_interval import ENDS, NEAR, interval_waits, recovered

__getattr__ = lazy_exports(__name__)
