"""Formats are recognised by the beginning of a file, those of other distributions among them."""

import gzip
import json
from pathlib import Path

import pytest

from shadowtime.replayer.logs import formats as module
from shadowtime.replayer.logs.formats import format_of, read_trace
from shadowtime.shared.accounting import AccountingRows, Reading
from shadowtime.shared.bounds import MAX_DURATION
from shadowtime.shared.errors import SettingsError, TraceError
from tests.support.written_logs import WRITINGS, written_jobs

NAMES = {
    "pbs": "PBS",
    "torque": "PBS",
    "lsf": "LSF",
    "sge": "Grid Engine",
    "univa": "Grid Engine",
    "filetxt": "Slurm jobcomp/filetxt",
    "elasticsearch": "Slurm jobcomp/elasticsearch",
    "elasticsearch-answer": "Slurm jobcomp/elasticsearch",
    "htcondor-long": "HTCondor history",
    "htcondor-history": "HTCondor history",
    "htcondor-json": "HTCondor history",
    "htcondor-lines": "HTCondor history",
    "flux": "Flux",
    "philly": "Philly",
    "batsim": "Batsim",
    "gwf": "Grid Workload Format",
    "swf": None,
    "swf-semicolons": None,
}
JOBS = [job for job in written_jobs(30) if job.start is not None]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", WRITINGS)
def test_each_format_is_recognised_by_its_beginning(tmp_path: Path, name: str, packed: bool) -> None:
    text = WRITINGS[name].write(JOBS).text.encode()
    for lines in (b"", b"\xef\xbb\xbf", b"\n\n"):
        path = tmp_path / "log"
        path.write_bytes(gzip.compress(lines + text) if packed else lines + text)
        form = format_of(path)
        assert (None if form is None else form.NAME) == NAMES[name]
        assert len(read_trace(path).table) == len(JOBS)


@pytest.mark.parametrize(
    ("contents", "what"),
    [
        (b"SQLite format 3\0", "an SQLite database"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b'"JOB_NEW" "10.1" 1600000000 1001\n', "LSF's file of events"),
        (b"-- MySQL dump 10.13\n--\n", "a dump of a MySQL database"),
        (b'<?xml version="1.0"?>\n<classads>\n', "XML or HTML"),
        (b'{"jobs_of_the_day": [1, 2]}', "JSON in no known format; its keys are jobs_of_the_day"),
        (b"[1, 2, 3]", "JSON in no known format; its keys are none"),
    ],
)
def test_another_known_format_is_named(tmp_path: Path, contents: bytes, what: str) -> None:
    path = tmp_path / "log.swf"
    path.write_bytes(contents)
    with pytest.raises(TraceError, match="this is ") as raised:
        read_trace(path)
    assert str(raised.value).startswith(f"{path}: this is {what}")


def test_options_of_accounting_do_not_apply_to_logs(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text(WRITINGS["gwf"].write(JOBS).text)
    with pytest.raises(SettingsError, match="is read as a log in Grid Workload Format; --columns"):
        read_trace(path, Reading(time_zone="Europe/Berlin"))
    assert len(read_trace(path, Reading(lenient=True)).table) == len(JOBS)


# Batsim and the Grid Workload Format


def batsim(path: Path, **changed: object) -> Path:
    profiles = {"sleep": {"type": "delay", "delay": 20.5}, "work": {"type": "parallel_homogeneous", "cpu": 5e6}}
    profiles["twice"] = {"type": "sequence", "repeat": 2, "seq": ["sleep", "sleep"]}
    jobs = [
        {"id": "w0!1", "subtime": 10.7, "walltime": 100, "res": 4, "profile": "sleep"},
        {"id": 2, "subtime": 5, "res": 2, "profile": "twice"},
        {"id": "third", "subtime": 20, "walltime": -1, "res": 1, "profile": "sleep"},
        {"id": 4, "subtime": 20, "res": 1, "profile": "work"},
        {"id": 5, "subtime": 20, "res": 1, "profile": "none"},
    ]
    path.write_text(json.dumps({"nb_res": 8, "jobs": jobs, "profiles": profiles} | changed))
    return path


def test_batsim(tmp_path: Path) -> None:
    trace = read_trace(batsim(tmp_path / "w.json"))
    assert (trace.name, trace.processors) == ("w", 8)
    assert trace.table[:, [0, 1, 3, 7, 8]].tolist() == [
        [2, 5, 80, 2, MAX_DURATION],
        [1, 10, 20, 4, 100],
        [3, 20, 20, 1, MAX_DURATION],
    ]
    assert sorted(count for count, _ in trace.left_out.values()) == [1, 1]
    assert set(trace.left_out) == {
        "with a profile of type 'parallel_homogeneous', which has no run time",
        "with a profile that is missing, which has no run time",
    }


def test_a_workload_of_batsim_without_profiles_has_no_run_times(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="it has no job that can be replayed; left out: 5 with a profile"):
        read_trace(batsim(tmp_path / "w.json", profiles={}))


def test_a_profile_that_contains_itself_has_no_run_time(tmp_path: Path) -> None:
    profiles = {"sleep": {"type": "composed", "seq": ["sleep"]}, "twice": {"type": "delay", "delay": 3}}
    assert len(read_trace(batsim(tmp_path / "w.json", profiles=profiles)).table) == 1


def test_a_repeated_job_of_the_grid_is_odd(tmp_path: Path) -> None:
    written = WRITINGS["gwf"].write(JOBS)
    path = tmp_path / "log.gwf"
    path.write_text(written._replace(rows=[*written.rows, written.rows[0]]).text)
    trace = read_trace(path)
    assert trace.name == "log"
    count, example = trace.left_out["unreadable"]
    assert (count, example.partition(": ")[0]) == (1, f"line {len(JOBS) + 3}")
    assert f"job number {JOBS[0].number} is repeated" in example


# Plug-ins


class Ours:
    """A site's own format: a job for each line, after a first line `ours`."""

    NAME = "ours"

    @staticmethod
    def begins(head: bytes) -> bool:
        return head.startswith(b"ours")

    @staticmethod
    def read(path: Path, reading: Reading) -> AccountingRows:
        rows = AccountingRows()
        lines = path.read_text().splitlines()[1:]
        jobs = [[int(text) for text in line.split(",")] for line in lines]
        names = ("job_number", "submit", "start", "end", "limit", "processors", "status")
        rows.extend(range(2, len(jobs) + 2), dict(zip(names, zip(*jobs, strict=True), strict=True)), {})
        return rows


def test_a_plug_in_reads_its_format_before_tables_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    known = module.log_formats.__wrapped__()
    monkeypatch.setattr(module, "log_formats", lambda: known)
    path = tmp_path / "log"
    path.write_text("ours,1\n1,0,5,65,600,4,1\n2,3,5,65,600,4,1\n")
    with pytest.raises(TraceError, match="no column for submit"):
        read_trace(path)
    known.register("ours", Ours)
    monkeypatch.setattr(known, "plugged_in", lambda: ["ours"])
    assert [job[:4] for job in read_trace(path).table.tolist()] == [[1, 0, 5, 60], [2, 3, 2, 60]]


def test_a_plug_in_that_is_no_format_is_refused() -> None:
    with pytest.raises(
        SettingsError, match=r"log format 'none' is not a valid log format: it has no NAME, begins, read"
    ):
        module.log_formats.__wrapped__().register("none", object())  # type: ignore[arg-type]
