"""Campaigns: a grid of logs, policies, settings and seeds, each cell of it one replay, on all cores or on a cluster."""
