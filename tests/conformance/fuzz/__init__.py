"""Streams that are almost right, against the worker of each stage and all of them in a row."""
