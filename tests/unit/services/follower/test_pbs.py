"""What is told of a PBS is what its records tell, in the order of time, whoever dies meanwhile."""

import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from shadowtime.services.follower.io.pbs import Pbs
from shadowtime.services.follower.options import FollowOptions
from shadowtime.shared.accounting.job_numbers import LIFE, number_of
from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.messages import JobEnded, JobStarted, JobSubmitted, moment
from tests.support.lives import late, lives_told
from tests.support.slurm_samples import Life
from tests.unit.services.follower.driven import Driven

BEGIN = 1_795_325_400
POOLS = '[[pool]]\nname = "workq"\nprocessors = 64\npartitions = ["workq"]\n'


class Record(NamedTuple):
    time: int
    text: str


def record(second: int, kind: str, job: str, told: str) -> Record:
    date = datetime.fromtimestamp(second, UTC).strftime("%m/%d/%Y %H:%M:%S")
    return Record(second, f"{date};{kind};{job};{told}\n")


def lived(random: Random, jobs: int = 40) -> tuple[list[Record], dict[int, Life]]:
    """Return the records of some jobs, and what their lives were."""
    records: list[Record] = []
    lives: dict[int, Life] = {}
    for number in range(1, jobs + 1):
        task = random.choice((None, None, 3))
        job = f"{number}.head" if task is None else f"{number}[{task}].head"
        submit = BEGIN + random.randrange(2_000)
        limit, size = random.choice((60, 600)), random.choice((1, 4, 8))
        asked = f"user=eve queue=workq ctime={submit} etime={submit} Resource_List.ncpus={size} "
        asked += f"Resource_List.walltime={limit}"
        sized = random.random() < 0.7
        if task is None:
            records.append(record(submit, "Q", job, asked if sized else "queue=workq"))
        at = submit + random.choice((0, 5, 400))
        if random.random() < 0.15 and task is None and sized:
            records.append(record(at + 1, "D", job, "requestor=eve@head"))
            lives[number] = Life(submit, submit, None, at + 1, "cancelled", limit, size)
            continue
        index = 0
        if random.random() < 0.3:
            ran = f"{asked} start={at} exec_host=n1/0*{size}"
            records.append(record(at, "S", job, ran))
            records.append(record(at + 30, "R", job, f"{ran} Exit_status=-11"))
            lives[number_of(number, task)] = Life(submit, submit, at, at + 30, "killed", limit, size)
            submit, at, index = at + 30, at + 30 + random.choice((0, 9)), 1
        ran, end = f"{asked} start={at} exec_host=n1/0*{size}", at + random.choice((1, 50))
        records.append(record(at, "S", job, ran))
        records.append(record(end, "E", job, f"{ran} end={end} Exit_status=3 resources_used.walltime={end - at}"))
        lives[number_of(number, task, index)] = Life(submit, submit, at, end, "failed", limit, size)
    records.sort(key=lambda each: each.time)
    return records, lives


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    now = [float(BEGIN)]
    monkeypatch.setattr(time, "time", lambda: now[0])
    return lambda second: now.__setitem__(0, second)


def make(folder: Path) -> Pbs:
    (folder / "pools.toml").write_text(POOLS)
    (folder / "accounting").mkdir(exist_ok=True)
    return Pbs(FollowOptions(history=0, every=0, place=folder / "accounting", pools=folder / "pools.toml"))


@pytest.mark.parametrize("seed", range(12))
def test_the_log_tells_what_the_records_tell(tmp_path: Path, clock: Callable[[float], None], seed: int) -> None:
    random = Random(seed)
    records, lives = lived(random)
    with Driven(lambda: make(tmp_path), random, kills=0.1 if seed % 2 else 0.0) as driven:
        for day, part in enumerate((records[:50], records[50:])):
            while part:
                second = part[0].time
                clock(second + 1)
                with (tmp_path / "accounting" / str(20261122 + day)).open("a") as file:
                    while part and part[0].time == second:
                        file.write(part.pop(0).text)
                driven.listen(random.choice((1, 3)))
        clock(BEGIN + 5_000)
        driven.listen(10)
        told = lives_told([driven.opened, *driven.events])
        assert {number: told.get(number) for number in lives} == lives
        assert set(told) == set(lives)
        times = [event.time for event in driven.events]
        assert times == sorted(times)


