"""Jobs that the cleaning of an archived log took out, put back as generated jobs.

A cleaned log lacks the jobs of a flurry, but keeps the numbers of the jobs around them. So the log shows how many jobs
are missing, and about when they were submitted. All else is drawn at random, as a description states.
"""

from dataclasses import replace

import numpy as np
from pydantic import Field, ValidationError

from shadowtime.replayer.logs.swf import FIELDS, table_of
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.bounds import MAX_DURATION, MAX_INTEGER, MAX_LINES
from shadowtime.shared.chance import key_of, uniform_table
from shadowtime.shared.errors import SettingsError, TraceError
from shadowtime.shared.spec import SpecSettings, parse, wrong_key


class PutBack(SpecSettings):
    """A description of jobs of one user that a log lacks. Run times are log-normal, cut at the request."""

    first: int = Field(ge=1, le=MAX_INTEGER, description="lowest job number that may be missing")
    last: int = Field(ge=1, le=MAX_INTEGER, description="highest job number that may be missing")
    user: int = Field(ge=0, le=MAX_INTEGER, description="number of the user")
    processors: int = Field(1, ge=1, le=MAX_INTEGER, description="processors of each job")
    request: int = Field(ge=1, le=MAX_DURATION, description="requested seconds of each job")
    run_time: float = Field(ge=1, le=MAX_DURATION, description="median run time in seconds")
    spread: float = Field(1.0, ge=0, le=10, description="standard deviation of the logarithm of run times")
    ran: float = Field(1.0, gt=0, le=1, description="share of the missing jobs that ran; the others are not put back")
    seed: int = Field(0, ge=0, le=MAX_INTEGER, description="seed of all draws")


def parse_put_back(text: str) -> PutBack:
    """Return the description in a text of the form `key=value,key=value`.

    Raise `SettingsError` if a key is unknown or missing, or a value is out of its range.

    >>> parse_put_back("first=4,last=6,user=7,request=3600,run_time=60").processors
    1
    """
    try:
        jobs = PutBack.model_validate(parse(f"put-back:{text}").keys)
    except ValidationError as error:
        raise wrong_key("put-back", error) from None
    if not 0 <= jobs.last - jobs.first < MAX_LINES:
        raise SettingsError(
            f"put-back: last={jobs.last}: expected {jobs.first} (the first) to {jobs.first + MAX_LINES - 1}"
        )
    return jobs


def put_back(trace: Trace, jobs: PutBack) -> Trace:
    """Return the log with generated jobs for the job numbers that it lacks. Its name says so.

    The submit times are interpolated between the jobs with the next lower and the next higher number.

    Raise `TraceError` if the log lacks no number of the range, or is an accounting file.

    Examples
    --------
    >>> row = dict.fromkeys(FIELDS, -1) | {"run_time": 60, "requested_time": 90, "requested_processors": 1}
    >>> rows = [row | {"job_number": number, "submit_time": 10 * number} for number in (1, 4)]
    >>> trace = Trace("log", {}, np.array([list(row.values()) for row in rows]))
    >>> whole = put_back(trace, parse_put_back("first=2,last=3,user=7,request=3600,run_time=60"))
    >>> whole.name, whole.table[:, :2].tolist()
    ('log with 2 generated jobs', [[1, 10], [2, 20], [3, 30], [4, 40]])

    References
    ----------
    docs/algorithms.md#jobs-put-back.
    """
    numbers, submitted = trace.table[:, FIELDS.index("job_number")], trace.table[:, FIELDS.index("submit_time")]
    missing = np.setdiff1d(np.arange(jobs.first, jobs.last + 1), numbers)
    if not len(missing) or trace.more:
        why = "it is an accounting file" if trace.more else f"it has all jobs from {jobs.first} to {jobs.last}"
        raise TraceError(f"{trace.name}: no job can be put back: {why}")

    one, other, lot = uniform_table(key_of(jobs.seed, trace.name), missing, 3)
    normal = np.sqrt(-2 * np.log1p(-one)) * np.cos(2 * np.pi * other)  # Box-Muller
    run_time = (jobs.run_time * np.exp(jobs.spread * normal)).clip(1, jobs.request).astype(np.int64)
    order = np.argsort(numbers, kind="stable")
    known = {
        "job_number": missing,
        "submit_time": np.interp(missing, numbers[order], np.maximum.accumulate(submitted[order])).astype(np.int64),
        "run_time": run_time,
        **dict.fromkeys(("allocated_processors", "requested_processors"), np.full(len(missing), jobs.processors)),
        "requested_time": np.full(len(missing), jobs.request),
        "status": np.ones(len(missing), dtype=np.int64),
        "user_id": np.full(len(missing), jobs.user),
    }
    generated = table_of(known)[lot < jobs.ran]
    table = np.concatenate((trace.table, generated))
    table = table[np.lexsort((table[:, FIELDS.index("job_number")], table[:, FIELDS.index("submit_time")]))]
    return replace(trace, name=f"{trace.name} with {len(generated):,} generated jobs", table=table)
