"""Bounds by simulation: calibrated waits in simulated futures of the queue."""

from shadowtime.services.wait_bound.futures.bounder import FuturesBound