def test_a_job_whose_size_nobody_tells_waits_until_it_starts(tmp_path: Path, clock: Callable[[float], None]) -> None:
    with Driven(lambda: make(tmp_path), Random(0), kills=0) as driven:
        file = tmp_path / "accounting" / "20261122"
        file.write_text(record(BEGIN + 5, "Q", "7.head", "queue=workq").text)
        clock(BEGIN + 20)
        driven.listen(3)
        assert not [event for event in driven.events if isinstance(event, JobSubmitted)]
        ran = f"user=eve queue=workq ctime={BEGIN + 5} etime={BEGIN + 5} start={BEGIN + 30} exec_host=n1/0*8"
        with file.open("a") as added:
            added.write(record(BEGIN + 30, "S", "7.head", ran).text)
        clock(BEGIN + 31)
        driven.listen(3)
        submitted, started = (event for event in driven.events if isinstance(event, JobSubmitted | JobStarted))
        assert isinstance(submitted, JobSubmitted)
        assert (submitted.since, submitted.requested_processors) == (started.time - 25, 8)
        assert late(driven.events) == 1


def test_a_past_of_many_records_is_told_first(tmp_path: Path, clock: Callable[[float], None]) -> None:
    random = Random(1)
    records, lives = lived(random, jobs=300)
    source = make(tmp_path)
    (tmp_path / "accounting" / "20261122").write_text("".join(each.text for each in records))
    given = FollowOptions(history=86_400, every=0, place=source.place, pools=tmp_path / "pools.toml")
    clock(BEGIN + 10_000)
    with Driven(lambda: Pbs(given), random, kills=0) as driven:
        driven.listen(4)
        told = lives_told([driven.opened, *driven.events])
        assert {number: told.get(number) for number in lives} == lives
        ends = [event for event in driven.events if isinstance(event, JobEnded)]
        assert all(event.time == moment(event) for event in ends)


@pytest.mark.parametrize(
    "line",
    [
        "no record",
        "13/41/2026 05:30:00;S;8.head;user=eve",
        f"11/22/2026 05:30:00;S;9.head;user=eve queue=workq start={2**53} ctime=1 etime=1 exec_host=n1/0*4",
        "11/22/2026 05:30:00;S;9.head;user=eve queue=nowhere ctime=1795325400 start=1795325400 exec_host=n1/0*4",
        "11/22/2026 05:30:00;S;9.head;queue=workq ctime=1795325400 start=1795325400 exec_host=n1/0*65",
        "11/22/2026 05:30:00;E;9.head;queue=workq ctime=1795325400 start=1795325409 end=1795325401 exec_host=n1/0*4",
        f"11/22/2026 05:30:00;S;9.head;queue=workq ctime=1795325400 start=1795325400 exec_host=n1/0*4 "
        f"Resource_List.mem={2**49}mb Resource_List.nodect={2**50}",
        "\0\x1b[31m;;;;",
        "11/22/2026 05:30:00;S;9.head;" + "x" * MAX_LINE_LENGTH,
    ],
)
def test_bad_lines_stop_nobody(tmp_path: Path, clock: Callable[[float], None], line: str) -> None:
    with Driven(lambda: make(tmp_path), Random(0), kills=0) as driven:
        ran = f"user=eve queue=workq ctime={BEGIN + 5} etime={BEGIN + 5} start={BEGIN + 6} exec_host=n1/0*8"
        text = line + "\n" + record(BEGIN + 6, "S", "7.head", ran).text
        (tmp_path / "accounting" / "20261122").write_text(text)
        clock(BEGIN + 30)
        driven.listen(3)
        started = [event.job_number % LIFE for event in driven.events if isinstance(event, JobStarted)]
        assert started == [7]
        load = driven.source.load
        assert load.refused + load.left_out == 1 or str(2**53) in line


def test_sizes_and_limits_of_torque_are_followed(tmp_path: Path, clock: Callable[[float], None]) -> None:
    with Driven(lambda: make(tmp_path), Random(0), kills=0) as driven:
        ran = f"user=eve queue=workq ctime={BEGIN + 5} etime={BEGIN + 5} start={BEGIN + 6} owner=eve@login "
        ran += "exec_host=c3/0-1,5,11+c4/0-3 Resource_List.nodes=2:ppn=4 Resource_List.walltime=10"
        ended = f"{ran} total_execution_slots=8 end={BEGIN + 17} Exit_status=-11"
        records = [
            record(BEGIN + 5, "Q", "7-2.head", "queue=workq"),
            record(BEGIN + 6, "S", "7-2.head", ran),
            record(BEGIN + 7, "K", "R12.head", "requestor=Scheduler@head"),
            record(BEGIN + 17, "E", "7-2.head", ended),
        ]
        (tmp_path / "accounting" / "20261122").write_text("".join(each.text for each in records))
        clock(BEGIN + 30)
        driven.listen(3)
        told = lives_told([driven.opened, *driven.events])
        assert told == {number_of(7, 2): Life(BEGIN + 5, BEGIN + 5, BEGIN + 6, BEGIN + 17, "limit", 10, 8)}
        assert driven.source.load.refused == 0
