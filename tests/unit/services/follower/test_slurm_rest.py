"""Tests of a Slurm asked through slurmrestd: what it answers is read, or refused in one line with the path."""

import time
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from shadowtime.services.follower.cluster.observation import LifeKey
from shadowtime.services.follower.io import rest_client as slurmrestd
from shadowtime.services.follower.io.slurm import SlurmSource
from shadowtime.services.follower.io.slurm_commands import SlurmNodes
from shadowtime.services.follower.io.slurm_rest import ByRest
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.errors import FollowError, SettingsError
from tests.unit.services.follower.slurmrestd_answers import (
    ACCOUNTED,
    DIAG,
    JOB,
    NODES,
    PARTITIONS,
    asked,
    http,
    listing,
    newer,
)

JOBS = "/slurm/v0.0.38/jobs"


MACHINE = SlurmNodes([], {})


def answers(jobs: bytes | None) -> dict[str, bytes | None]:
    return {"/openapi/v3": listing(36, 38), JOBS: jobs}


def ask_jobs(rest: ByRest) -> Any:
    return rest.jobs(MACHINE)


def test_jobs_machine_and_load() -> None:
    async def ask(rest: ByRest) -> Any:
        return await rest.load(), await rest.machine(), await rest.jobs(SlurmNodes([], {"batch": 1}))

    (load, machine, jobs), requests = asked(
        {
            "/openapi/v3": listing(42, 43, 44, 45),
            "/slurm/v0.0.44/diag": http({"statistics": newer(DIAG), "errors": []}),
            "/slurm/v0.0.44/nodes": http({"nodes": newer(NODES), "errors": []}),
            "/slurm/v0.0.44/partitions": http({"partitions": newer(PARTITIONS), "errors": []}),
            "/slurm/v0.0.44/jobs": http({"jobs": [newer(JOB)], "errors": []}),
        },
        ask,
    )
    assert (load.requests, [node.name for node in machine.nodes]) == (408, ["n01", "n02", "n03"])
    assert [observation.priority for observation in jobs.observations] == [2**32 + 10009]
    assert len(requests) == 5  # the version is asked for once


@pytest.mark.parametrize(("has", "used"), [((36, 37, 38), 38), ((38, 39), 38), ((38, 40, 41), 41), ((44, 45, 46), 44)])
def test_the_newest_version_that_is_understood_is_used(has: tuple[int, ...], used: int) -> None:
    jobs = http({"jobs": [], "errors": []})
    assert asked({"/openapi/v3": listing(*has), f"/slurm/v0.0.{used}/jobs": jobs}, ask_jobs)[0].observations == []


def test_after_an_update_of_slurm_the_version_is_asked_for_again() -> None:
    told: dict[str, bytes | None] = {"/openapi/v3": listing(38), JOBS: http({"jobs": []})}

    async def ask(rest: ByRest) -> None:
        await rest.jobs(MACHINE)
        del told[JOBS]
        told["/openapi/v3"], told["/slurm/v0.0.41/jobs"] = listing(41), http({"jobs": []})
        with pytest.raises(FollowError, match=r"v0\.0\.38/jobs: 404 NOT FOUND: Unable find"):
            await rest.jobs(MACHINE)
        await rest.jobs(MACHINE)

    asked(told, ask)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (http(b"<html>\n<h1>Welcome</h1>"), "the answer is not JSON: '<html>"),
        (http(b'{"jobs": [{"job_id": 1'), "the answer is not JSON"),
        (b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"jobs": [', "Not enough data"),
        (b"", "Server disconnected"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "Bad status line"),
        (http(b"[" * 100_000), "the answer is not JSON"),
        (http(b'{"jobs": ' + b"9" * 5000 + b"}"), "the answer is not JSON"),
        (http([1]), "the answer is not JSON"),
        (http(b"Authentication failure\r\n", "401 UNAUTHORIZED"), "401 UNAUTHORIZED: Authentication failure"),
        (http(b"", "302 Found", Location="http://127.0.0.1:1/"), "302 Found"),
        (http(b"", "304 Not Modified"), "304 Not Modified"),
        (
            http({"errors": [{"error": "Unable to contact slurm controller", "error_number": 1}]}, "500 INTERNAL"),
            "Unable to contact slurm controller",
        ),
        (http({"jobs": [], "errors": [{"error_number": 9, "error": "a\nb\x1b[2J"}]}), "a b?[2J"),
        (http({"jobs": [], "errors": [{}]}), "an error without a description"),
        (http({"errors": []}), "the answer has no jobs"),
        (http({"jobs": {}}), "jobs: expected a list of objects, found '{}'"),
        (http({"jobs": [1]}), "jobs: expected a list of objects, found '[1]'"),
        (http({"jobs": [{"job_id": 5, "job_state": "PENDING", "submit_time": 7}]}), "job '5': RestartCnt is ''"),
        (http({"jobs": [JOB | {"cpus": [8]}]}), "job '286': NumCPUs is '[8]'"),
    ],
)
def test_a_bad_answer_is_refused_in_one_line_with_the_path(answer: bytes, told: str) -> None:
    with pytest.raises(FollowError) as raised:
        asked(answers(answer), ask_jobs)
    said = str(raised.value)
    assert said.startswith(JOBS)
    assert told in said
    assert said.isprintable()
    assert len(said) < 500


