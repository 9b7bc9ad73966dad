"""How much one pass, or one forecast, may do: counted in steps of its loops and never timed, so alike on any machine.

A step is about a nanosecond. What the logs of the archive need, and what happens beyond, is in `docs/cost.md`.
"""

MAX_STARTS = 10_000
"""Jobs that one pass starts at most; the next pass goes on. Slurm's main scheduler looks at 100 unless told
otherwise (`default_queue_depth`), its backfilling at 500 (`bf_max_job_test`)."""

WEIGHED = 10_000
"""Candidates that one pass weighs at most, each counted anew in each walk: a decision tells of all of them."""

WALKED = 200_000_000
"""Steps of all walks of one pass, and of what they are made from."""

EACH_RUNNING = 64
"""Work that each running job stands for whenever one more has started, in steps of a walk: its shadow is found anew."""

PLANNED = 200_000_000
"""Steps over availability profiles in which one pass looks for places, and as many in which it improves on them."""

AHEAD = 200_000_000
"""Steps of one forecast."""

FUTURES = 2_000_000_000
"""Steps of all futures of one sampled forecast, in equal parts."""

PERIODS = 10_000
"""Periods of Slurm's priorities between two events of which each is calculated by itself."""
