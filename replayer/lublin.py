"""Generated traces: the workload model of Lublin and Feitelson, with users who repeat themselves.

The model says how large jobs are, how long they run and when they come; `replayer.population` adds who
submits them and what they request. The constants are those of the model that does not tell batch from
interactive jobs.

References
----------
docs/algorithms.md#generated-traces (Lublin 2003).
"""

import math
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer
from numpy.random import PCG64, Generator
from numpy.typing import NDArray
from scipy.special import gammainc

from shadowtime.replayer.population import draw_jobs, populate, queue_of
from shadowtime.replayer.swf_text import FIELDS, write_swf
from shadowtime.replayer.waits import easy_waits
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.command_line import application, run_app
from shadowtime.shared.errors import SettingsError

SERIAL_SHARE = 0.244
POWER_OF_TWO_SHARE = 0.576
MIN_LOG_SIZE = 0.8
MIDDLE_BELOW_HIGHEST = 2.5
LOWER_STAGE_SHARE = 0.86

RUN_TIME_GAMMAS = ((4.2, 0.94), (312.0, 0.03))
SHORT_SHARE_SLOPE, SHORT_SHARE_OF_NONE = -0.0054, 0.78
MAX_LOG_RUN_TIME = 12.0

ARRIVAL_GAMMA = (10.2303 * 1.0225, 0.4871)
MAX_LOG_ARRIVAL = 13.0
DAILY_CYCLE_GAMMA = (8.1737, 3.9631)
BUCKETS, BUCKET_SECONDS = 48, 1800
DAY_STARTS_AT_BUCKET = 11

DEFAULT_LOAD = 0.6
MAX_COUNT = 10_000_000  # jobs or processors
LOADS = (0.01, 100.0)
START = 1_704_067_200  # Monday 1 January 2024, 00:00 UTC: the bucket weights count from midnight


def draw_sizes(rng: Generator, count: int, processors: int) -> NDArray[np.int64]:
    """Return sizes in processors, shape (count,), of jobs for a machine.

    A job is serial, or of a size whose logarithm is uniform in two stages, mostly rounded to a power of two.

    Examples
    --------
    >>> draw_sizes(Generator(PCG64([1])), 8, 128)
    array([ 2,  5,  1,  3, 16,  4,  6, 16])
    """
    highest = math.log2(processors)
    middle = max(highest - MIDDLE_BELOW_HIGHEST, MIN_LOG_SIZE)
    highest = max(highest, middle)
    kind, stage, place = rng.random((3, count))
    lower = stage <= LOWER_STAGE_SHARE
    low, high = np.where(lower, MIN_LOG_SIZE, middle), np.where(lower, middle, highest)
    log_size = low + (high - low) * place
    rounded = np.minimum(np.floor(log_size + 0.5), processors.bit_length() - 1)
    log_size = np.where(kind <= SERIAL_SHARE + POWER_OF_TWO_SHARE, rounded, log_size)
    log_size[kind <= SERIAL_SHARE] = 0
    sizes: NDArray[np.int64] = np.floor(np.exp2(log_size) + 0.5).astype(np.int64).clip(1, processors)
    return sizes


