"""Lines of JSON: each is checked, what they say together is told, and what is sent over HTTP is kept and answered."""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import pytest
from aiohttp import ClientSession
from prometheus_client import CollectorRegistry

from shadowtime.services.follower.io.http_inbox import MAX_BODY, MEDIA_TYPE
from shadowtime.services.follower.io.json_lines import Lines, read_line
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    JobEnded,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
)
from shadowtime.shared.streaming.web.server import address_of, listening
from shadowtime.shared.streaming.worker.health import worker_pages
from tests.support.lives import lives_told
from tests.support.rejections import as_log, rejected
from tests.unit.services.follower.driven import Driven
from tests.unit.services.follower.imagined import Lived, lived

BEGIN = 1_795_325_400
POOLS = '[[pool]]\nname = "batch"\nprocessors = 16\npartitions = ["batch"]\n'
TOKEN = "a-token-of-the-site"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [float(BEGIN)]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return lambda second: now.__setitem__(0, second)


def given(folder: Path, **more: Any) -> FollowOptions:
    (folder / "pools.toml").write_text(POOLS)
    (folder / "lines").mkdir(exist_ok=True)
    return replace(FollowOptions(every=0, place=folder / "lines", pools=folder / "pools.toml"), **more)


def line(**fields: Any) -> str:
    return json.dumps({"submit": BEGIN, "processors": 4, "partition": "batch", "limit": 600} | fields) + "\n"


def as_line(life: Lived, at: int) -> str | None:
    """Return what may be said of an imagined life at a time."""
    observation = life.seen(at, accounted=True)
    if observation is None:
        return None
    told = {
        "job": life.key.job,
        "task": None if life.key.task < 0 else life.key.task,
        "submit": BEGIN + life.key.submit,
        "eligible": BEGIN + life.eligible,
        "start": None if observation.start is None else BEGIN + observation.start,
        "end": None if observation.end is None else BEGIN + observation.end,
        "user": observation.user,
        "limit": observation.limit,
        "processors": observation.processors,
    }
    return line(**{name: value for name, value in told.items() if value is not None})


@pytest.mark.parametrize("seed", range(10))
def test_what_lines_say_is_told_however_often_they_come(
    tmp_path: Path, clock: Callable[[float], None], seed: int
) -> None:
    random = Random(seed)
    lives = lived(seed)
    with Driven(lambda: Lines(given(tmp_path)), random, kills=0.1 if seed % 2 else 0) as driven:
        file = tmp_path / "lines" / "all.jsonl"
        said: dict[Lived, str] = {}
        for at in range(1, 6_000, 7):
            clock(BEGIN + at)
            with file.open("a") as added:
                for life in random.sample(lives, len(lives)):
                    text = as_line(life, at)
                    if text is not None and (said.get(life) != text or random.random() < 0.01):
                        said[life] = text
                        added.write(text)
                added.write(json.dumps({"now": BEGIN + at}) + "\n")
            driven.listen()
        driven.listen(3)
    told = lives_told([driven.opened, *driven.events])
    for life in lives:
        if life.start is None and life.end < life.eligible:
            continue
        found = told[life.number]
        assert (found.start, found.end) == (None if life.start is None else BEGIN + life.start, BEGIN + life.end)
        assert found.limit == life.limit
    assert driven.source.load.late == 0


