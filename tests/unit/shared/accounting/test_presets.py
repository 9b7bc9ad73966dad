"""Presets of published data sets, on rows built from the documentation of their columns."""

from pathlib import Path
from typing import NamedTuple

import pytest

from shadowtime.replayer.logs.formats import read_trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.reading_options import ReadingOptions, reading_of
from shadowtime.shared.accounting.tables import PRESETS
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import SettingsError, TraceError


class Published(NamedTuple):
    """A header with a row, and the expected wait, run time, processors, nodes, requested time and status."""

    header: str
    row: str
    expected: tuple[int, int, int, int | None, int, int | None]


SAMPLES = {
    "acme": Published(
        "job_id,user,node_num,gpu_num,cpu_num,type,state,submit_time,start_time,end_time,duration,queue,gpu_time",
        "dlctk696s0jbvitv,uf794,1,8,64,Other,FAILED,2023-05-17 11:00:00+00:00,2023-05-17 11:00:08+00:00,"
        "2023-05-17 11:01:08+00:00,60,8,480",
        (8, 60, 64, 1, 60, 0),
    ),
    "alcf": Published(
        "JOB_NAME,COBALT_JOBID,MACHINE_NAME,QUEUED_TIMESTAMP,QUEUED_DATE_ID,START_TIMESTAMP,START_DATE_ID,"
        "END_TIMESTAMP,END_DATE_ID,USERNAME_GENID,PROJECT_NAME_GENID,QUEUE_NAME,WALLTIME_SECONDS,RUNTIME_SECONDS,NODES_USED,"
        "NODES_REQUESTED,CORES_USED,CORES_REQUESTED,LOCATION,EXIT_STATUS",
        "1.mira,1,mira,2018-01-01 00:00:00,20180101,2018-01-01 01:00:00,20180101,2018-01-01 02:00:00,20180101,7,9,"
        "prod-short,7200.0,3600.0,512.0,512.0,8192.0,8192.0,MIR-0,0",
        (3600, 3600, 8192, 512, 7200, None),
    ),
    "eagle": Published(
        "job_id,user,account,state,partition,qos,submit_time,start_time,end_time,run_time,wallclock_req,nodes_req,"
        "processors_req,gpus_req,mem_req",
        "1,user1,account1,TIMEOUT,short,normal,2019-01-01 00:00:00,2019-01-01 00:00:10,2019-01-01 01:00:10,3600,3600,2,"
        "72,0,180000",
        (10, 3600, 72, 2, 3600, 100),
    ),
    "f-data": Published(
        "jid,usr,jnam,cnumr,cnumat,cnumut,nnumr,adt,qdt,schedsdt,deldt,ec,elpl,sdt,duration,nnuma,exit state",
        "jid_1,usr_1,jnam_1,48,48,48,1,2021-04-01 00:00:00+00:00,2021-04-01 00:00:01+00:00,2021-04-01 00:00:30+00:00,,"
        "0,3600,2021-04-01 00:01:00+00:00,600,1,completed",
        (60, 600, 48, 1, 3600, 1),
    ),
    "helios": Published(
        "job_id,user,vc,jobname,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
        "1,u1,vc1,j1,4,16,1,COMPLETED,2020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:01:05,60,5",
        (5, 60, 16, 1, 60, 1),
    ),
    "lanl": Published(
        "user_ID,group_ID,submit_time,start_time,end_time,wallclock_limit,job_status,node_count,tasks_requested",
        "1,1,2011-10-31 00:00:00-06:00,2011-10-31 00:01:00-06:00,2011-10-31 00:11:00-06:00,1:00:00,COMPLETED,2,48",
        (60, 600, 48, 2, 3600, 1),
    ),
    "pm100": Published(
        "job_id,user_id,partition,qos,job_state,submit_time,eligible_time,start_time,end_time,run_time,time_limit,"
        "num_cores_req,num_cores_alloc,num_nodes_req,num_nodes_alloc,num_gpus_req,num_gpus_alloc,mem_req,mem_alloc",
        "1,7,1,0,COMPLETED,2020-05-05 10:00:00+00:00,2020-05-05 10:00:00+00:00,2020-05-05 10:00:30+00:00,"
        "2020-05-05 11:00:30+00:00,3600,120,32,128,1,1,4,4,100,230",
        (30, 3600, 128, 1, 7200, 1),
    ),
    "slurm-database": Published(
        "id_job,id_array_job,id_array_task,id_user,nodes_alloc,nodelist,cpus_req,partition,priority,state,timelimit,"
        "time_submit,time_eligible,time_start,time_end,time_suspended,tres_req,tres_alloc",
        "1,0,4294967294,7,2,n[1-2],80,normal,1,3,1440,1600000000,1600000000,1600000010,1600000610,0,,",
        (10, 600, 80, 2, 86_400, 1),
    ),
}


@pytest.mark.parametrize("name", PRESETS)
def test_a_preset_reads_the_columns_of_its_data_set(tmp_path: Path, name: str) -> None:
    header, row, expected = SAMPLES[name]
    path = tmp_path / "jobs.csv"
    path.write_text(f"{header}\n{row}\n")
    trace = read_trace(path, reading_of(ReadingOptions(preset=name)))
    job = prepare(trace, requests="as-logged" if "limit" in PRESETS[name] else "actual", recorded=True)[0]
    assert (job.wait_time, job.run_time, job.processors, job.nodes, job.requested_time, job.status) == expected


@pytest.mark.parametrize("name", sorted({*PRESETS} - {"lanl"}))
def test_a_table_of_a_data_set_names_its_preset(tmp_path: Path, name: str) -> None:
    header, row, _ = SAMPLES[name]
    path = tmp_path / "jobs.csv"
    path.write_text(f"{header}\n{row}\n")
    with pytest.raises(TraceError, match=f"give --preset {name}, whose columns it has, or --columns "):
        read_trace(path)


def test_columns_override_a_preset() -> None:
    columns = reading_of(ReadingOptions(preset="pm100", columns=["processors=num_cores_req"])).columns
    assert (columns["processors"], columns["limit"]) == ("num_cores_req", "time_limit:min")


def test_an_unknown_preset_is_named_with_those_that_exist() -> None:
    with pytest.raises(SettingsError, match="--preset 'pm10': expected one of acme, alcf, "):
        reading_of(ReadingOptions(preset="pm10"))


def test_the_page_of_data_sets_has_each_preset() -> None:
    page = (ROOT / "docs" / "datasets.md").read_text()
    assert [name for name in PRESETS if f"--preset {name}" not in page] == []
    rows = [line for line in page.splitlines() if line.startswith("| ") and not line.startswith("| data set")]
    assert len(rows) == 20
    assert all(row.split("|")[4].split()[0] in ("data", "rows", "no") for row in rows)
