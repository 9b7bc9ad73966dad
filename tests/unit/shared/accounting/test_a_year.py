"""A year of 50,000 jobs in every form of sacct and of a table, checked by pandas, which shares no code with readers."""

import io
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.shared.accounting.mapping import parse_columns
from shadowtime.shared.accounting.reading import Reading

JOBS, YEAR = 50_000, 365 * 86_400
BEGIN = 1_735_689_600
STATES = np.array(["COMPLETED", "FAILED", "TIMEOUT", "CANCELLED by 1001", "OUT_OF_MEMORY", "NODE_FAIL"])
STATUS = dict(zip(STATES.tolist(), (1, 0, 100, 5, 0, 101), strict=True))


@pytest.fixture(scope="module")
def year() -> Any:
    """Return the jobs, in order of submission: instants in Unix seconds, the limit in minutes."""
    draw = np.random.default_rng(48)
    submit = np.sort(draw.choice(YEAR, JOBS, replace=False)) + BEGIN
    wait, run = draw.integers(0, 90_000, JOBS), draw.integers(1, 200_000, JOBS)
    limit = -(-run // 60) + draw.integers(0, 3_000, JOBS)
    return pd.DataFrame(
        {
            "job": np.arange(JOBS) + 4_000_000,
            "state": draw.choice(STATES, JOBS),
            "submit": submit,
            "start": submit + wait,
            "end": submit + wait + run,
            "limit": limit,
            "cpus": draw.choice([1, 2, 4, 8, 64, 1024], JOBS),
            "user": draw.choice([f"user{at}" for at in range(300)], JOBS),
        }
    )


def iso(seconds: Any) -> Any:
    return pd.to_datetime(seconds, unit="s").dt.strftime("%Y-%m-%dT%H:%M:%S")


def clock(seconds: Any) -> list[str]:
    return [f"{s // 86_400}-{s // 3_600 % 24:02}:{s // 60 % 60:02}:{s % 60:02}" for s in seconds.tolist()]


def as_sacct(year: Any, *, raw: bool, dates: bool) -> Any:
    """Return the jobs with the fields of sacct."""
    span = year["end"] - year["start"]
    times = {name.title(): iso(year[name]) if dates else year[name] for name in ("submit", "start", "end")}
    return pd.DataFrame(
        {
            ("JobIDRaw" if raw else "JobID"): year["job"],
            "State": year["state"],
            **times,
            ("ElapsedRaw" if raw else "Elapsed"): span if raw else clock(span),
            ("TimelimitRaw" if raw else "Timelimit"): year["limit"] if raw else clock(60 * year["limit"]),
            ("AllocCPUS" if raw else "NCPUS"): year["cpus"],
            "User": year["user"],
        }
    )


def fixed_width(frame: Any) -> str:
    texts = frame.astype(str)
    widths = [max(texts[name].str.len().max(), len(name), 10) for name in texts]
    lines = [texts.columns.tolist(), ["-" * width for width in widths], *texts.to_numpy().tolist()]
    return "".join("".join(f"{v:>{width}} " for v, width in zip(line, widths, strict=True)) + "\n" for line in lines)


def as_answer(year: Any) -> str:
    """Return the jobs as `sacct --json` prints them."""
    jobs = [
        {
            "job_id": job.job,
            "state": {"current": [job.state.split()[0]]},
            "time": {"submission": job.submit, "eligible": job.submit, "start": job.start, "end": job.end}
            | {"elapsed": job.end - job.start, "limit": {"set": True, "infinite": False, "number": job.limit}},
            "tres": {name: [{"type": "cpu", "name": "", "count": job.cpus}] for name in ("requested", "allocated")},
            "user": job.user,
            "array": {"job_id": 0, "task_id": {"set": False, "number": 0}, "task": ""},
        }
        for job in year.itertuples()
    ]
    return json.dumps({"jobs": jobs})


def as_table(year: Any, kind: str) -> Any:
    """Return the jobs with columns of other names, as pandas holds them."""
    table = year.rename(columns={"job": "id", "limit": "asked", "cpus": "cores"}).copy()
    if kind == "milliseconds":
        table[["submit", "start", "end"]] *= 1_000
    if kind in ("datetimes", "zoned"):
        for name in ("submit", "start", "end"):
            table[name] = pd.to_datetime(table[name], unit="s", utc=kind == "zoned")
    if kind == "timedeltas":
        table["asked"] = pd.to_timedelta(table["asked"], unit="min")
    return table


SACCT: dict[str, Callable[[Any], str]] = {
    "raw": lambda year: as_sacct(year, raw=True, dates=False).to_csv(sep="|", index=False),
    "dates": lambda year: as_sacct(year, raw=False, dates=True).to_csv(sep="|", index=False),
    "commas": lambda year: as_sacct(year, raw=False, dates=True).to_csv(index=False),
    "fixed width": lambda year: fixed_width(as_sacct(year, raw=False, dates=True)),
    "json": as_answer,
}
KINDS = ("seconds", "milliseconds", "datetimes", "zoned", "timedeltas")
PACKINGS = ("csv", "csv.xz", "parquet", "json", "jsonl")


def differences(year: Any, path: Path, **reading: object) -> dict[str, int]:
    """Return the number of jobs that differ, by column."""
    trace = read_trace(path, Reading(**reading))  # type: ignore[arg-type]
    zero = trace.unix_start_time or 0
    names = ("job_number", "submit_time", "wait_time", "run_time", "requested_time", "requested_processors", "status")
    at = [0, 1, 2, 3, 8, 7, 10]
    read = pd.DataFrame(trace.table[:, at], columns=list(names)).sort_values("job_number").reset_index(drop=True)
    users = pd.Series(trace.table[np.argsort(trace.table[:, 0]), 11])
    expected = pd.DataFrame(
        {
            "job_number": year["job"],
            "submit_time": year["submit"] - zero,
            "wait_time": year["start"] - year["submit"],
            "run_time": year["end"] - year["start"],
            "requested_time": 60 * year["limit"],
            "requested_processors": year["cpus"],
            "status": year["state"].map(STATUS),
        }
    )
    assert (len(read), dict(trace.left_out)) == (JOBS, {})
    found = {name: int((read[name] != expected[name]).sum()) for name in names}
    return found | {"user": int((users != pd.factorize(year["user"])[0] + 1).sum())}


def none(found: dict[str, int]) -> bool:
    return not any(found.values())


@pytest.mark.nightly
@pytest.mark.parametrize("form", SACCT)
def test_a_year_of_sacct_is_read_without_a_difference(form: str, year: Any, tmp_path: Path) -> None:
    path = tmp_path / "year.txt"
    path.write_text(SACCT[form](year))
    found = differences(year, path)
    assert none(found), found


@pytest.mark.nightly
@pytest.mark.parametrize("packing", PACKINGS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_year_of_a_table_is_read_without_a_difference(kind: str, packing: str, year: Any, tmp_path: Path) -> None:
    table, path = as_table(year, kind), tmp_path / f"year.{packing}"
    if packing == "parquet":
        table.to_parquet(path)
    elif packing in ("json", "jsonl"):
        if kind == "timedeltas":
            table["asked"] = table["asked"].astype(str)
        table.to_json(path, orient="records", lines=packing == "jsonl", date_format="iso")
    else:
        text = io.StringIO()
        table.to_csv(text, index=False)
        contents = text.getvalue().encode()
        path.write_bytes(lzma.compress(contents, preset=0) if packing == "csv.xz" else contents)
    unit = "" if kind == "timedeltas" else ":min"
    columns = parse_columns([f"job_number=id,limit=asked{unit},processors=cores"])
    found = differences(year, path, columns=columns)
    assert none(found), found
