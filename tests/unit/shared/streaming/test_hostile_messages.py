"""What a message may do to a stage worker: hurt its own run, and no other."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import replace

import orjson
import pytest

from shadowtime.shared.errors import MessageRejected, SettingsError
from shadowtime.shared.messages.envelope import ClusterOpened, Envelope, Event, Rejected, SchedulingPoint
from shadowtime.shared.spec import Price
from shadowtime.shared.stages.stage import StageRun
from shadowtime.shared.streaming.kafka.partition_log import PartitionLog
from shadowtime.shared.streaming.protocols import Record, Transaction
from shadowtime.shared.streaming.worker.run_lifecycle import MAX_ATTEMPTS, MAX_FAILURES
from shadowtime.shared.streaming.worker.stage_worker import AdmissionError, admitted
from tests.support.memory_store import MemoryStore
from tests.support.memory_stream import Message, hand_over, take_partition
from tests.unit.shared.streaming.fragile_stage import ALONE, HONEST, OPENED, SETTINGS, STAGE, Bench, log_of, told


@pytest.mark.parametrize(("user", "code"), [(1, "failed"), (5, "failed"), (7, "failed"), (4, "too-large")])
def test_finding_01_what_a_stage_fails_at_is_undone_and_rejected(user: int, code: str) -> None:
    bench = Bench(log_of(("evil", told("evil", [None, user, None, user, None])), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.counts("evil") == ["1", code, "2", code, "3"]  # what it had half done was undone
    assert bench.counts("good") == ALONE
    assert len(bench.stream.buried) == 2
    assert all(len(reason) < 1_100 for _, reason in bench.stream.buried)


def test_a_failure_stays_undone_after_a_restart() -> None:
    bench = Bench(log_of(("evil", told("evil", [None, 1, None]))))
    bench.handle()
    bench.again()
    bench.log = [*bench.log, Message(told("evil", [None] * 5)[4], len(bench.log), b"evil")]
    bench.stream.log = bench.log
    bench.handle()
    assert bench.counts("evil")[-1] == "3"


def test_a_run_that_fails_again_and_again_is_quarantined() -> None:
    bench = Bench(log_of(("evil", told("evil", [1] * 30)), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.counts("evil") == ["failed"] * MAX_FAILURES + ["quarantined"]
    assert bench.counts("good") == ALONE
    assert list(bench.worker.quarantined) == ["evil"]
    assert "shadowtime rebuild fragile --run 'evil'" in bench.stream.buried[-1][1]
    assert len(bench.stream.buried) == MAX_FAILURES + 1  # what came later is counted, not buried
    assert bench.metrics.registry.get_sample_value("shadowtime_worker_left_aside_total", {"stage": "fragile"}) == 19
    bench.again()
    asyncio.run(take_partition(bench.worker))
    assert list(bench.worker.quarantined) == ["evil"]  # a new process knows it from the start


def test_finding_02_a_run_whose_state_cannot_be_stored_is_quarantined() -> None:
    bench = Bench(log_of(("evil", told("evil", [None, 2, *[None] * 9])), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.counts("evil")[-1] == "quarantined"
    assert len(bench.counts("evil")) < 9
    assert bench.counts("good") == ALONE
    assert "Integer exceeds 64-bit range" in bench.worker.quarantined["evil"]


def test_an_event_that_never_ends_is_ended_and_its_run_quarantined() -> None:
    bench = Bench(log_of(("evil", told("evil", [None, 3, None])), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.counts("evil") == ["1", "quarantined"]
    assert bench.counts("good") == ALONE
    assert "took more than 0.3 s" in bench.worker.quarantined["evil"]


def test_a_run_that_may_need_more_than_a_worker_has_is_refused_before_it_is_opened() -> None:
    def price(opened: ClusterOpened) -> Price:
        if opened.cluster == "broken":
            raise SettingsError("no such policy")
        return Price(200_000_000, 150_000_000) if opened.cluster == "dear" else Price(290_000_000, 10_000_000)

    runs = {}
    for name in ("dear", "good", "broken"):
        envelopes = [json.loads(value) for value in told(name, HONEST)]
        envelopes[0]["event"]["cluster"] = name
        runs[name] = [orjson.dumps(envelope) for envelope in envelopes]
    bench = Bench(log_of(*runs.items()), replace(STAGE, price=price), SETTINGS.model_copy(update={"memory_mb": 512}))
    bench.handle()
    assert bench.counts("good") == bench.counts("broken") == ALONE
    assert bench.outputs("dear")[0].event.kind == "Rejected"
    assert list(bench.worker.quarantined) == ["dear"]
    assert "may need 350 MB in this stage; a worker has 307 MB for runs" in bench.worker.quarantined["dear"]


def test_a_run_whose_price_fails_is_quarantined_also_where_its_beginning_is_read_again() -> None:
    """Its events were dead letters, for the false reason that events before them are missing from the log."""

    def price(opened: ClusterOpened) -> Price:
        raise ValueError("a fault in a plug-in")

    bench = Bench(log_of(("evil", told("evil", HONEST))), replace(STAGE, price=price))
    asyncio.run(hand_over(bench.worker, bench.log[3:]))
    assert "a fault in a plug-in" in bench.worker.quarantined["evil"]
    assert [reason for _, reason in bench.stream.buried] == [bench.worker.quarantined["evil"]]


def test_a_run_at_which_processes_end_is_quarantined() -> None:
    """Whatever ended them, a full memory or a fault in compiled code, left no transaction."""
    bench = Bench(log_of(("evil", told("evil", [None])), ("good", told("good", HONEST))))

    async def begin() -> None:
        for _ in range(MAX_ATTEMPTS):
            await bench.store.attempt("evil")

    asyncio.run(begin())
    bench.handle()
    assert [each.event.kind for each in bench.outputs("evil")] == ["Rejected"]
    assert bench.counts("good") == ALONE


def test_of_runs_that_are_at_work_together_as_processes_end_only_one_is_quarantined() -> None:
    bench = Bench(log_of(("evil", told("evil", [6])), ("good", told("good", HONEST)), ("other", told("other", HONEST))))
    ended = 0
    for _ in range(2 * MAX_ATTEMPTS):
        try:
            bench.handle(batch=len(bench.log))
        except KeyboardInterrupt:
            ended += 1
        bench.again()
    assert ended == MAX_ATTEMPTS
    assert [each.event.kind for each in bench.outputs("evil")] == ["Rejected"]
    assert bench.counts("good") == bench.counts("other") == ALONE


def test_a_run_whose_state_ends_processes_is_quarantined_before_it_is_restored_again() -> None:
    """A run was restored before a process was counted: no number of deaths quarantined it."""
    bench = Bench(log_of(("evil", told("evil", [8, *[None] * 9])), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.store.kept["evil"].snapshot is not None
    assert bench.counts("good") == ALONE
    bench.log = log_of(("evil", told("evil", [8, *[None] * 11])), ("good", told("good", HONEST)))
    ended = 0
    for _ in range(2 * MAX_ATTEMPTS):
        bench.again()
        try:
            bench.handle(batch=len(bench.log))
        except KeyboardInterrupt:
            ended += 1

    assert ended == MAX_ATTEMPTS
    assert f"{MAX_ATTEMPTS} processes ended" in bench.worker.quarantined["evil"]
    assert bench.counts("good") == ALONE


def test_a_suspect_is_handled_with_no_other_run_in_memory() -> None:
    log = log_of(("evil", told("evil", [None])), *((name, told(name, HONEST)) for name in ("good", "other")))
    bench = Bench(log)
    held: list[bool] = []

    class Watching(MemoryStore):
        async def attempt(self, run: str, below: int | None = None) -> int | None:
            if below is None:
                assert run == "evil"
                held.extend(map(bench.worker.holds, (b"good", b"other")))
            return await super().attempt(run, below)

    bench.store = Watching()
    bench.again()

    async def work() -> None:
        await bench.store.attempt("evil", 9)
        await bench.store.attempt("evil", 9)
        for name in (b"good", b"other"):
            await hand_over(bench.worker, [message for message in log if message.key == name])
        assert bench.worker.holds(b"good")
        await hand_over(bench.worker, [message for message in log if message.key == b"evil"])

    asyncio.run(work())
    assert held == [False, False]
    assert bench.counts("evil") == ["1"]
    assert bench.store.begun.get("evil", 0) == 0
    bench.handle()
    assert bench.counts("good") == bench.counts("other") == ALONE


def test_processes_that_find_nothing_new_are_not_counted() -> None:
    """A run that waits for its next event is restored by each process that reads its last ones again."""
    bench = Bench(log_of(("good", told("good", HONEST))))
    full, bench.log = bench.log, bench.log[:4]
    bench.handle()
    for _ in range(3 * MAX_ATTEMPTS):
        bench.again()
        bench.handle()
        assert bench.store.begun.get("good", 0) == 0
    bench.log = full
    bench.handle()
    assert bench.counts("good") == ALONE


def test_a_process_that_finishes_a_transaction_counts_no_more() -> None:
    log = log_of(("good", told("good", HONEST)))
    bench = Bench(log)
    for last in range(1, len(log) + 1):
        bench.again()
        bench.log = log[:last]
        bench.handle()
    assert bench.counts("good") == ALONE


def test_finding_03_an_output_that_kafka_never_takes_ends_its_run_alone() -> None:
    log = log_of(("evil", told("evil", [None, 9, None, None])), ("good", told("good", HONEST)))
    bench = Bench(log)
    publish = bench.stream.publish

    async def refusing(partition: int, run: str, values: Sequence[bytes], times: Sequence[float | None]) -> None:
        if run == "evil" and any(b'"user_id":9' in value for value in values):
            raise MessageRejected("Kafka rejected an output of the run for good: MessageSizeTooLargeError")
        await publish(partition, run, values, times)

    bench.stream.publish = refusing  # type: ignore[method-assign]
    bench.handle(batch=2)
    assert bench.counts("evil")[-1] == "quarantined"
    assert bench.counts("good") == ALONE
    assert "MessageSizeTooLargeError" in bench.worker.quarantined["evil"]


def test_finding_05_an_unknown_run_is_a_dead_letter_at_once() -> None:
    """The log is searched for its beginning once, whoever asks how often."""
    good = told("good", HONEST)
    forged = [Envelope(run=f"r{n}", sequence=7, event=SchedulingPoint(time=0)).to_bytes() for n in range(200)]
    log = [Message(value, at, b"good") for at, value in enumerate(good)]
    log += [Message(value, len(log) + at, f"r{at}".encode()) for at, value in enumerate(forged)]
    bench = Bench(log)
    bench.log = log[len(good) :]  # another worker has done the beginning
    bench.handle()
    assert len(bench.stream.buried) == 200
    assert bench.stream.read_again == len(good)
    assert not any(bench.worker.holds(record.key) for record in log)


def test_finding_05_a_forged_sequence_far_ahead_is_looked_for_once() -> None:
    good = told("good", HONEST)
    forged = Envelope(run="good", sequence=900, event=SchedulingPoint(time=0)).to_bytes()
    values = [*good[:6], *[forged] * 50, *good[6:]]
    log = [Message(value, at, b"good") for at, value in enumerate(values)]
    bench = Bench(log)
    bench.handle()
    assert bench.counts("good") == ALONE
    assert len(bench.stream.buried) == 50
    assert bench.stream.read_again == 0  # this worker was handed all there is


def test_a_forged_sequence_stays_refused_when_the_stream_goes_back() -> None:
    """A process that begins anew is handed it once more, and by then it would be the next one."""
    good = told("good", HONEST)
    forged = Envelope(run="good", sequence=6, event=OPENED).to_bytes()
    values = [*good[:3], forged, *good[3:]]
    bench = Bench([Message(value, at, b"good") for at, value in enumerate(values)])
    whole = bench.log
    bench.log = whole[:7]  # up to sequence 5
    bench.handle()
    bench.again()
    bench.log = whole[2:]
    bench.handle()
    assert bench.counts("good") == ALONE


def test_what_came_too_early_is_buried_before_the_position_moves_beyond_it() -> None:
    good = told("good", HONEST)
    forged = Envelope(run="good", sequence=6, event=OPENED).to_bytes()
    bench = Bench([Message(value, at, b"good") for at, value in enumerate([*good[:3], forged, *good[3:]])])
    buried_at: list[int] = []
    commit = bench.store.commit

    async def committed(transaction: Transaction) -> None:
        buried_at.extend([len(bench.stream.buried)] if transaction.offset > 3 else [])
        await commit(transaction)

    bench.store.commit = committed  # type: ignore[method-assign]
    bench.handle(batch=20)
    assert buried_at == [1]  # whoever dies right after the transaction has lost no letter


def test_a_run_that_the_store_has_lost_is_read_again_from_its_beginning() -> None:
    log = log_of(("good", told("good", HONEST)), ("other", told("other", HONEST)))
    bench = Bench(log)
    bench.log = log[:13]
    bench.handle()
    bench.store.kept.clear()
    bench.again()
    bench.log = log[13:]
    bench.handle()
    assert bench.counts("good")[-12:] == bench.counts("other")[-12:] == ALONE


def test_a_beginning_that_is_none_is_not_read_again_for_each_message() -> None:
    junk = [Message(b'{"ClusterOpened"', 0, b"evil")] + [Message(b"{", at, b"evil") for at in range(1, 100)]
    forged = Envelope(run="evil", sequence=7, event=SchedulingPoint(time=0)).to_bytes()
    log = [*junk, *[Message(forged, at, b"evil") for at in range(100, 150)]]
    bench = Bench(log)
    bench.handle()
    assert len(bench.stream.buried) == 150
    assert bench.stream.read_again <= 100 + 7


@pytest.mark.parametrize(
    ("key", "change", "reason"),
    [
        (b"other", {}, "run 'r': the message has key 'other'; expected the name of the run"),
        (None, {}, "run 'r': the message has no key; expected the name of the run"),
        (b"r", {"run_time": {"point": 5, "observations": 1}}, "the message has 'run_time', which only stage"),
        (b"r", {"scores": None, "samples": []}, ""),
        (b"r", {"event": {"kind": "Decided", "time": 0}}, "the message has 'Decided', which only stage"),
        (
            b"r",
            {"event": {"kind": "Rejected", "time": 0, "reason": ""}},
            "the message has 'Rejected', which only stage",
        ),
    ],
)
def test_finding_18_a_message_says_only_what_is_its_own_to_say(
    key: bytes | None, change: dict[str, object], reason: str
) -> None:
    from shadowtime.services.pipeline import STAGES

    value = orjson.dumps({"run": "r", "sequence": 0, "event": OPENED.model_dump()} | change)
    bench = Bench([Message(value, 0, key)], STAGES[0])
    bench.handle()
    assert [each[1].partition(" runtime")[0] for each in bench.stream.buried] == ([reason] if reason else [])


def test_finding_09_a_run_lives_where_its_name_says() -> None:
    bench = Bench([])
    bench.worker = bench.worker_of(partitions=8)
    value = told("kth/easy", [])[0]  # partition 5 of 8
    asyncio.run(hand_over(bench.worker, [Message(value, 0, b"kth/easy", partition=3)]))
    asyncio.run(hand_over(bench.worker, [Message(value, 0, b"kth/easy", partition=5)]))
    assert [reason for _, reason in bench.stream.buried] == ["run 'kth/easy' belongs to partition 5, not 3"]
    assert len(bench.outputs("kth/easy")) == 1


def test_finding_04_reasons_are_cut_where_they_are_made() -> None:
    field = "f" * 4_000
    value = orjson.dumps({"run": "r", "sequence": 0, "event": OPENED.model_dump(), field: 1})
    bench = Bench([Message(value, 0, b"r")])
    bench.handle()
    ((_, reason),) = bench.stream.buried
    assert len(reason) < 300
    assert "(4000 characters, sha256 " in reason


def test_a_run_that_was_never_opened_holds_nothing_up() -> None:
    """Its rejections are stored like any other's; also beyond the first snapshot."""
    events: list[Event] = [SchedulingPoint(time=at) for at in range(50)]
    values = [Envelope(run="never", sequence=at, event=event).to_bytes() for at, event in enumerate(events)]
    bench = Bench(log_of(("never", values), ("good", told("good", HONEST))))
    bench.handle()
    assert bench.counts("never") == ["contradiction"] * 49
    assert bench.counts("good") == ALONE


