"""Limits on the work of one pass or one forecast, counted in steps of its loops.

Work is never timed, so results are the same on any machine. A step takes about a nanosecond. `docs/cost.md` states how
much work the logs of the archive need, and what happens beyond a limit.
"""

MAX_STARTS = 10_000
"""Maximum number of jobs that one pass starts. The next pass continues. By default, Slurm's main scheduler examines 100
jobs (`default_queue_depth`), its backfilling 500 (`bf_max_job_test`)."""

WEIGHED = 10_000
"""Maximum number of evaluations of candidates in one pass. A candidate counts once for each walk that evaluates it. The
limit also bounds the decision, which reports all evaluations."""

WALKED = 200_000_000
"""Maximum steps of one probabilistic pass. They include the preparation of the walks over possible ends of running
jobs."""

EACH_RUNNING = 64
"""Steps counted for each running job when a probabilistic pass finds the shadow time: at first, and after each
start."""

PLANNED = 200_000_000
"""Maximum steps over the availability profile in which one pass plans jobs. The same limit applies again to moves of
reservations to earlier times, and again to the use of processors that the plan leaves idle."""

AHEAD = 200_000_000
"""Maximum steps of one forecast."""

MAX_AHEAD = 1_000
"""Maximum number of waiting jobs of a pool at a forecast. If more jobs wait, there are no forecasts. A forecast behind
1,000 jobs takes about 0.02 s, and its cost grows with the square of this number. HPC2N had up to 2,486 waiting jobs,
the next log of the archive 580."""

FUTURES = 200_000_000
"""Maximum steps of one sampled forecast. Each of its futures gets an equal share."""

PERIODS = 10_000
"""Maximum number of calculation periods of Slurm's priorities that are handled one by one between two events. All later
periods are handled as one."""

CHARGES = 50_000_000
"""Maximum number of additions to the usage of users and accounts in these periods. A period takes one addition for each
user and each account. Each running job adds one for each account from its own up to the root."""

MAX_OPEN = 20_000
"""Maximum number of jobs in the simulated machines of `tuned`. A job counts until it has ended on every machine. Beyond
this number, all machines leave new jobs out."""

MACHINE_STEPS = 20_000_000
"""Maximum steps of all simulated machines together at one scheduling point. The next point continues the work. A step
takes some nanoseconds."""
