"""Accounting files of clusters, read as logs."""