def test_runs_in_memory_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shadowtime.shared.streaming.worker.run_cache.MAX_HELD", 3)
    runs = [(f"r{number}", told(f"r{number}", HONEST)) for number in range(8)]
    bench = Bench(log_of(*runs))
    bench.handle()
    assert sum(bench.worker.holds(name.encode()) for name, _ in runs) == 3
    assert all(bench.counts(name) == ALONE for name, _ in runs)
    assert len(bench.stream.published) == len(bench.log)  # what had been delivered is not delivered again


def test_a_partition_that_comes_back_is_not_told_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each rebalance would publish the last slice of every run there has been."""
    monkeypatch.setattr("shadowtime.shared.streaming.worker.run_cache.MAX_HELD", 3)
    bench = Bench(log_of(*((f"r{number}", told(f"r{number}", HONEST)) for number in range(8))))
    bench.handle()
    for _ in range(3):
        asyncio.run(take_partition(bench.worker))
    assert len(bench.stream.published) == len(bench.log)
    bench.again()  # a new process cannot know: it says once more what may not have arrived
    for _ in range(3):
        asyncio.run(take_partition(bench.worker))
    assert len(bench.log) < len(bench.stream.published) <= 2 * len(bench.log)
    once = len(bench.stream.published)
    bench.handle()
    assert len(bench.stream.published) == once


def test_embedded_stages_reject_too() -> None:
    run = StageRun(STAGE)
    for value in told("r", [None]):
        run.push(Envelope.from_bytes(value))
    broken = run.push(Envelope.from_bytes(told("r", [None, 1])[2]))
    assert broken is not None
    assert isinstance(broken.event, Rejected)
    assert broken.event.code == "failed"
    assert run.spoiled


def test_runs_without_a_snapshot_count_by_what_they_have_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand runs just below their first snapshot would take gigabytes."""
    unsaved = SETTINGS.model_copy(update={"snapshot_every": 10_000})
    monkeypatch.setattr("shadowtime.shared.streaming.worker.run_cache.MAX_HELD_BYTES", 5_000)
    bench = Bench(log_of(*((f"r{number}", told(f"r{number}", HONEST)) for number in range(8))), settings=unsaved)
    bench.handle()
    assert sum(bench.worker.holds(b"r%d" % number) for number in range(8)) < 8
    assert all(bench.counts(f"r{number}") == ALONE for number in range(8))


