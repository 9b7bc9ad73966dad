"""Workloads of the simulator Batsim, in JSON: jobs and their profiles, without what happened to them."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from shadowtime.replayer.logs.other_formats.standard_rows import StandardRows
from shadowtime.replayer.logs.trace import Trace
from shadowtime.shared.accounting import (
    UNKNOWN,
    Reading,
    contents_of,
    json_keys,
    json_records,
    whole_number,
    whole_of,
)
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.quoting import quote

NAME = "Batsim"

DEEPEST = 20
"""Limit of the depth of profiles that consist of profiles."""

SEQUENCES = ("composed", "sequence", "sequential_composition")
"""Types of profiles that run other profiles, one after the other."""

_PROFILES = re.compile(r'"profiles"\s*:\s*(?=\{)')
_SIZE = re.compile(r'"nb_res"\s*:\s*([0-9]{1,9})')


def begins(head: bytes) -> bool:
    """Return whether a file with this beginning is a workload of Batsim."""
    keys = json_keys(head)
    return "nb_res" in keys or {"jobs", "profiles"} <= keys or {"subtime", "res", "profile"} <= keys


def read(path: Path, reading: Reading) -> Trace:
    """Return the workload as a log. Times are seconds of the simulation, without their fractions.

    The run time of a job is the delay of its profile. A profile that states work in place of time has no run time:
    it depends on the simulated machine. Its jobs are left out. A job without a walltime has no limit.

    Raise `TraceError` if the file cannot be read, has no job, or has too many damaged jobs.

    References
    ----------
    docs/other-systems.md#batsim (Batsim 4, input workload).
    """
    rows = StandardRows(path)
    text = b"".join(contents_of(path)).decode(errors="replace")
    profiles, size = _profiles_of(text), _SIZE.search(text)
    for record in json_records(path, "subtime"):
        try:
            if record.values is None:
                raise ValueError("a damaged object")
            name = str(record.values.get("profile"))
            run_time = _run_time(profiles, name)
            if run_time is None:
                kind = profiles.get(name)
                what = f"of type {quote(str(kind.get('type')))}" if isinstance(kind, dict) else "that is missing"
                rows.leave_out(f"with a profile {what}, which has no run time", record.line)
            else:
                rows.add(_job(record.values, run_time, rows.unused_number()))
        except ValueError as error:
            rows.odd.add(record.line, str(error))
    return rows.trace({"MaxProcs": size[1]} if size else {}, lenient=reading.lenient)


def _profiles_of(text: str) -> dict[str, Any]:
    """Return the profiles by name; none if they are damaged."""
    place = _PROFILES.search(text)
    try:
        profiles = json.JSONDecoder().raw_decode(text, place.end())[0] if place else {}
    except (ValueError, RecursionError):
        return {}

    return profiles if isinstance(profiles, dict) else {}


def _job(values: Mapping[str, Any], run_time: int, unused: int) -> dict[str, int]:
    """Return a job; `unused` is its number if its id has none.

    Raise `ValueError` if its time of submission, its size or its limit is not a number from 0 on.
    """
    number = whole_number(str(values.get("id")).rpartition("!")[2])
    limit = UNKNOWN if values.get("walltime") in (None, -1) else whole_of(values, "walltime")
    return {
        "job_number": unused if number is None else number,
        "submit_time": whole_of(values, "subtime"),
        "run_time": run_time,
        "requested_processors": whole_of(values, "res"),
        "requested_time": MAX_DURATION if limit == UNKNOWN else limit,
    }


def _run_time(profiles: Mapping[str, Any], name: str, depth: int = 0) -> int | None:
    """Return the run time in seconds that a profile states; None if it states none.

    Raise `ValueError` if a delay is missing, or if a delay or a number of repetitions is not a number from 0 on.
    """
    profile = profiles.get(name)
    if not isinstance(profile, dict) or depth > DEEPEST:
        return None
    if profile.get("type") == "delay":
        return whole_of(profile, "delay")
    if profile.get("type") not in SEQUENCES or not isinstance(profile.get("seq"), list):
        return None
    parts = [_run_time(profiles, str(part), depth + 1) for part in profile["seq"]]
    times = whole_of(profile, "repeat" if "repeat" in profile else "nb", 1)
    return None if None in parts else times * sum(part or 0 for part in parts)
