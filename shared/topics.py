"""The topics, one per arrow of the data flow; each carries the whole log of every run, keyed by run."""

JOBS = "jobs"
RUNTIME_DISTRIBUTIONS = "runtime-distributions"
WALLTIME_ADJUSTMENTS = "walltime-adjustments"
WAIT_BOUNDS = "wait-bounds"
DECISIONS = "decisions"
SCORES = "scores"
DEAD_LETTERS = "dead-letters"
"""Messages that no stage could use, with their raw bytes; where they came from and why is in the headers."""

FLOW = (JOBS, RUNTIME_DISTRIBUTIONS, WALLTIME_ADJUSTMENTS, WAIT_BOUNDS, DECISIONS, SCORES)