def test_pools_and_what_is_expected_are_told(tmp_path: Path, clock: Callable[[float], None]) -> None:
    with Driven(lambda: Lines(given(tmp_path)), Random(0), kills=0) as driven:
        (tmp_path / "lines" / "1.jsonl").write_text(
            line(job=1, expected=BEGIN + 900)
            + line(job=2, start=BEGIN, end=BEGIN + 3, outcome="failed")
            + line(job=3, eligible=BEGIN + 1, end=BEGIN + 2)
            + line(job=4, held=True)
            + '{"pool": "batch", "processors": 12}\n{"pool": "none", "processors": 12}\n'
        )
        clock(BEGIN + 30)
        driven.listen(3)
    kinds = [event.kind for event in driven.events if event.kind != "SchedulingPoint"]
    assert kinds.count("JobSubmitted") == 3
    (ended,) = (event for event in driven.events if isinstance(event, JobEnded))
    (expected,) = (event for event in driven.events if isinstance(event, JobExpected))
    (withdrawn,) = (event for event in driven.events if isinstance(event, JobWithdrawn))
    (capacity,) = (event for event in driven.events if isinstance(event, CapacityChanged))
    assert (ended.outcome, ended.run_time, withdrawn.job_number, capacity.processors) == ("failed", 3, 3, 12)
    assert expected.start == driven.opened.time + 900
    assert driven.source.load.refused == 1


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "Invalid JSON"),
        ("[1]", "line: expected a table of keys and values"),
        ("{}", "expected the key job, pool or now, found nothing"),
        ('{"jobs": 1}', "found 'jobs'"),
        ('{"job": 1}', "submit: it is missing"),
        ('{"job": 1, "submit": 5, "processors": 4, "colour": "red"}', "colour: there is no such key"),
        ('{"job": 100000000, "submit": 5, "processors": 4}', "job: expected a number less than"),
        ('{"job": 1, "submit": 1795325400.5, "processors": 4}', "submit"),
        ('{"job": 1, "submit": "22.11.2026", "processors": 4}', "expected a Unix time in seconds"),
        ('{"job": 1, "submit": "2026-11-22T05:31:13", "processors": 4}', "a date needs a time zone"),
        ('{"job": 1, "submit": 9, "processors": 4, "start": 9, "end": 8}', "end 8 is before start 9"),
        ('{"now": "soon"}', "now"),
        ('{"job": 1, "submit": 9, "processors": 4, "priority": -1}', "priority"),
        ('{"a\\u001b[31m": 1}', r"found 'a\\x1b"),
    ],
)
def test_what_is_wrong_with_a_line_is_said(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_line(text)


def test_dates_with_a_zone_are_instants() -> None:
    (observation,) = read_line('{"job": 1, "submit": "2026-11-22T06:30:00+01:00", "processors": 4}').observations
    assert observation.key.submit == BEGIN


@asynccontextmanager
async def inbox(folder: Path, **more: Any) -> AsyncIterator[tuple[str, Lines]]:
    source = Lines(given(folder, token=TOKEN, **more))
    pages = worker_pages(lambda: (True, {}), CollectorRegistry())
    routes = source.routes()
    pages.add_routes(routes)
    async with listening(pages, "127.0.0.1", 0, bodies={route.path for route in routes}) as server:
        yield address_of(server) + "lines", source


def sent(body: str | bytes) -> BytesIO:
    return BytesIO(body.encode() if isinstance(body, str) else body)


HEADERS = {"Authorization": f"Bearer {TOKEN}", "Content-Type": MEDIA_TYPE}


def test_each_line_that_is_sent_is_answered_and_kept(tmp_path: Path) -> None:
    async def send() -> None:
        async with inbox(tmp_path, history=30 * 86_400) as (url, source), ClientSession() as session:
            body = line(job=1) + "\n" + '{"job": 2}\n' + line(job=3).strip()
            async with session.post(url, data=body, headers=HEADERS) as answer:
                told = [json.loads(each) for each in (await answer.text()).splitlines()]
                assert (answer.status, [each["line"] for each in told]) == (422, [1, 3, 4])
                assert [each.get("error") for each in told] == [None, "submit: it is missing", None]
            (file,) = (tmp_path / "lines").glob("*.jsonl")
            file.write_text(file.read_text() + '{"job": ')  # a writer that was killed
            async with session.post(url, data=line(job=5), headers=HEADERS) as answer:
                assert (answer.status, await answer.json(content_type=MEDIA_TYPE)) == (200, {"line": 1})
            await source.meet()
            await source.listen()
            await source.listen()
            submitted = []
            while source.next_time() is not None:
                submitted += [each for each in source.next_instant() if isinstance(each, JobSubmitted)]
            assert {each.job_number for each in submitted} == {1, 3, 5}
            assert source.load.refused == 1
            await source.close()

    asyncio.run(send())


@pytest.mark.parametrize(
    ("headers", "body", "status"),
    [
        ({"Content-Type": MEDIA_TYPE}, "{}", 401),
        ({**HEADERS, "Authorization": "Bearer x"}, "{}", 401),
        ({**HEADERS, "Content-Type": "text/plain"}, "{}", 415),
        (HEADERS, b"x" * (MAX_BODY + 1), 413),
        (HEADERS, b"\xff\xfe\n" * 3, 422),
        (HEADERS, b"x" * 70_000, 431),
        (HEADERS, "[" * 30_000, 422),
    ],
)
def test_what_is_no_line_is_refused(tmp_path: Path, headers: dict[str, str], body: str | bytes, status: int) -> None:
    async def send() -> None:
        async with inbox(tmp_path) as (url, _), ClientSession() as session:
            async with session.post(url, data=sent(body), headers=headers) as answer:
                assert answer.status == status
            async with session.post(url.removesuffix("lines") + "health", data=sent(body), headers=headers) as answer:
                assert answer.status in (405, 413, 431)
            assert not list((tmp_path / "lines").glob("*.jsonl"))

    asyncio.run(send())


def test_a_machine_of_one_pool_that_names_no_partition_has_every_job(
    tmp_path: Path, clock: Callable[[float], None]
) -> None:
    told = given(tmp_path)
    (tmp_path / "pools.toml").write_text('[[pool]]\nname = "all"\nprocessors = 16\n')
    with Driven(lambda: Lines(told), Random(0), kills=0.3) as driven:
        (tmp_path / "lines" / "1.jsonl").write_text(line(job=1, partition="any") + line(job=2, partition=""))
        clock(BEGIN + 30)
        driven.listen(4)
    assert [event.job_number for event in driven.events if isinstance(event, JobSubmitted)] == [1, 2]


def test_what_is_left_out_is_said(
    tmp_path: Path, clock: Callable[[float], None], caplog: pytest.LogCaptureFixture
) -> None:
    with Driven(lambda: Lines(given(tmp_path)), Random(0), kills=0) as driven:
        (tmp_path / "lines" / "1.jsonl").write_text(line(job=1, partition="other"))
        clock(BEGIN + 30)
        driven.listen(2)
    assert "left out so far: 1 on a node and in a partition of no pool" in caplog.text


def test_nothing_is_told_while_the_folder_cannot_be_read(tmp_path: Path, clock: Callable[[float], None]) -> None:
    with Driven(lambda: Lines(given(tmp_path)), Random(0), kills=0) as driven:
        clock(BEGIN + 30)
        driven.listen(2)
        before = list(driven.events)
        (tmp_path / "lines").rename(tmp_path / "away")
        clock(BEGIN + 900)
        driven.listen(2)
        assert driven.events == before
        assert driven.source.load.failures == 2
        assert driven.source.load.behind > 600
        (tmp_path / "away").rename(tmp_path / "lines")
        driven.listen(2)
    assert len(driven.events) > len(before)


def follow_on(tmp_path: Path, clock: Callable[[float], None], *steps: tuple[int, str], pools: str = POOLS) -> Driven:
    """Return what is told when lines come at seconds after the beginning; all stages take it."""
    told = given(tmp_path)
    (tmp_path / "pools.toml").write_text(pools)
    with Driven(lambda: Lines(told), Random(0), kills=0) as driven:
        for second, text in steps:
            with (tmp_path / "lines" / "1.jsonl").open("a") as file:
                file.write(text)
            clock(BEGIN + second)
            driven.listen(2)
    assert rejected(as_log([driven.opened, *driven.events])) == []
    return driven


LIMITED = POOLS.replace("processors = 16", "processors = 16\nmemory = 1000")
TWO = POOLS + '[[pool]]\nname = "big"\nprocessors = 64\npartitions = ["big"]\n'


@pytest.mark.parametrize(
    ("pools", "steps"),
    [
        (POOLS, [(30, line(job=1)), (60, line(job=1, processors=1000)), (90, line(job=1, start=BEGIN + 80))]),
        (POOLS, [(30, line(job=1, start=BEGIN + 2)), (60, line(job=1, start=BEGIN + 2, processors=1000))]),
        (POOLS, [(30, line(job=1) + line(job=1, nodes=2**39) + line(job=1, memory=2**39))]),
        (TWO, [(30, line(job=1, partition="big", processors=40)), (60, line(job=1, partition="batch", processors=40))]),
        (TWO, [(30, line(job=1, partition="big", processors=40) + line(job=1, partition="nope", processors=40))]),
        (
            POOLS,
            [
                (20, '{"pool": "batch", "processors": 32}\n'),
                (30, line(job=1, processors=20, held=True)),
                (40, '{"pool": "batch", "processors": 16}\n'),
                (60, line(job=1, processors=20, eligible=BEGIN + 55)),
            ],
        ),
        (
            POOLS,
            [
                (30, line(job=1, start=BEGIN + 1)),
                (100, line(job=1, start=BEGIN + 1, suspended=True)),
                (130, line(job=1, start=BEGIN + 1, end=BEGIN + 50)),
            ],
        ),
    ],
)
def test_no_stage_rejects_what_lines_tell(
    tmp_path: Path, clock: Callable[[float], None], pools: str, steps: list[tuple[int, str]]
) -> None:
    driven = follow_on(tmp_path, clock, *steps, (200, ""), pools=pools)
    assert len([event for event in driven.events if isinstance(event, JobEnded)]) == ("end" in steps[-1][1])


def test_a_job_that_fits_once_its_pool_has_grown_is_told(tmp_path: Path, clock: Callable[[float], None]) -> None:
    text = '{"pool": "batch", "processors": 32}\n' + line(job=1, processors=20)
    driven = follow_on(tmp_path, clock, (30, text), (40, ""), (50, ""))
    assert [event.job_number for event in driven.events if isinstance(event, JobSubmitted)] == [1]


def test_what_a_line_does_not_say_of_a_pool_is_as_before(tmp_path: Path, clock: Callable[[float], None]) -> None:
    pool = '{"pool": "batch", "processors": 12}\n'
    driven = follow_on(tmp_path, clock, (30, pool), (40, ""), (50, pool), (60, ""), pools=LIMITED)
    (told,) = (event for event in driven.events if isinstance(event, CapacityChanged))
    assert (told.processors, told.memory) == (12, 1000)


def test_a_date_without_its_zone_is_refused_each_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="a date needs a time zone"):
            read_line('{"job": 1, "submit": "2026-11-22T05:31:13", "processors": 4}')


