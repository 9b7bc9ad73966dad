"""The topics, one per arrow of the data flow; each carries the whole log of every run, keyed by run."""

JOBS = "jobs"
RUNTIME_DISTRIBUTIONS = "runtime-distributions"
WALLTIME_ADJUSTMENTS = "walltime-adjustments"
WAIT_BOUNDS = "wait-bounds"
DECISIONS = "decisions"
SCORES = "scores"
DEAD_LETTERS = "dead-letters"
"""Messages that no stage could use, with their raw bytes. The headers have their origin and the reason."""

WRITTEN_BY = {
    "runtime_distribution": RUNTIME_DISTRIBUTIONS,
    "walltime_adjustment": WALLTIME_ADJUSTMENTS,
    "wait_bound": WAIT_BOUNDS,
    "scheduler": DECISIONS,
    "scoreboard": SCORES,
}
"""Topic that each stage writes, in the order of the stages. A stage reads the topic of the one before it."""

FLOW = (JOBS, *WRITTEN_BY.values())
