"""Names and ids of a followed cluster: asked for, resolved, shown; and refused where they are not known."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from shadowtime.services.explained import EXPLAINED
from shadowtime.services.follower.cluster.name_table import NameTable
from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.questions import OffersQuestion, Question, read_as
from shadowtime.services.processes.ask.tables import answer_table
from shadowtime.services.processes.ask.why import Explanations, JobQuestion, Why, why_text
from shadowtime.services.processes.ask.words import ClusterWords, WordReader
from shadowtime.shared.accounting.job_numbers import number_of
from shadowtime.shared.accounting.names import Names
from shadowtime.shared.errors import FollowError, StateAltered, Unanswerable
from shadowtime.shared.messages.envelope import JobStarted
from tests.support.echo_runs import write as write_bounds
from tests.support.echo_stage import STAGE
from tests.support.memory_reader import MemoryReader
from tests.support.waiting_runs import submitted, write

NAMES = {"user:alice": b"7", "user:8": b"9", "partition:gpu": b"3", "partition:cpu": b"4", "pool:gpu": b"1"}
NAMES |= {"pool:cpu": b"0", "account:phys": b"5", "requeued:100000311": b"311"}


class Stored:
    """Stands for the names that a follower stores."""

    def __init__(self, **runs: Mapping[str, bytes]) -> None:
        self.runs = {name.replace("_", "/"): names for name, names in runs.items()}

    async def names(self) -> list[str]:
        return list(self.runs)

    async def read_words(self, run: str) -> Mapping[str, bytes]:
        return self.runs.get(run, {})


WORDS = WordReader(Stored(mine_live=NAMES))


def bound(**parameters: object) -> Any:
    reader = MemoryReader()
    for run, cluster in (("mine/live", "mine"), ("mine/shadow/easy", "mine"), ("kth/easy", "kth")):
        asyncio.run(write_bounds(reader, run, cluster, 50))
    question = read_as(Question, {"cluster": "mine", "processors": 4, **parameters})
    return question, asyncio.run(Answers(STAGE, reader, words=WORDS).answer(question))


@pytest.mark.parametrize(
    ("asked", "queue", "user"),
    [
        ({"partition": "gpu", "user": "alice"}, 3, 7),
        ({"queue": "gpu", "user": "7", "run": "mine/shadow/easy"}, 3, 7),
        ({"queue": 3, "user": "8"}, 3, 9),  # a name goes before a number
        ({"queue": "1", "cluster": "kth", "user": "8"}, 1, 8),
    ],
)
def test_names_and_numbers_mean_the_same(asked: dict[str, object], queue: int, user: int) -> None:
    """The echo's bound is the processors and the number of the user."""
    question, answer = bound(**asked)
    assert [(each.queue, each.bound) for each in answer.bounds] == [(queue, 4 + user)]
    (shown, *_) = answer_table(question, answer).columns[0].cells
    assert shown == question.queue


@pytest.mark.parametrize(
    ("asked", "reason"),
    [
        ({"user": "alcie"}, "user: no user 'alcie' has had a job yet; did you mean 'alice'? known: 8, alice"),
        ({"partition": "big"}, "queue: no partition 'big' has had a job yet; known: cpu, gpu"),
        ({"cluster": "kth", "user": "alice"}, "user: 'alice': expected a whole number; only runs that follow"),
        ({"cluster": "kth", "user": str(2**60)}, "user: '1152921504606846976': expected a whole number"),
        ({"partition": "gpu", "queue": "gpu"}, "partition: is another name of queue; give only one of them"),
        ({"pool": "big"}, "pool: there is no pool 'big'; known: none"),
    ],
)
def test_unknown_names_are_refused(asked: dict[str, object], reason: str) -> None:
    with pytest.raises(Unanswerable) as caught:
        bound(**asked)
    assert str(caught.value).startswith(reason)


def test_each_cluster_has_its_own_names() -> None:
    reader = MemoryReader()
    for run, cluster in (("mine/live", "mine"), ("kth/easy", "kth")):
        asyncio.run(write_bounds(reader, run, cluster, 50))
    question = read_as(OffersQuestion, {"cluster": ("mine", "kth"), "partition": ("gpu",), "processors": 4})
    offers = asyncio.run(Answers(STAGE, reader, words=WORDS).offers(question)).offers
    assert [(each.cluster, each.queue, each.bound and each.bound.queue) for each in offers] == [
        ("mine", "gpu", 3),
        ("kth", "gpu", None),
    ]
    assert "expected a whole number" in str(offers[1].reason)


