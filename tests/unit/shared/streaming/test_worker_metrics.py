"""What a worker measures can be told from what it is far beyond."""

import pytest
from prometheus_client import generate_latest

from shadowtime.shared.streaming.worker.context import WorkerMetrics


@pytest.mark.parametrize("seconds", [0.0005, 3, 6, 40, 200, 1_000, 7_000])
def test_latencies_of_hours_are_not_those_of_seconds(seconds: float) -> None:
    metrics = WorkerMetrics("scheduler")
    metrics.latency.observe(seconds)
    lines = generate_latest(metrics.registry).decode().splitlines()
    buckets = [line for line in lines if line.startswith("shadowtime_worker_latency_seconds_bucket")]
    edges = [float(line.partition('le="')[2].partition('"')[0]) for line in buckets if line.endswith(" 1.0")]
    assert seconds <= min(edges) < 6 * seconds
