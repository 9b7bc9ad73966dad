"""Facts that a file lacks can be stated in Python as on the command line."""

from pathlib import Path
from typing import Any

import pytest

import shadowtime
from shadowtime.shared.errors import SettingsError, TraceError

ROWS = [
    "a|1|hpc|alice|2026-10-01T00:00:00|2026-10-01T00:01:00|2026-10-01T00:11:00|4|COMPLETED|60",
    "b|2|gpu|bob|2026-10-01T00:05:00|2026-10-01T00:06:00|2026-10-01T00:07:00|8|COMPLETED|60",
]
FIELDS = ["JobName", "JobIDRaw", "Cluster", "User", "Submit", "Start", "End", "AllocCPUS", "State", "TimelimitRaw"]


def test_fields_and_cluster_of_a_file_without_a_header(tmp_path: Path) -> None:
    path = tmp_path / "jobs.txt"
    path.write_text("\n".join(ROWS) + "\n")
    log = shadowtime.read_log(path, 16, fields=FIELDS, delimiter="|", cluster="hpc", time_zone="Europe/Berlin")
    assert [(job.processors, job.requested_time) for job in log] == [(4, 3600)]
    with pytest.raises(TraceError, match="hpc"):
        shadowtime.read_log(path, 16, fields=FIELDS)


def test_units_formats_and_lenience_of_a_table(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    rows = ["submit,start,end,processors,mins", *["03/10/2026 00:00,03/10/2026 01:00,03/10/2026 02:00,4,90"] * 4]
    path.write_text("\n".join([*rows, "never,x,y,4,90"]) + "\n")
    stated: dict[str, Any] = {"columns": {"limit": "mins:min"}, "date_format": "%d/%m/%Y %H:%M"}
    with pytest.raises(TraceError):
        shadowtime.read_log(path, 16, **stated)
    log = shadowtime.read_log(path, 16, **stated, lenient=True)
    assert [job.requested_time for job in log] == [5400] * 4


def test_what_is_left_out_is_reported(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    row = "03/10/2026 00:00,03/10/2026 01:00,03/10/2026 02:00,{},90"
    path.write_text("\n".join(["submit,start,end,processors,limit", row.format(4), row.format(32)]) + "\n")
    stated: dict[str, Any] = {"columns": {"limit": "limit:min"}, "date_format": "%d/%m/%Y %H:%M"}
    assert len(shadowtime.read_log(f"{path}@16", **stated)) == 1
    assert "jobs: skipped 1 job: 1 larger than the machine" in caplog.messages
    assert any("processors were held at one time" in message for message in caplog.messages)
    with pytest.raises(SettingsError, match="@PROCESSORS and processors= exclude each other"):
        shadowtime.read_log(f"{path}@16", 16, **stated)


def test_errors_about_a_frame_name_arguments_of_python() -> None:
    import pandas as pd

    frame = pd.DataFrame({"when": ["2026-10-01"], "user": ["a"]})
    with pytest.raises(TraceError, match=r"give columns=\{'submit': 'COLUMN', .* not needed with requests='actual'"):
        shadowtime.read_log(frame)
    with pytest.raises(TraceError, match="Conversion failed for column user"):
        shadowtime.read_log(pd.DataFrame({"user": ["a", 5]}))


def test_a_preset_is_the_columns_of_a_data_set(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="pm100"):
        shadowtime.read_log(tmp_path / "jobs.csv", preset="nothing")


@pytest.mark.parametrize(
    ("stated", "error", "message"),
    [
        ({"fields": "a,b"}, SettingsError, "expected a list"),
        (
            {"columns": "submit=t"},
            SettingsError,
            "columns: expected a mapping of our names to columns, found 'submit=t'",
        ),
        ({"delimiter": ""}, SettingsError, "at least one character"),
        ({"zone": "UTC"}, TypeError, "unexpected keyword argument 'zone'"),
    ],
)
def test_mistakes_are_named(stated: dict[str, Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        shadowtime.read_log("jobs.csv", **stated)