def test_an_answer_without_end_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slurmrestd, "MAX_OUTPUT", 10_000)
    with pytest.raises(FollowError, match=r"/jobs: the answer has more than 10,000 bytes"):
        asked(answers(b"HTTP/1.1 200 OK\r\n\r\n" + b" " * 200_000), ask_jobs)


@pytest.mark.parametrize("answer", [None, b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"jobs": ['])
def test_an_answer_that_does_not_come_is_not_waited_for(answer: bytes | None) -> None:
    began = time.monotonic()
    with pytest.raises(FollowError, match=r"^/slurm/v0\.0\.38/jobs"):
        asked(answers(answer), ask_jobs, {"timeout": 0.5})
    assert time.monotonic() - began < 10


def test_an_answer_has_all_the_time_of_the_options(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(aiohttp.client, "DEFAULT_TIMEOUT", aiohttp.ClientTimeout(total=0.2))
    began = time.monotonic()
    with pytest.raises(FollowError, match=r"was not answered in 0\.8 s; increase --timeout"):
        asked(answers(None), ask_jobs, {"timeout": 0.8})
    assert time.monotonic() - began >= 0.8


@pytest.mark.parametrize(
    ("paths", "told"),
    [
        (http({"paths": {}}), r"/openapi/v3: expected one of v0\.0\.38, v0\.0\.40.*, found no version"),
        (listing(35, 36), r"found v0\.0\.35, v0\.0\.36"),
        (http({"paths": 5}), "paths: expected an object"),
        (http({}), "the answer has no paths"),
        (http(b"no", "404 NOT FOUND"), "/openapi/v3: 404 NOT FOUND: no"),
    ],
)
def test_a_slurm_of_which_nothing_is_known_is_refused(paths: bytes, told: str) -> None:
    with pytest.raises(FollowError, match=told):
        asked({"/openapi/v3": paths}, ask_jobs)


def test_nobody_there(tmp_path: Path) -> None:
    with pytest.raises(FollowError, match="/openapi/v3: Cannot connect"):
        asked({}, ask_jobs, {"rest": f"unix:{tmp_path}/none"})


def test_a_clock_that_we_may_not_read_is_unknown() -> None:
    denied = http({"errors": [{"error": "Access/permission denied", "error_number": 2002}]}, "500 INTERNAL")
    told: dict[str, bytes | None] = {"/openapi/v3": listing(38), "/slurm/v0.0.38/diag": denied}
    assert asked(told, lambda rest: rest.load())[0] is None


def test_the_past() -> None:
    waits = ACCOUNTED | {
        "job_id": 14,
        "array": {"job_id": 14, "task": "0x1248", "task_id": None},
        "state": {"current": "PENDING", "reason": "Resources"},
        "time": ACCOUNTED["time"] | {"start": 0, "end": 0, "elapsed": 0, "limit": None},
        "tres": ACCOUNTED["tres"] | {"allocated": []},
        "name": "a|b\nc",
    }
    task = ACCOUNTED | {"job_id": 15, "array": {"job_id": 14, "task": "", "task_id": 0}}
    cancelled = ACCOUNTED | {
        "job_id": 16,
        "state": {"current": "CANCELLED", "reason": "None"},
        "time": ACCOUNTED["time"] | {"start": None, "elapsed": 0},
        "tres": ACCOUNTED["tres"] | {"allocated": []},
    }
    rows = [ACCOUNTED, waits, task, cancelled]

    def past(version: int, told: Any) -> tuple[Any, list[str]]:
        paths = {"/openapi/v3": listing(version), f"/slurmdb/v0.0.{version}/jobs": http({"jobs": told, "errors": []})}
        return asked(paths, lambda rest: rest.accounted(1795325000, 1795326000))

    observations, (_, request) = past(38, rows)
    unset = newer(cancelled)
    unset["time"]["start"] = 2**32 - 1  # it does not say that this is none
    newer_sights, (_, newer_request) = past(44, [*newer(rows[:3]), unset])
    assert newer_sights == observations
    assert "?skip_steps=true&start_time=uts1795325000&end_time=uts1795326000 " in request
    assert "&show_duplicates=true" in newer_request
    found = {observation.key: observation for observation in observations}
    assert {(key.job, key.task) for key in found} == {(39, -1), (14, 0), (14, 3), (14, 6), (14, 9), (14, 12), (16, -1)}
    ran, waiting = found[LifeKey(39, -1, 1795325477)], found[LifeKey(14, 3, 1795325477)]
    assert (ran.state, ran.outcome, ran.start, ran.end, ran.run_time) == ("over", "killed", 1795325493, 1795325494, 1)
    assert (ran.limit, ran.processors, ran.nodes, ran.memory, ran.gpus) == (300, 16, 6, 14400, 2)
    assert (ran.user, ran.account, ran.partition, ran.node_list) == ("user2", "projecta", "batch", "n[05-10]")
    assert (waiting.state, waiting.start, waiting.unlimited, waiting.job_name) == ("waiting", None, True, "a|b")
    assert found[LifeKey(16, -1, 1795325477)].start is None


def test_some_jobs_of_the_past_are_asked_for_one_by_one() -> None:
    nothing = http({"jobs": [], "errors": [{"error": "Nothing found with query", "error_number": 9003}]})
    told: dict[str, bytes | None] = {
        "/openapi/v3": listing(38),
        "/slurmdb/v0.0.38/job/38": nothing,
        "/slurmdb/v0.0.38/job/39": http({"jobs": [ACCOUNTED], "errors": []}),
    }

    async def ask(rest: ByRest) -> Any:
        return [await rest.accounted(first, jobs=[38, 39]) for first in (1795325000, 1795326000)]

    found, requests = asked(told, ask)
    assert [len(observations) for observations in found] == [1, 0]  # another job had its number long ago
    assert len(requests) == 5


def test_rows_of_accounting_that_are_not_understood_are_left_out_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    async def ask(rest: ByRest) -> Any:
        return await rest.accounted(1795325000), rest.refused

    rows = [ACCOUNTED | {"time": ACCOUNTED["time"] | {"submission": "today"}}]
    told: dict[str, bytes | None] = {"/openapi/v3": listing(38), "/slurmdb/v0.0.38/jobs": http({"jobs": rows})}
    with caplog.at_level("WARNING", "shadowtime.follow.accounting"):
        (observations, refused), _ = asked(told, ask)
    assert (observations, refused) == ([], 1)
    assert "jobs: left out unreadable rows: 1, such as line 2: Submit 'today' is not a time" in caplog.text
    told["/slurmdb/v0.0.38/jobs"] = http({"jobs": rows * 11})
    with pytest.raises(FollowError, match=r"^/slurmdb/v0\.0\.38/jobs: 11 of 11 rows cannot be read"):
        asked(told, ask)


def test_the_token_is_read_anew_each_time_and_never_shown(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("SLURM_JWT=eyJ.first\n")

    async def ask(rest: ByRest) -> None:
        with pytest.raises(FollowError) as raised:
            await rest.jobs(MACHINE)
        assert "first" not in str(raised.value)
        token.write_text("eyJ.second")
        with pytest.raises(FollowError):
            await rest.jobs(MACHINE)
        token.unlink()
        with pytest.raises(FollowError, match=r"--rest-token-file .*No such file"):
            await rest.jobs(MACHINE)

    _, requests = asked(answers(http(b"", "401 UNAUTHORIZED")), ask, {"rest_token_file": token})
    assert "X-SLURM-USER-NAME: shadowtime\r\n" in requests[0]
    tokens = [line for request in requests for line in request.split("\r\n") if "TOKEN" in line]
    assert tokens == ["X-SLURM-USER-TOKEN: eyJ.first"] * 2 + ["X-SLURM-USER-TOKEN: eyJ.second"]


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"rest": "localhost:6820"}, "--rest: 'localhost:6820' is not a URL of a server"),
        ({"rest": "unix:socket"}, "--rest: 'unix:socket' is not a URL"),
        ({"rest": "http://me:secret@head:6820"}, "--rest: expected only scheme, host, port and path"),
        ({"rest": "http://head:6820/?a=b"}, "--rest: expected only scheme, host, port and path"),
        ({"rest": "http://head:6820", "rest_user": "two words"}, "--rest-user: it has a space"),
        ({"rest": "http://head", "rest_token_file": Path("/none")}, "--rest-token-file /none: .*No such file"),
        ({"rest_user": "me"}, "--rest-user needs --rest"),
        ({"rest_token_file": Path("/none")}, "--rest-token-file needs --rest"),
        ({"rest": "unix:/run/s", "via": ("ssh", "login")}, "--via and --rest exclude each other"),
    ],
)
def test_options_that_cannot_be_meant_are_refused(given: dict[str, Any], told: str) -> None:
    def follow() -> None:
        FollowOptions(**given).require_only("slurm", SlurmSource.takes)
        SlurmSource(FollowOptions(**given))

    with pytest.raises(SettingsError, match=told) as raised:
        follow()
    assert "secret" not in str(raised.value)


def test_only_a_slurm_is_asked_through_slurmrestd() -> None:
    with pytest.raises(SettingsError, match="--rest does not apply to pbs"):
        FollowOptions(rest="unix:/run/s").require_only("pbs", ())


def test_a_user_without_a_name_is_asked_for_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def getuser() -> str:
        raise KeyError("getpwuid(): uid not found: 12345")

    monkeypatch.setattr("getpass.getuser", getuser)
    with pytest.raises(SettingsError, match=r"^--rest-user: your user has no name on this machine"):
        slurmrestd.Slurmrestd(FollowOptions(rest="http://localhost:6820"))