def draw_run_times(rng: Generator, sizes: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return run times in seconds, at most exp(12), for jobs of given sizes; both of shape (n,).

    The logarithm of the run time is of one of two gamma distributions; the larger the job, the more likely of
    the one of long jobs.

    Examples
    --------
    >>> draw_run_times(Generator(PCG64([1])), np.array([1, 128])).round().tolist()
    [72.0, 13967.0]
    """
    log_run_time = np.full(len(sizes), np.inf)
    short_share = (SHORT_SHARE_SLOPE * sizes + SHORT_SHARE_OF_NONE).clip(0, 1)
    while len(again := np.flatnonzero(log_run_time > MAX_LOG_RUN_TIME)):
        is_short = rng.random(len(again)) <= short_share[again]
        (short_shape, short_scale), (long_shape, long_scale) = RUN_TIME_GAMMAS
        drawn_short = rng.gamma(short_shape, short_scale, size=len(again))
        log_run_time[again] = np.where(is_short, drawn_short, rng.gamma(long_shape, long_scale, size=len(again)))
    run_times: NDArray[np.float64] = np.exp(log_run_time)
    return run_times


def bucket_weights() -> NDArray[np.float64]:
    """Return the relative rate of arrivals in each half hour from midnight on, shape (48,), of mean 1.

    Examples
    --------
    >>> weights = bucket_weights()
    >>> int(weights.argmax()), int(weights.argmin())
    (27, 10)
    """
    shape, scale = DAILY_CYCLE_GAMMA
    half_hours = np.arange(DAY_STARTS_AT_BUCKET, DAY_STARTS_AT_BUCKET + BUCKETS)
    edges = np.append(half_hours - 0.5, half_hours[-1] + 0.5)
    weights: NDArray[np.float64] = np.empty(BUCKETS)
    weights[(half_hours - 1) % BUCKETS] = np.diff(gammainc(shape, edges / scale))
    weights /= weights.mean()
    return weights


def draw_arrivals(rng: Generator, count: int, span: float) -> NDArray[np.int64]:
    """Return `count` times of arrival in seconds from midnight on, the last of them `span`.

    Inter-arrival times are drawn in points; a half hour costs its weight in points, so that the busy hours
    take more arrivals. Scaling the points, not the seconds, leaves the daily cycle alone at any load.

    Examples
    --------
    >>> draw_arrivals(Generator(PCG64([1])), 4, 86_400.0)
    array([36044, 46757, 79388, 86400])
    """
    shape, scale = ARRIVAL_GAMMA
    log_points = np.full(count, np.inf)
    while len(again := np.flatnonzero(log_points > MAX_LOG_ARRIVAL)):
        log_points[again] = rng.gamma(shape, scale, size=len(again))
    points = np.cumsum(np.exp(log_points))

    paid = np.append(0.0, np.cumsum(bucket_weights()))  # points of a day up to each half hour
    seconds = np.arange(BUCKETS + 1) * float(BUCKET_SECONDS)
    day, rest = divmod(span, seconds[-1])
    points *= (day * paid[-1] + np.interp(rest, seconds, paid)) / points[-1]
    days, rests = np.divmod(points, paid[-1])
    arrivals: NDArray[np.float64] = days * seconds[-1] + np.interp(rests, paid, seconds)
    return np.rint(arrivals).astype(np.int64)


def generate(
    jobs: int, processors: int, seed: int, load: float = DEFAULT_LOAD
) -> tuple[dict[str, str], NDArray[np.int64]]:
    """Return the header and the table of a generated trace, the same for the same arguments.

    Parameters
    ----------
    jobs, processors : int
        Number of jobs, and size of the machine that they are for.
    seed : int
        Not negative.
    load : float
        Offered load: the work of all jobs (processors times seconds) as a share of what the machine can do
        from the midnight at which the trace starts to the last submission. Arrivals are spread to meet it.

    Returns
    -------
    header : dict of str to str
        Values of the SWF header; `Note` has the command that makes the trace.
    table : numpy.ndarray
        (jobs, 18) integers as in `replayer.swf.FIELDS`, sorted by submit time. Wait times are unknown (-1):
        a model of the workload does not know the scheduler; the command line adds those of EASY.

    Raises
    ------
    SettingsError
        If an argument is out of its range.

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
    That of the module; users, applications and requests are ours.
    """
    for name, value, low, high in (
        ("jobs", jobs, 1, MAX_COUNT),
        ("processors", processors, 1, MAX_COUNT),
        ("load", load, *LOADS),
        ("seed", seed, 0, 2**64 - 1),
    ):
        if not low <= value <= high:
            msg = f"{name} {value}: not between {low} and {high}"
            raise SettingsError(msg)

    population = populate(_stream(seed, 0), jobs)
    application_size = draw_sizes(_stream(seed, 1), len(population.application_user), processors)
    typical_run_time = draw_run_times(_stream(seed, 2), application_size)
    longest = math.exp(MAX_LOG_RUN_TIME)
    run_time, requested_time, status = draw_jobs(_stream(seed, 3), population, typical_run_time, longest)
    size = application_size[population.application]
    span = float(np.dot(run_time.astype(np.float64), size)) / (load * processors)
    if span > MAX_TIME:
        msg = f"load {load}: the last of {jobs} jobs would come after {span:.0f} s, later than {MAX_TIME} s"
        raise SettingsError(msg)

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
    """Return a stream of chance of its own for each purpose, so that one may change and leave the others."""
    return Generator(PCG64([seed, purpose]))


def command(
    jobs: Annotated[int, typer.Option(help="Number of jobs.")],
    processors: Annotated[int, typer.Option(help="Size of the machine.")],
    seed: Annotated[int, typer.Option(help="The same seed makes the same trace.")],
    output: Annotated[Path, typer.Option("-o", "--output", help="FILE.swf or FILE.swf.gz")],
    load: Annotated[float, typer.Option(help="Offered load, as a share of the machine.")] = DEFAULT_LOAD,
    waits: Annotated[
        Literal["easy", "none"], typer.Option(help="Whose waits the jobs have: those under EASY, or unknown.")
    ] = "easy",
) -> None:
    """Write a generated trace."""
    header, table = generate(jobs, processors, seed, load)
    if waits == "easy":
        table[:, FIELDS.index("wait_time")] = easy_waits(header, table)
        header["Note"] = header["Note"].replace("--waits none", "--waits easy")
    write_swf(output, header, table)


def main() -> None:
    """Run the command line."""
    run_app(application(command))


if __name__ == "__main__":
    main()
