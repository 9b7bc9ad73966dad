"""Hostile messages of every kind, as many as are asked for, the same for the same seed."""

import json
from collections.abc import Iterator, Sequence
from itertools import count, islice
from random import Random
from typing import Any, NamedTuple

from shadowtime.services.catalogue import configure
from shadowtime.shared.bounds import MAX_PROCESSORS
from shadowtime.shared.messages.envelope import ClusterOpened, JobStarted, JobSubmitted, SchedulingPoint
from shadowtime.shared.stages.topics import FLOW, JOBS
from shadowtime.shared.streaming.kafka.clients import partition_of
from tests.conformance.fuzz.mutations import FOREIGN, HUGE, MUTATIONS, Json, damaged, mutated, spec_at_its_bounds
from tests.conformance.fuzz.streams import SETTINGS, passed_on, published, right_events

SIDE_BY_SIDE = 40
"""Hostile streams that are under way at a time."""

LOG_JOBS = 20
SEEDS = 4


class Hostile(NamedTuple):
    """A message, and where it is sent to."""

    topic: str
    partition: int
    key: bytes | None
    value: bytes | None


def attack(messages: int, seed: int, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Yield so many messages: streams of many runs, side by side.

    Parameters
    ----------
    victims
        Names of honest runs: half of the hostile ones live on their partitions, and some messages bear their names.
    """
    return islice(_side_by_side(Random(seed), victims, partitions), messages)


def _side_by_side(chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    homes = [partition_of(victim, partitions) for victim in victims]
    numbers = count()

    def begin() -> Iterator[Hostile]:
        run = f"evil/{next(numbers)}"
        while chance.random() < 0.7 and partition_of(run, partitions) not in homes:
            run += "'"
        kind = chance.choices(list(KINDS), weights=list(KINDS.values()))[0]
        return kind(run, chance, victims, partitions)

    live = [begin() for _ in range(SIDE_BY_SIDE)]
    while True:
        at = chance.randrange(len(live))
        part = list(islice(live[at], chance.choice((1, 5, 40))))
        if not part:
            live[at] = begin()
        yield from part


def almost_right(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """A right stream with some mutations, on the first topic or on one of a later stage."""
    stage = chance.choice((0, 0, 0, 0, 1, 2, 3, 4))
    right = passed_on("evil", chance.randrange(SEEDS), LOG_JOBS, chance.randrange(len(SETTINGS)))[stage]
    values = mutated(right, [chance.choice(MUTATIONS) for _ in range(chance.choice((1, 1, 2, 4)))], chance)
    name = json.dumps(run).encode()
    for value in values:
        yield _message(run, value.replace(b'"evil"', name, 1), partitions, FLOW[stage])


def damaged_bytes(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Messages of a right stream with bits, digits and pieces changed; keys that are none of the run's."""
    values = published(run, right_events(chance.randrange(SEEDS), LOG_JOBS, 0))
    home = partition_of(run, partitions)
    for value in values:
        topic = chance.choice((JOBS, JOBS, *FLOW[:-1]))
        key = chance.choice((run.encode(), run.encode(), None, b"", b"\xff\xfe", b"x" * 3_000))
        yield Hostile(topic, home, key, damaged(value, chance.choice(values), chance))
    yield Hostile(JOBS, home, run.encode(), None)


def forged_names(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Sequences of runs that were never begun; names of honest runs where they do not live, or far ahead of them."""
    for number in range(60):
        forged = {"run": f"{run}/{number}", "sequence": 7 + number, "event": {"kind": "SchedulingPoint", "time": 0}}
        yield _message(f"{run}/{number}", _encoded(forged), partitions)
        victim = chance.choice(victims)
        ahead = forged | {"run": victim, "sequence": 10**6 + number}
        yield _message(victim, _encoded(ahead), partitions)
        begin = forged | {"run": victim, "sequence": 0}
        away = (partition_of(victim, partitions) + 1 + number % (partitions - 1)) % partitions
        yield Hostile(JOBS, away, victim.encode(), _encoded(begin))
        yield Hostile(JOBS, partition_of(victim, partitions), victim.encode(), b"{" * number)


def foreign(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """A right stream in which each message brings along what only stages say."""
    for value in published(run, right_events(chance.randrange(SEEDS), LOG_JOBS, 1)):
        yield _message(run, _encoded(json.loads(value) | chance.choice(FOREIGN)), partitions)


def crowd(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Some hundred jobs that run and as many that wait, each of its own owner and queue, under what costs most."""
    opened = ClusterOpened(
        time=0,
        cluster="crowd",
        processors=10_000,
        policy=configure(
            chance.choice(
                (
                    *("probabilistic", "probabilistic:points=16,mass=censor,criterion=gain,tau=1", "cautious"),
                    *("conservative:shape=greedy,widen=yes,test_runs=yes,speculate=expected", "all-reserve"),
                    *("easy:candidates=R/L,forecast=yes", "conservative:queue=R/L,guarantees=no"),
                )
            )
        ).policy,
        runtime=chance.choice(
            ("empirical", "hmm:states=64,history=10,threshold=0", "experts", "templates", "gibbons", "mixture")
        ),
        adjustment=chance.choice(("none", "auto", "percentile:key=user+project+request,window=12m,fallback=coarser")),
        wait_bound=chance.choice(("bmbp", "bmbp:publish=ensemble", "bmbp:publish=conformal", "none")),
        sample_every=chance.choice((1, 3_600, None)),
    )
    jobs = chance.choice((50, 300))
    events: list[object] = [opened]
    for number in range(jobs):
        whose: dict[str, Any] = dict.fromkeys(("user_id", "group_id", "queue_number", "executable_number"), number)
        asked: dict[str, Any] = {"requested_processors": 10_000 // jobs, "requested_time": 3_600 + 7 * number}
        events.append(JobSubmitted(time=number, job_number=number, **asked, **whose))
        events.append(JobStarted(time=number, job_number=number, processors=10_000 // jobs))
    for number in range(jobs, 2 * jobs):
        asked = {"requested_processors": 1 + number % 9_999, "requested_time": 60 + number}
        events.append(JobSubmitted(time=jobs, job_number=number, queue_number=number, **asked))
    events += [SchedulingPoint(time=jobs + number * chance.choice((1, 10**6))) for number in range(20)]
    for value in published(run, events):  # type: ignore[arg-type]
        yield _message(run, value, partitions)


def bounds_of_specs(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Runs that are opened with SPECs at or beyond their bounds, and a few of their events."""
    right = published("evil", right_events(chance.randrange(SEEDS), LOG_JOBS, 0))[:30]
    for number in range(5):
        name = f"{run}/{number}"
        for value in mutated(right, [spec_at_its_bounds, spec_at_its_bounds], chance):
            yield _message(name, value.replace(b'"evil"', json.dumps(name).encode(), 1), partitions)


def overlong(run: str, chance: Random, victims: Sequence[str], partitions: int) -> Iterator[Hostile]:
    """Messages about as large as Kafka takes them."""
    opened: Json = {"kind": "ClusterOpened", "time": 0, "cluster": "x", "processors": MAX_PROCESSORS}
    long: tuple[Json, ...] = (
        {"x" * HUGE: 1},
        {f"f{number}": 0 for number in range(HUGE // 12)},
        {"wait_bounds": [{}] * (HUGE // 3)},
        {"scores": {"wait_bounds": [{}] * (HUGE // 3)}},
        {"event": {"kind": "Decided", "time": 0, "starts": [{}] * (HUGE // 10)}},
        {"cluster": "\x1b" * (HUGE // 6)},
    )
    for told in long:
        yield _message(run, _encoded({"run": run, "sequence": 0, "event": opened} | told), partitions)
    yield _message(run, b"[" * HUGE, partitions)
    yield _message(run, b'{"run":' + b"9" * HUGE, partitions)


KINDS = {
    almost_right: 60,
    damaged_bytes: 14,
    forged_names: 4,
    foreign: 7,
    crowd: 1.2,
    bounds_of_specs: 5,
    overlong: 0.15,
}
"""How often a stream of each kind is begun."""


def _encoded(told: Json) -> bytes:
    return json.dumps(told, separators=(",", ":")).encode()


def _message(run: str, value: bytes, partitions: int, topic: str = JOBS) -> Hostile:
    return Hostile(topic, partition_of(run, partitions), run.encode(), value)
