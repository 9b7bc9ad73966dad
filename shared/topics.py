"""The topics, one per arrow of the data flow; each carries the whole log of every run, keyed by run."""

JOBS = "jobs"
RUNTIME_DISTRIBUTIONS = "runtime-distributions"
WALLTIME_ADJUSTMENTS = "walltime-adjustments"
WAIT_BOUNDS = "wait-bounds"
DECISIONS = "decisions"
SCORES = "scores"
