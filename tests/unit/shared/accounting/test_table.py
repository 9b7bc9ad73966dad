"""Tables of jobs, and that the same jobs are the same workload in every format."""

import gzip
from pathlib import Path

import numpy as np
import pyarrow
import pytest
from pyarrow import csv, parquet

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import Workload, prepare
from shadowtime.shared.accounting.mapping import parse_columns
from shadowtime.shared.accounting.reading import Reading
from shadowtime.shared.errors import SettingsError, TraceError
from tests.support.slurm_samples import SACCT

COLUMNS = (
    "job_number=JobIDRaw,submit=Submit,eligible=Eligible,start=Start,end=End,suspended=Suspended,limit=Timelimit,"
    "processors=CPUs,user=User,account=Account,partition=Partition,qos=QOS,job_name=JobName,state=State,nodes=NNodes"
    ",node_list=NodeList"
)
TABLE = "submit,start,end,limit,processors,user\n100,110,170,60,4,eve\n105,110,180,,2,bob\n"


def written(folder: Path, text: str, name: str = "jobs.csv") -> Path:
    path = folder / name
    path.write_text(text)
    return path


def read(path: Path, columns: str | None = None, **reading: object) -> Workload:
    mapping = parse_columns([columns] if columns else [])
    return prepare(read_trace(path, Reading(columns=mapping, **reading)), recorded=True)  # type: ignore[arg-type]


def test_a_table_with_our_names_needs_no_mapping(tmp_path: Path) -> None:
    first, second = read(written(tmp_path, TABLE))
    assert (first.submit_time, first.wait_time, first.run_time, first.requested_time) == (100, 10, 60, 60)
    assert (second.limit, second.user_id) == (None, 2)


def test_a_packed_table_is_read_too(tmp_path: Path) -> None:
    packed = tmp_path / "jobs.csv.gz"
    packed.write_bytes(gzip.compress(TABLE.encode()))
    assert len(read(packed)) == 2


def test_text_csv_and_parquet_are_the_same_workload(tmp_path: Path) -> None:
    lines = [line.split("|") for line in SACCT.read_text().splitlines()]
    at, kept = {name: place for place, name in enumerate(lines[0])}, lines[1:]
    columns = {name: [line[place] for line in kept] for name, place in at.items()}
    columns["Timelimit"] = [each if each == "UNLIMITED" else str(60 * int(each)) for each in columns["TimelimitRaw"]]
    columns["CPUs"] = [
        given if int(given) else asked for given, asked in zip(columns["AllocCPUS"], columns["ReqCPUS"], strict=True)
    ]
    table = pyarrow.table(columns)
    csv.write_csv(table, tmp_path / "jobs.csv")
    for name in ("Submit", "Eligible", "Start", "End", "CPUs", "NNodes", "JobIDRaw"):
        table = table.set_column(
            table.schema.get_field_index(name),
            name,
            pyarrow.array([int(each) if each.isdecimal() else None for each in columns[name]]),
        )
    dates = pyarrow.array([int(each) for each in columns["End"]], pyarrow.timestamp("s", "Europe/Berlin"))
    table = table.set_column(table.schema.get_field_index("End"), "End", dates)
    parquet.write_table(table, tmp_path / "jobs.parquet")
    ours = read(SACCT)
    for name in ("jobs.csv", "jobs.parquet"):
        theirs = read(tmp_path / name, COLUMNS)
        assert theirs.unix_start_time == ours.unix_start_time
        assert np.array_equal(np.array(theirs.resized), np.array(ours.resized))
        for column in ours.columns.keys() - {"nodes", "memory", "gpus", "job_number"}:  # of TRES; tasks by array
            assert (theirs.columns[column] == ours.columns[column]).all(), (name, column)


