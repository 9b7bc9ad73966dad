"""A stage as a process: fair turns, time limits, commits, quarantine, dead letters."""

from typing import TYPE_CHECKING

from shadowtime.shared.lazy import lazy_exports

if TYPE_CHECKING:
    from shadowtime.shared.streaming.worker.context import WorkerContext, WorkerMetrics
    from shadowtime.shared.streaming.worker.faust_app import run_stage
    from shadowtime.shared.streaming.worker.health import worker_pages
    from shadowtime.shared.streaming.worker.run_cache import memory_limit
    from shadowtime.shared.streaming.worker.stage_worker import StageWorker

__getattr__ = lazy_exports(__name__)
