"""Turns an archived or generated trace into the stream of job events, and runs the jobs on a machine."""
