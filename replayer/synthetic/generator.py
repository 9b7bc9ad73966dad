"""Generated logs: jobs of the model in `synthetic.lublin`, submitted by the recurring users of `synthetic.users`."""

import math

import numpy as np
from numpy.random import PCG64, Generator

from shadowtime.replayer.logs import FIELDS
from shadowtime.replayer.options import DEFAULT_LOAD
from shadowtime.replayer.synthetic.lublin import MAX_LOG_RUN_TIME, draw_arrivals, draw_run_times, draw_sizes
from shadowtime.replayer.synthetic.users import draw_jobs, populate, queue_of
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels import Integers

MAX_COUNT = 10_000_000  # of jobs, and of processors
LOADS = (0.01, 100.0)
START = 1_704_067_200  # Monday 1 January 2024, 00:00 UTC: the bucket weights count from midnight


def generate(jobs: int, processors: int, seed: int, load: float = DEFAULT_LOAD) -> tuple[dict[str, str], Integers]:
    """Return the header and the table of a generated trace. The same arguments give the same trace.

    Parameters
    ----------
    jobs, processors : int
        Number of jobs, and size of the machine in processors.
    seed : int
        Seed of all random numbers, from 0 to 2**64 - 1.
    load : float
        Offered load: the work of all jobs (processors times seconds) as a share of the machine's capacity from
        the start of the trace, at midnight, to the last submission. Arrivals are spread to reach this load.

    Returns
    -------
    header : dict of str to str
        Values of the SWF header. `Note` holds the command that generates the trace.
    table : numpy.ndarray
        (jobs, 18) integers as in `replayer.logs.swf.FIELDS`, sorted by submit time. Wait times are unknown (-1)
        because a workload model has no scheduler. The command line adds the waits of EASY.

    Raises
    ------
    SettingsError
        If an argument is out of its range, or the trace would be too long.

    Examples
    --------
    >>> header, table = generate(jobs=1000, processors=64, seed=1, load=0.7)
    >>> header["MaxProcs"], table.shape
    ('64', (1000, 18))
    >>> work = (table[:, FIELDS.index("run_time")] * table[:, FIELDS.index("requested_processors")]).sum()
    >>> f"{work / (64 * table[-1, FIELDS.index('submit_time')]):.4f}"
    '0.7000'

    References
    ----------
    The model is in `synthetic.lublin`. Users, applications and requests are our own addition.
    """
    for name, value, low, high in (
        ("jobs", jobs, 1, MAX_COUNT),
        ("processors", processors, 1, MAX_COUNT),
        ("load", load, *LOADS),
        ("seed", seed, 0, 2**64 - 1),
    ):
        if not low <= value <= high:
            raise SettingsError(f"{name} {value}: expected a value from {low} to {high}")

    population = populate(_stream(seed, 0), jobs)
    application_size = draw_sizes(_stream(seed, 1), len(population.application_user), processors)
    typical_run_time = draw_run_times(_stream(seed, 2), application_size)
    longest = math.exp(MAX_LOG_RUN_TIME)
    run_time, requested_time, status = draw_jobs(_stream(seed, 3), population, typical_run_time, longest)
    size = application_size[population.application]
    span = float(np.dot(run_time.astype(np.float64), size)) / (load * processors)
    if span > MAX_TIME:
        raise SettingsError(
            f"load {load}: the last of {jobs} jobs would come after {span:.0f} s, later than {MAX_TIME} s; raise the "
            "load, or generate fewer jobs"
        )

    known = {
        "job_number": np.arange(1, jobs + 1),
        "submit_time": draw_arrivals(_stream(seed, 4), jobs, span),
        "run_time": run_time,
        "allocated_processors": size,
        "requested_processors": size,
        "requested_time": requested_time,
        "status": status,
        "user_id": population.user + 1,
        "group_id": population.group + 1,
        "executable_number": population.application + 1,
        "queue_number": queue_of(requested_time),
        "partition_number": np.ones(jobs, dtype=np.int64),
    }
    table = np.full((jobs, len(FIELDS)), -1, dtype=np.int64)
    for name, column in known.items():
        table[:, FIELDS.index(name)] = column
    arguments = f"--jobs {jobs} --processors {processors} --seed {seed} --load {float(load)} --waits none"
    header = {
        "Version": "2.2",
        "Computer": f"none: generated for {processors} processors",
        "Conversion": "Shadowtime, after the model of U. Lublin and D. G. Feitelson, JPDC 63(11), 2003",
        "MaxJobs": str(jobs),
        "MaxRecords": str(jobs),
        "Preemption": "No",
        "UnixStartTime": str(START),
        "TimeZoneString": "UTC",
        "MaxNodes": str(processors),
        "MaxProcs": str(processors),
        "MaxQueues": "3",
        "Queues": "1 short (to 1 h), 2 medium (to 12 h), 3 long, by requested time",
        "Note": f"made by shadowtime generate {arguments}",
    }
    return header, table


def _stream(seed: int, purpose: int) -> Generator:
    """Return the random number generator of one purpose. Changes to one purpose do not affect the draws of another."""
    return Generator(PCG64([seed, purpose]))