@pytest.mark.parametrize(
    ("text", "columns", "told"),
    [
        ("a,b\n1,2\n", None, "no column for submit, processors, end or run_time, limit; give --columns submit=COLUMN"),
        (
            TABLE,
            "submit=when",
            "no column 'when' for submit; name another, or leave it out with submit=; it has submit '100', start '110'",
        ),
        (
            TABLE + "soon,1,2,3,4,eve\n",
            None,
            "1 of 3 rows cannot be read, more than a tenth: line 4: submit is 'soon', which is not a time",
        ),
        (
            TABLE + "1,1,2,3,four,eve\n",
            None,
            "1 of 3 rows cannot be read, more than a tenth: line 4: processors is 'four', which is not a whole number",
        ),
        (
            TABLE + "1,1,2,ever,4,eve\n",
            None,
            "1 of 3 rows cannot be read, more than a tenth: line 4: limit is 'ever', which is not a duration",
        ),
        (TABLE + "1,1\n", None, "line 4: cut off: '1,1'"),
        ("submit,start,end,limit,processors\n", None, "the table has no rows"),
    ],
)
def test_what_is_wrong_with_a_table_is_named(tmp_path: Path, text: str, columns: str | None, told: str) -> None:
    with pytest.raises(TraceError) as caught:
        read(written(tmp_path, text), columns)
    assert told in str(caught.value)


def test_a_parquet_file_with_wrong_types_is_named(tmp_path: Path) -> None:
    columns = {"submit": [[1], [2]], "start": [1, 2], "end": [1, 2], "limit": [5, 5], "processors": [1.0, 2.0]}
    parquet.write_table(pyarrow.table(columns), tmp_path / "jobs.parquet")
    with pytest.raises(TraceError, match=r"submit: 'submit' has '\[1\]', which is not a time"):
        read(tmp_path / "jobs.parquet")
    parquet.write_table(pyarrow.table({**columns, "submit": [1, 2]}), tmp_path / "jobs.parquet")
    assert [job.processors for job in read(tmp_path / "jobs.parquet")] == [1, 2]
    (tmp_path / "jobs.parquet").write_bytes(b"PAR1 and nothing else")
    with pytest.raises(TraceError, match="cannot be read as a table"):
        read(tmp_path / "jobs.parquet")


@pytest.mark.parametrize("text", ["submit", "when=x", "submit=a,submit=b"])
def test_a_wrong_mapping_is_named(text: str) -> None:
    with pytest.raises(SettingsError, match="--columns"):
        parse_columns([text])


def test_a_folder_of_parquet_may_have_files_about_the_folder(tmp_path: Path) -> None:
    """Spark writes `_SUCCESS` beside the parts, and a damaged part is named."""
    (tmp_path / "jobs").mkdir()
    rows = pyarrow.table({"submit": [0, 5], "start": [5, 9], "end": [65, 99], "processors": [4, 4]})
    for name in ("_metadata", "part-0", "part-1"):
        parquet.write_table(rows, tmp_path / "jobs" / name)
    (tmp_path / "jobs" / "_SUCCESS").touch()
    assert len(read_trace(tmp_path / "jobs").table) == 4
    (tmp_path / "jobs" / "part-1").write_bytes(b"PAR1")
    with pytest.raises(TraceError, match=r"jobs/part-1: cannot be read as a table"):
        read_trace(tmp_path / "jobs")


def test_times_of_day_are_durations(tmp_path: Path) -> None:
    """MySQL has durations as times of day."""
    limits = pyarrow.array([3_600_000_000], pyarrow.time64("us"))
    rows = {"submit": [0], "start": [5], "end": [65], "processors": [4], "limit": limits}
    parquet.write_table(pyarrow.table(rows), tmp_path / "jobs.parquet")
    assert read(tmp_path / "jobs.parquet")[0].requested_time == 3600


def test_a_row_without_a_number_is_named_by_its_id_or_its_line(tmp_path: Path) -> None:
    text = "job_number,submit,start,end,processors\n1,0,5,65,4\n{},,5,65,4\n"
    for job, shown in (("a7", "job a7, line 3"), ("", "line 3")):
        left_out = read_trace(written(tmp_path, text.format(job))).left_out
        assert list(left_out.values()) == [(1, shown)]
