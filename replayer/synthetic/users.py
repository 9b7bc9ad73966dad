"""Users of a generated trace. Each user submits similar jobs repeatedly, with their own requested times.

Lublin's model has no users, but predictors need repetition. Here a user runs a few applications in sessions. The jobs
of an application have similar run times and about the same request, far above the run time. No paper states the shares
and spreads below. They are our own choice, and similar to those of archived logs.
"""

from dataclasses import dataclass

import numpy as np
from numpy.random import Generator

from shadowtime.shared.kernels import Floats, Integers

JOBS_PER_USER = 75
USERS_PER_GROUP = 8
JOBS_PER_SESSION = 3
OPEN_SESSIONS = 12  # sessions open at any time, so that the jobs of several users alternate

FAILED, COMPLETED, CANCELLED = 0, 1, 5  # values of SWF's status
FAILED_EARLY_SHARE = 0.08
HUNG_SHARE = 0.02
MEDIAN_FAILURE = 30.0  # seconds

MEDIAN_OVERESTIMATE = 3.0
POPULAR_REQUESTS = np.array(
    [300, 600, 900, 1800, *(3600 * hours for hours in (1, 2, 3, 4, 6, 8, 12, 18, 24, 36, 48))], dtype=np.int64
)
"""Round requested times that users type, in seconds."""

QUEUE_LIMITS = np.array([3600, 12 * 3600], dtype=np.int64)
"""Maximum requested time of queues 1 (short) and 2 (medium), in seconds. Longer requests go to queue 3."""


@dataclass(frozen=True, slots=True, eq=False)
class Population:
    """User, group and application of n jobs, shape (n,), and the user of each application, shape (a,); all from 0."""

    user: Integers
    group: Integers
    application: Integers
    application_user: Integers


def populate(rng: Generator, jobs: int) -> Population:
    """Return the users, groups and applications behind a stream of jobs.

    A few users submit most jobs (Zipf). In a session, a user submits one application repeatedly. Several sessions
    are open at a time.

    Examples
    --------
    >>> population = populate(np.random.default_rng(1), 7500)
    >>> int(population.user.max()) + 1, int(population.group.max()) + 1
    (100, 13)
    """
    users = max(1, round(jobs / JOBS_PER_USER))
    activity = 1 / np.arange(1, users + 1)
    activity /= activity.sum()

    seat = rng.integers(OPEN_SESSIONS, size=jobs)
    by_seat = np.argsort(seat, kind="stable")
    opens = rng.random(jobs) < 1 / JOBS_PER_SESSION
    opens[1:] |= np.diff(seat[by_seat]) != 0
    opens[0] = True
    session = np.empty(jobs, dtype=np.int64)
    session[by_seat] = np.cumsum(opens) - 1
    sessions = int(opens.sum())

    session_user = np.searchsorted(np.cumsum(activity), rng.random(sessions)).clip(max=users - 1)
    applications = 1 + np.ceil(np.sqrt(sessions * activity)).astype(np.int64)
    first_application = np.cumsum(applications) - applications
    # The square favours a user's first applications: some run daily, others once.
    choice = (applications[session_user] * rng.random(sessions) ** 2).astype(np.int64)
    session_application = first_application[session_user] + choice

    user_group = rng.integers(-(-users // USERS_PER_GROUP), size=users)
    user = session_user[session]
    return Population(
        user=user,
        group=user_group[user],
        application=session_application[session],
        application_user=np.repeat(np.arange(users), applications),
    )


def draw_jobs(
    rng: Generator, population: Population, typical_run_time: Floats, longest: float
) -> tuple[Integers, Integers, Integers]:
    """Return run time, requested time (seconds) and status of each job, shape (n,).

    Parameters
    ----------
    rng : numpy.random.Generator
        Random number generator.
    population : Population
        User, group and application of each job.
    typical_run_time : numpy.ndarray
        Median run time of each application, seconds, shape (a,).
    longest : float
        Maximum run time of any job, seconds.
    """
    jobs, applications = len(population.user), len(typical_run_time)
    users = int(population.application_user[-1]) + 1

    user_caution = rng.normal(np.log(MEDIAN_OVERESTIMATE), 0.5, size=users)
    caution = user_caution[population.application_user] + rng.normal(0, 0.4, size=applications)
    estimate = typical_run_time * np.exp(caution)
    request = popular_request(estimate)[population.application]
    # A tenth of the jobs requests another value for the same application.
    another = popular_request(estimate * rng.choice([0.5, 2.0, 4.0], size=applications))
    request = np.where(rng.random(jobs) < 0.1, another[population.application], request)

    spread = rng.uniform(0.1, 0.6, size=applications)[population.application]
    run_time = typical_run_time[population.application] * np.exp(spread * rng.normal(size=jobs))
    run_time = np.minimum(run_time, longest)
    fate = rng.random(jobs)
    failed = fate < FAILED_EARLY_SHARE
    failure = np.exp(rng.normal(np.log(MEDIAN_FAILURE), 1, size=jobs))
    run_time[failed] = np.minimum(run_time, failure)[failed]
    run_time[fate > 1 - HUNG_SHARE] = np.inf

    killed = run_time > request
    status = np.full(jobs, COMPLETED)
    status[failed] = FAILED
    status[killed] = rng.choice([FAILED, CANCELLED], size=jobs)[killed]
    return np.minimum(run_time, request).astype(np.int64).clip(min=1), request, status


def popular_request(estimate: Floats) -> Integers:
    """Return the smallest popular request at or above each estimate, in seconds; the longest one if all are below it.

    Examples
    --------
    >>> popular_request(np.array([20.0, 3601.0, 1e9])) // 60
    array([   5,  120, 2880])
    """
    place = np.searchsorted(POPULAR_REQUESTS, estimate).clip(max=len(POPULAR_REQUESTS) - 1)
    request: Integers = POPULAR_REQUESTS[place]
    return request


def queue_of(requested_time: Integers) -> Integers:
    """Return the queue number of each request: 1 short, 2 medium, 3 long.

    Examples
    --------
    >>> queue_of(np.array([300, 3600, 7200, 172800]))
    array([1, 1, 2, 3])
    """
    queue: Integers = 1 + np.searchsorted(QUEUE_LIMITS, requested_time)
    return queue
