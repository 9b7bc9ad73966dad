"""Limits on the work of one pass or one forecast, counted in steps of its loops.

Work is never timed, so results are the same on any machine. A step takes about a nanosecond. `docs/cost.md` has the
work that the logs of the archive need, and the behaviour beyond a limit.
"""

MAX_STARTS = 10_000
"""Most jobs that one pass starts. The next pass continues. By default, Slurm's main scheduler looks at 100 jobs
(`default_queue_depth`), its backfilling at 500 (`bf_max_job_test`)."""

WEIGHED = 10_000
"""Most evaluations of candidates in one pass. A candidate counts once for each walk that evaluates it. The limit also
bounds the decision, which reports all evaluations."""

WALKED = 200_000_000
"""Most steps of one probabilistic pass: all its walks over possible ends of running jobs, and their preparation."""

EACH_RUNNING = 64
"""Steps counted for each running job, at first and after each start of a probabilistic pass, for the shadow time."""

PLANNED = 200_000_000
"""Most steps over the availability profile in which one pass plans jobs. As many steps again may move reservations to
earlier times, and as many again may use the processors that the plan leaves idle."""

AHEAD = 200_000_000
"""Most steps of one forecast."""

FUTURES = 200_000_000
"""Most steps of one sampled forecast. Each of its futures has an equal share."""

PERIODS = 10_000
"""Most calculation periods of Slurm's priorities that are handled one by one between two events. All later periods
count as one."""

CHARGES = 50_000_000
"""Most additions to the usage of users and accounts in these periods, counted as `PERIODS` are. A thousand running jobs
in accounts below the root need three thousand in a period."""

MAX_OPEN = 20_000
"""Most jobs that have not ended on all simulated machines of `tuned`; beyond these, new jobs are left out on all."""

MACHINE_STEPS = 20_000_000
"""Most steps of all these machines at one scheduling point; the next point continues. A step takes some nanoseconds."""