def test_a_key_that_no_run_has_is_not_remembered() -> None:
    """Settings of a megabyte, a hundred thousand to a partition, were kept for ever."""
    log = PartitionLog()
    for offset, key in enumerate((b"k" * 1_000_000, b"k" * 801, b"k" * 800)):
        log.receive(offset, key, b"ClusterOpened")
    assert [log.beginning(b"k" * size) for size in (1_000_000, 801, 800)] == [None, None, 2]


def test_a_message_of_unknown_fields_is_not_told_field_by_field() -> None:
    """Eight megabytes of them, on a topic that a stage writes, held the event loop for five seconds."""
    value = json.dumps({"run": "r", "sequence": 0, "event": {}} | {str(number): 0 for number in range(2_000)}).encode()
    with pytest.raises(AdmissionError, match="2001 errors"):
        admitted(Message(value, 0, b"r"), STAGE, 1, 10**9)


def test_a_run_that_is_loaded_anew_counts_as_attempted_anew() -> None:
    class Counting(MemoryStore):
        attempts = 0

        async def attempt(self, run: str, below: int | None = None) -> int | None:
            self.attempts += 1
            return await super().attempt(run, below)

    bench = Bench(log_of(("good", told("good", HONEST))))
    store = bench.store = Counting()
    bench.again()

    async def work() -> None:
        await hand_over(bench.worker, bench.log[:3])
        await hand_over(bench.worker, bench.log[3:6])
        assert store.attempts == 1  # who has committed has the next event too
        await bench.worker.give_up()
        await hand_over(bench.worker, bench.log[6:])
        assert store.attempts == 2

    asyncio.run(work())
    assert bench.counts("good") == ALONE


def test_a_message_of_the_largest_size_is_taken() -> None:
    (value, *_) = told("r", HONEST)
    message = Message(value, 0, b"r")
    assert admitted(message, STAGE, 1, len(value)).run == "r"
    with pytest.raises(AdmissionError, match=f"{len(value)} bytes; the limit is {len(value) - 1}"):
        admitted(message, STAGE, 1, len(value) - 1)


def test_a_slice_is_committed_after_its_dead_letters_have_left() -> None:
    bench = Bench(log_of(("evil", told("evil", [None, 1, None]))))
    deliver, stored = bench.stream.dead_letter, []

    async def look(letters: Sequence[tuple[Record, str]]) -> None:
        stored.append(bench.store.kept["evil"].sequence if "evil" in bench.store.kept else -1)
        await deliver(letters)

    bench.stream.dead_letter = look  # type: ignore[method-assign]
    bench.handle(batch=1)
    assert [offset for offset, _ in bench.stream.buried] == [2]
    assert stored == [1]  # the events before it alone