def test_what_is_sent_goes_behind_all_that_was_kept(tmp_path: Path) -> None:
    async def send() -> None:
        async with inbox(tmp_path) as (url, _), ClientSession() as session:
            (tmp_path / "lines" / "99990101.jsonl").write_text(line(job=1))
            async with session.post(url, data=sent(line(job=2)), headers=HEADERS) as answer:
                assert answer.status == 200
            assert (tmp_path / "lines" / "99990101.jsonl").read_text() == line(job=1) + line(job=2)
            async with session.post(url, data=b"{}", headers=HEADERS | {"Authorization": "Bearer \udcff"}) as answer:
                assert answer.status == 401

    asyncio.run(send())


def test_what_is_wrong_is_said_before_anybody_is_asked(tmp_path: Path) -> None:
    told = given(tmp_path)
    with pytest.raises(SettingsError, match=r"--from .*gone cannot be read: No such file"):
        Lines(replace(told, place=tmp_path / "gone"))
    (tmp_path / "pools.toml").write_text("[pool]\n")
    with pytest.raises(SettingsError, match=r"--pools .*pools.toml: expected "):
        Lines(told)


def test_what_is_sent_needs_a_folder(tmp_path: Path) -> None:
    (tmp_path / "pools.toml").write_text(POOLS)
    (tmp_path / "file").touch()
    with pytest.raises(SettingsError, match="expected a folder, because lines arrive over HTTP"):
        Lines(FollowOptions(place=tmp_path / "file", pools=tmp_path / "pools.toml", token=TOKEN))


def test_a_started_job_is_told_with_its_size(tmp_path: Path, clock: Callable[[float], None]) -> None:
    with Driven(lambda: Lines(given(tmp_path)), Random(0), kills=0) as driven:
        (tmp_path / "lines" / "1.jsonl").write_text(line(job=1) + line(job=1, start=BEGIN + 2, processors=8))
        clock(BEGIN + 30)
        driven.listen(3)
    (started,) = (event for event in driven.events if isinstance(event, JobStarted))
    assert started.processors == 8
