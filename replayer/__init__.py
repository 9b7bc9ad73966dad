"""Replay of an archived or generated trace as a stream of job events, on a simulated machine."""
