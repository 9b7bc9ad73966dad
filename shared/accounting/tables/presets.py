"""Mappings of the columns of published data sets: `--preset NAME`."""

from collections.abc import Container, Mapping

from shadowtime.shared.accounting import parse_columns
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import quote

PRESETS: Mapping[str, str] = {
    "acme": "job_number=job_id,submit=submit_time,start=start_time,end=end_time,processors=cpu_num,nodes=node_num,"
    "gpus=gpu_num,user=user,state=state",
    "alcf": "job_number=COBALT_JOBID,submit=QUEUED_TIMESTAMP,start=START_TIMESTAMP,end=END_TIMESTAMP,"
    "limit=WALLTIME_SECONDS:s,processors=CORES_USED,nodes=NODES_REQUESTED,user=USERNAME_GENID,"
    "account=PROJECT_NAME_GENID,partition=QUEUE_NAME",
    "eagle": "job_number=job_id,submit=submit_time,start=start_time,end=end_time,limit=wallclock_req:s,"
    "processors=processors_req,nodes=nodes_req,gpus=gpus_req,user=user,account=account,partition=partition,qos=qos,"
    "state=state",
    "f-data": "job_number=jid,submit=adt,start=sdt,run_time=duration:s,limit=elpl:s,processors=cnumat,nodes=nnumr,"
    "user=usr,job_name=jnam,state=exit state",
    "helios": "job_number=job_id,submit=submit_time,start=start_time,end=end_time,processors=cpu_num,nodes=node_num,"
    "gpus=gpu_num,user=user,account=vc,job_name=jobname,state=state",
    "lanl": "submit=submit_time,start=start_time,end=end_time,limit=wallclock_limit,processors=tasks_requested,"
    "nodes=node_count,user=user_ID,account=group_ID,state=job_status",
    "pm100": "job_number=job_id,submit=submit_time,eligible=eligible_time,start=start_time,end=end_time,"
    "limit=time_limit:min,processors=num_cores_alloc,nodes=num_nodes_req,gpus=num_gpus_alloc,user=user_id,"
    "partition=partition,qos=qos,state=job_state",
    "slurm-database": "job_number=id_job,submit=time_submit,eligible=time_eligible,start=time_start,end=time_end,"
    "suspended=time_suspended:s,limit=timelimit:min,processors=cpus_req,nodes=nodes_alloc,user=id_user,"
    "partition=partition,state=state",
}
"""The columns of each data set, in the form of `--columns`. `docs/datasets.md` describes the data sets."""


def preset_columns(name: str) -> dict[str, str]:
    """Return the columns of a data set by our names of fields.

    Raise `SettingsError` if no data set has this name.

    >>> preset_columns("pm100")["limit"]
    'time_limit:min'
    """
    if name not in PRESETS:
        raise SettingsError(f"--preset {quote(name)}: expected one of {', '.join(PRESETS)}; see docs/datasets.md")
    return parse_columns([PRESETS[name]])


def preset_of(columns: Container[str]) -> str | None:
    """Return the data set whose columns are all among `columns`, the one with most of them; None if there is none.

    >>> preset_of(PRESETS["acme"].replace(",", "=").split("=")[1::2])
    'acme'
    """
    needed = {name: preset_columns(name).values() for name in PRESETS}
    there = [
        name
        for name, texts in needed.items()
        if all(text in columns or text.rpartition(":")[0] in columns for text in texts)
    ]
    return max(there, key=lambda name: len(needed[name]), default=None)
