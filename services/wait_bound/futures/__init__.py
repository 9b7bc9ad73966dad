"""Bounds by simulation: the queue run through possible futures, then calibrated."""

from shadowtime.services.wait_bound.futures.bounder import FuturesBound
