"""Shadows: other policies on the stream of a cluster, each with a machine of its own."""
