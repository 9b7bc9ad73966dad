"""Faults on real servers: a clear error, a dead letter, or going on by itself."""
