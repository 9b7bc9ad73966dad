"""Grids of replays, carried out on all cores or on a cluster, and their tables."""