def why(job: object, **parameters: object) -> Why:
    reader = MemoryReader()
    task, requeued = number_of(2754, 12, 1), number_of(311, life=1)
    events = (
        submitted(311, 6),
        JobStarted(time=0, job_number=311, processors=6, limit=3600),
        submitted(requeued, 8, 60),
        submitted(number_of(2754, 11), 8, 61),
        submitted(task, 2, 120),
    )
    asyncio.run(write(reader, "mine/live", "mine", *events))
    question = read_as(JobQuestion, {"cluster": "mine", "job": job, **parameters})
    return asyncio.run(Explanations(EXPLAINED, reader, words=WORDS).explain(question))


@pytest.mark.parametrize("job", ["2754_12", "2754[12]", number_of(2754, 12, 1)])
def test_a_task_is_named_as_slurm_names_it(job: object) -> None:
    answer = why(job)
    assert (answer.job_number, answer.job_id) == (number_of(2754, 12, 1), "2754_12")
    text = why_text(answer)
    assert "Job 2754_12 asks for 2 procs" in text
    assert "311, 2754_11." in " ".join(text.split())
    assert "000" not in text.replace("00:", "").replace(":00", "")


def test_the_latest_life_of_a_job_is_meant() -> None:
    assert why("311").job_number == number_of(311, life=1)
    with pytest.raises(Unanswerable, match=r"job 311_0 is unknown; .* 3 wait .311, 2754_11, 2754_12., 1 run .311.;"):
        why("311_0")
    with pytest.raises(Unanswerable, match="expected the id of a job, such as 2754 or 2754_12"):
        why("2754_x")


def test_a_follower_stores_what_readers_need() -> None:
    """Pools of partitions, and jobs of lives with numbers like those of tasks; each once, also after a restart."""
    table = NameTable(Names(b"0123456789abcdef"))
    seen = JobObservation(LifeKey(311, -1, 0), "waiting", processors=1, user="alice", partition="gpu")
    table.asked(seen, 1)
    table.note_life(number_of(311, life=1), seen.key)
    stored = table.take_fresh()
    words = ClusterWords(stored)
    hidden = table.names.shown("partition", "gpu")
    assert "gpu" not in str(stored)
    assert (words.name("partition", 1), words.pool_of(1)) == (hidden, 1)
    assert (words.job(number_of(311, life=1)), words.number("user", table.names.shown("user", "alice"), "user")) == (
        "311",
        1,
    )

    again = NameTable(Names(b"0123456789abcdef"))
    again.restore(stored)
    again.asked(seen, 1)
    again.note_life(number_of(311, life=1), seen.key)
    assert not again.take_fresh()


@pytest.mark.parametrize("names", [{"user:eve": b"x"}, {"requeued:y": b"1"}, {"pool:a": b"9" * 5_000}, None])
def test_altered_names_are_numbers(names: Mapping[str, bytes] | None) -> None:
    class Altered(Stored):
        async def read_words(self, run: str) -> Mapping[str, bytes]:
            if names is None:
                raise StateAltered("WRONGTYPE")
            return names

    assert not asyncio.run(WordReader(Altered()).of("mine", "mine/live")).known


def test_a_job_of_scrontab_is_found_in_any_of_its_lives() -> None:
    """After a week of runs every ten minutes, `ask --job` did not know the job that `queue` showed."""
    words = ClusterWords({"user:eve": b"1", "requeued:150000000009": b"9", "requeued:100000009": b"9"})
    assert list(words.lives("9"))[:2] == [150_000_000_009, 100_000_009]
    assert words.job(150_000_000_009) == "9"
    assert len(set(words.lives("9"))) == len(list(words.lives("9")))


def test_hashes_in_place_of_names_are_named() -> None:
    """With --names-key, portals said of every user that no job waits or runs, and errors listed hashes."""
    table = NameTable(Names(b"secret of sixteen bytes"))
    number = table.number("user", "alice")
    words = ClusterWords(table.take_fresh())
    assert words.hashed
    assert not ClusterWords({"user:eve": b"1"}).hashed
    with pytest.raises(Unanswerable, match=r"no user 'alice': the follower has --names-key, so that only hashes"):
        words.number("user", "alice", "user")
    (shown,) = words.numbers["user"]
    assert words.number("user", shown, "user") == number


@pytest.mark.parametrize("stored", [b"secret of sixteen bytes", None])
def test_a_run_keeps_its_key_of_names(stored: bytes | None) -> None:
    """A follower that was started again without its key stored names in plain, and each user counted as two."""
    table = NameTable(Names(stored))
    table.number("user", "alice")
    kept = table.take_fresh()
    NameTable(Names(stored)).restore(kept)
    older = {entry: value for entry, value in kept.items() if entry != "hashed"}
    NameTable(Names(stored)).restore(older)
    for other in {b"another of sixteen bytes", None} - {stored}:
        with pytest.raises(FollowError, match="stored with another --names-key, or without one"):
            NameTable(Names(other)).restore(kept)
