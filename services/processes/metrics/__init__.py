"""The writer of metrics: samples to VictoriaMetrics, decisions to Grafana Live."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.services.processes.metrics.run import run_metrics, session

__getattr__ = lazy_exports(__name__)
