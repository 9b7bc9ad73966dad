"""Limits on the work of one pass or one forecast, counted in steps of its loops.

Work is never timed, so results are the same on any machine. A step takes about a nanosecond. `docs/cost.md` has the
work that the logs of the archive need, and the behaviour beyond a limit.
"""

MAX_STARTS = 10_000
"""Most jobs that one pass starts. The next pass continues. By default, Slurm's main scheduler looks at 100 jobs
(`default_queue_depth`), its backfilling at 500 (`bf_max_job_test`)."""

WEIGHED = 10_000
"""Most candidates that one pass weighs. A candidate counts once for each walk: the decision reports all results."""

WALKED = 200_000_000
"""Most steps of one pass: of all its walks, and of the computation of their inputs."""

EACH_RUNNING = 64
"""Steps that each running job counts for after each start of a pass, since the shadow time is then found anew."""

PLANNED = 200_000_000
"""Most steps over availability profiles in which one pass looks for places. As many again may improve the places."""

AHEAD = 200_000_000
"""Most steps of one forecast."""

FUTURES = 2_000_000_000
"""Most steps of one sampled forecast. Each of its futures has an equal share."""

PERIODS = 10_000
"""Most periods of Slurm's priorities that are calculated one by one between two events. The rest count as one."""
