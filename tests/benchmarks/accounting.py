"""A year of a cluster, and ten at once, read as text of sacct, CSV and Parquet: seconds, memory, and as many jobs.

The seconds of the reader alone are paired with those of pandas for the same file.

What is multiplied is what a real Slurm accounted, with everything that happens to jobs in it.
"""

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shadowtime.replayer.logs.formats import log_formats, read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.shared.accounting.mapping import parse_columns
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.cli.command_line import run_app
from shadowtime.shared.cli.paths import ROOT
from tests.benchmarks.memory import peak, resident

SACCT = ROOT / "tests" / "support" / "samples" / "slurm-22.05.txt"
SIZES = 50_000, 500_000
COLUMNS = (
    "job_number=JobIDRaw,submit=Submit,eligible=Eligible,start=Start,end=End,suspended=Suspended,limit=Limit,"
    "processors=CPUs,user=User,account=Account,partition=Partition,qos=QOS,job_name=JobName,state=State,nodes=NNodes,"
    "node_list=NodeList"
)
TIMES = ("Submit", "Eligible", "Start", "End")
_NUMBER = re.compile("[0-9]+")


def accounting() -> list[dict[str, Any]]:
    """Read each file in a process of its own, and return what that measured."""
    found = []
    for jobs in SIZES:
        with TemporaryDirectory() as folder:
            write(Path(folder), jobs)
            measured = []
            for name in ("sacct.txt", "jobs.csv", "jobs.parquet"):
                command = [sys.executable, "-m", "tests.benchmarks.accounting", str(Path(folder, name))]
                done = subprocess.run(command, check=True, capture_output=True, text=True, cwd=ROOT)
                measured.append({"rows": jobs, **json.loads(done.stdout)})
            same = len({each["jobs"] for each in measured}) == 1
            found += [{**each, "as_many": same} for each in measured]
    return found


def write(folder: Path, jobs: int) -> None:
    """Write about so many jobs of a year in all three formats."""
    import pyarrow
    from pyarrow import csv, parquet

    head, *lines = SACCT.read_text().splitlines()
    names, rows = head.split("|"), [line.split("|") for line in lines]
    with (folder / "sacct.txt").open("w") as file:
        file.write(head + "\n")
        columns: dict[str, list[str]] = {name: [] for name in (*names, "Limit", "CPUs")}
        for row in multiplied(names, rows, jobs):
            file.write("|".join(row) + "\n")
            values = dict(zip(names, row, strict=True))
            limit = values["TimelimitRaw"]
            values["Limit"] = limit if limit == "UNLIMITED" else str(60 * int(limit))
            values["CPUs"] = values["AllocCPUS"] if int(values["AllocCPUS"]) else values["ReqCPUS"]
            for name, value in values.items():
                columns[name].append(value)
    table = pyarrow.table(columns)
    csv.write_csv(table, folder / "jobs.csv")
    parquet.write_table(table, folder / "jobs.parquet")


def multiplied(names: list[str], rows: list[list[str]], jobs: int) -> Iterator[list[str]]:
    """Yield the rows again and again, later and under other numbers, spread over a year."""
    copies = -(-jobs // len(rows))
    at = {name: place for place, name in enumerate(names)}
    numbers = max(int(row[at["JobIDRaw"]]) for row in rows)
    for copy in range(copies):
        later = copy * 365 * 86_400 // copies
        for row in rows:
            new = list(row)
            new[at["JobIDRaw"]] = str(int(row[at["JobIDRaw"]]) + copy * numbers)
            number = _NUMBER.match(row[at["JobID"]])
            new[at["JobID"]] = f"{int(number[0]) + copy * numbers}{row[at['JobID']][number.end() :]}" if number else ""
            for name in TIMES:
                if row[at[name]].isdecimal():
                    new[at[name]] = str(int(row[at[name]]) + later)
            new[at["User"]] = f"{row[at['User']]}-{copy % 60}"
            yield new


def read_by_pandas(path: Path) -> Callable[[], object]:
    """Return a function that reads a file by pandas."""
    import pandas as pd

    if path.suffix == ".parquet":
        return lambda: pd.read_parquet(path)
    return lambda: pd.read_csv(path, sep="|" if path.suffix == ".txt" else ",")


def seconds_of(read: Callable[[], object]) -> float:
    """Return the seconds of the processor that a call takes."""
    begun = time.process_time()
    read()
    return time.process_time() - begun


def main(path: Path) -> None:
    """Read a file and print what that took."""
    columns = {} if path.suffix == ".txt" else parse_columns([COLUMNS])
    readers = (
        read_by_pandas(path),
        lambda: log_formats()["sacct" if not columns else "table"].read(path, Reading(columns)),
    )
    by_pandas, by_us = (min(seconds_of(reader) for _ in range(3)) for reader in readers)
    before, begun = resident(), time.process_time()
    workload = prepare(read_trace(path, Reading(columns)), recorded=True)
    seconds = time.process_time() - begun
    print(
        json.dumps(
            {
                "benchmark": "accounting",
                "format": path.suffix,
                "jobs": len(workload),
                "reader_by_pandas": round(by_us / by_pandas, 2),
                "seconds_per_100000": round(seconds / len(workload) * 1e5, 2),
                "mebibytes_per_100000": round((peak() - before) / len(workload) * 1e5, 1),
            }
        )
    )


if __name__ == "__main__":
    run_app(lambda: main(Path(sys.argv[1])))
