"""A worker is healthy once it has begun."""

from typing import Any, cast

from shadowtime.services.pipeline import STAGES
from shadowtime.shared.streaming.settings import Settings
from shadowtime.shared.streaming.worker.context import WorkerMetrics
from shadowtime.shared.streaming.worker.health import WorkerHealth
from shadowtime.shared.streaming.worker.loop import WorkerLoop


def test_a_worker_that_has_not_begun_is_starting_and_not_healthy() -> None:
    stage = STAGES[0]
    loop = WorkerLoop(cast("Any", None), stage, Settings(), WorkerMetrics(stage.name))
    healthy, told = WorkerHealth(loop).report()
    assert (healthy, told["healthy"], told["state"]) == (False, False, "starting")
