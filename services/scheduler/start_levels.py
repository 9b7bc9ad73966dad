"""Which quantiles of a wait are told."""

LEVELS = (0.025, 0.05, 0.1, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.9, 0.95, 0.975)
"""Probabilities that a sampled forecast tells of: the ends of intervals of 50, 60, 80, 90 and 95 %, and tenths."""

Within = tuple[tuple[float, int], ...]
"""Pairs of a probability and the seconds within which a job has started with it, both rising; none: no telling."""
