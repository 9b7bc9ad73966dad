"""Answers of slurmrestd, small ones, in the dialect of 22.05 and in that of 25.11; and a server that gives them."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from shadowtime.services.follower.io.slurm_rest import ByRest
from shadowtime.services.follower.options import FollowOptions

JOB: dict[str, Any] = {
    "account": "projecta",
    "array_job_id": 0,
    "array_task_id": None,
    "array_task_string": "",
    "cpus": 8,
    "eligible_time": 1795541140,
    "end_time": 1795541580,
    "exit_code": 0,
    "job_id": 286,
    "job_state": "PENDING",
    "name": "plain2",
    "node_count": 2,
    "nodes": "",
    "partition": "batch",
    "pre_sus_time": 0,
    "priority": 10009,
    "qos": "normal",
    "restart_cnt": 0,
    "shared": None,
    "start_time": 1795541220,
    "state_description": "",
    "state_reason": "Priority",
    "submit_time": 1795541140,
    "suspend_time": 0,
    "time_limit": 6,
    "tres_alloc_str": "",
    "tres_req_str": "cpu=8,mem=7200M,node=1,billing=8,gres/gpu=2",
    "user_id": 1002,
    "user_name": "user2",
}
RUNS = JOB | {"job_state": "RUNNING", "nodes": "n[01-02]", "state_reason": "None"}
OVER = RUNS | {"job_state": "COMPLETED"}

NODES: list[dict[str, Any]] = [
    {
        "name": name,
        "partitions": partitions,
        "state": state,
        "state_flags": flags,
        "cpus": 4,
        "alloc_cpus": held,
        "idle_cpus": 4 - held,
        "real_memory": 4000,
        "alloc_memory": 900 * held,
        "gres": gres,
    }
    for name, partitions, state, flags, held, gres in (
        ("n01", ["debug", "batch"], "mixed", [], 2, ""),
        ("n02", ["batch"], "mixed", ["DRAIN"], 1, "gpu:a100:2(S:0-1)"),
        ("n03", ["batch"], "idle", ["NOT_RESPONDING"], 0, ""),
        ("n04", [], "idle", [], 0, ""),
    )
]
PARTITIONS = [{"name": "debug", "priority_tier": 20}, {"name": "batch", "priority_tier": 10}]

DIAG = {
    "req_time": 1795541201,
    "req_time_start": 1795541136,
    "dbd_agent_queue_size": 3,
    "rpcs_by_user": [
        {"user": "root", "user_id": 0, "count": 9, "average_time": 9, "total_time": 81},
        {"user": "shadowtime", "user_id": 1003, "count": 408, "average_time": 762, "total_time": 311154},
    ],
}

ACCOUNTED: dict[str, Any] = {
    "account": "projecta",
    "allocation_nodes": 6,
    "array": {"job_id": 0, "task": None, "task_id": None},
    "job_id": 39,
    "name": "plain1",
    "nodes": "n[05-10]",
    "partition": "batch",
    "qos": "normal",
    "required": {"CPUs": 16, "memory": 900},
    "state": {"current": "NODE_FAIL", "reason": "None"},
    "time": {
        "elapsed": 1,
        "eligible": 1795325477,
        "end": 1795325494,
        "limit": 5,
        "start": 1795325493,
        "submission": 1795325477,
        "suspended": 0,
    },
    "tres": {
        "allocated": [
            {"type": "cpu", "name": None, "id": 1, "count": 16},
            {"type": "mem", "name": None, "id": 2, "count": 14400},
            {"type": "energy", "name": None, "id": 3, "count": None},
            {"type": "node", "name": None, "id": 4, "count": 6},
            {"type": "gres", "name": "gpu:a100", "id": 1001, "count": 2},
        ],
        "requested": [{"type": "cpu", "name": None, "id": 1, "count": 16}],
    },
    "user": "user2",
}


def newer(told: Any, name: str = "") -> Any:
    """Return the same as 25.11 tells it."""
    plain = {"job_id", "user_id", "restart_cnt", "elapsed", "cores", "real_memory", "alloc_cpus", "total_time", "CPUs"}
    plain |= {"count", "id", "dbd_agent_queue_size", "submission", "start", "end", "eligible", "suspended", "memory"}
    numbers = {"array_job_id", "array_task_id", "task_id", "priority", "cpus"}
    if isinstance(told, list):
        return [newer(each, name) for each in told]
    if isinstance(told, dict):
        found = {each: newer(value, each) for each, value in told.items()}
        if "state_flags" in found:
            found |= {"state": [told["state"].upper(), *found.pop("state_flags")], "cpus": told["cpus"]}
            found |= {"alloc_idle_cpus": found.pop("idle_cpus"), "effective_cpus": told["cpus"]}
        if "priority_tier" in found:
            found = {"name": found["name"], "priority": {"job_factor": 1, "tier": told["priority_tier"]}}
        return found
    if name == "exit_code":
        status = {"set": True, "infinite": False, "number": told >> 8}
        return {
            "status": ["SUCCESS"],
            "return_code": status,
            "signal": {"id": {"set": bool(told & 127), "infinite": False, "number": told & 127}, "name": ""},
        }
    if name in ("job_state", "current", "shared"):
        return told.split("+") if told else []
    if name in ("time_limit", "limit"):
        return {"set": told is not None, "infinite": told is None, "number": told or 0}
    if name in numbers or (isinstance(told, int) and name not in plain):
        return {"set": told is not None, "infinite": False, "number": told or 0}
    return told


def http(body: Any, status: str = "200 OK", **headers: str) -> bytes:
    """Return an answer over HTTP."""
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    head = {"Content-Length": str(len(text)), "Content-Type": "application/json"} | headers
    return (
        "\r\n".join([f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in head.items()), "", ""]).encode()
        + text
    )


def listing(*versions: int) -> bytes:
    """Return what tells which versions there are."""
    paths: dict[str, Any] = {f"/{of}/v0.0.{version}/jobs/": {} for version in versions for of in ("slurm", "slurmdb")}
    return http({"openapi": "3.0.2", "paths": paths | {"/openapi/v3": {}}})


def asked(
    answers: Mapping[str, bytes | None], ask: Callable[[ByRest], Awaitable[Any]], given: dict[str, Any] | None = None
) -> tuple[Any, list[str]]:
    """Return what is made of answers by their paths, None for none at all, and what was asked."""
    requests: list[str] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            request = (await reader.readuntil(b"\r\n\r\n")).decode()
            requests.append(request)
            path = request.split(" ")[1].partition("?")[0]
            said = answers.get(path, http(b"Unable find requested URL.", "404 NOT FOUND"))
            if said is None:
                await asyncio.sleep(30)
            writer.write(said or b"")
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def run() -> Any:
        server = await asyncio.start_server(answer, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        rest = ByRest(FollowOptions(**{"rest": f"http://127.0.0.1:{port}", "rest_user": "shadowtime", **(given or {})}))
        try:
            return await ask(rest)
        finally:
            await rest.close()
            server.close()

    return asyncio.run(run()), requests
