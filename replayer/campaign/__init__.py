"""Campaigns: grids of replays, run on all cores or on a cluster, and their result tables."""
