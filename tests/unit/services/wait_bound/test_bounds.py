"""Bounds by queue and by cluster, and what a SPEC can say of them."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.wait_bound.bounder import MAX_QUEUES, Updates
from shadowtime.services.wait_bound.groups import bounders
from shadowtime.services.wait_bound.groups.bounders import BmbpBounds
from shadowtime.services.wait_bound.groups.queue_bounds import ALL, FIVE, QueueBounds
from shadowtime.services.wait_bound.handler import BOUNDERS
from shadowtime.services.wait_bound.settings import BoundSettings
from shadowtime.shared.distributions import unpacked_numbers
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import JobSubmitted, SchedulingPoint
from shadowtime.shared.messages.predictions import WaitBound
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from tests.unit.services.wait_bound.happenings import Happening, happenings, made

Answers = list[tuple[WaitBound, ...] | Updates]


def mirror_cluster_event(bounder: BmbpBounds, each: Happening) -> tuple[WaitBound, ...] | Updates:
    """Do what the stage does, and return what it publishes."""
    if each.wait is not None:
        bounder.learn_one(each.job, each.wait)
        return bounder.updates
    said = bounder.predict_one(each.job)
    bounder.observe(each.job)
    return said


def run(bounder: BmbpBounds, happen: Sequence[Happening]) -> Answers:
    return [mirror_cluster_event(bounder, each) for each in happen]


def saved(bounder: BmbpBounds) -> Any:
    return orjson.loads(orjson.dumps(bounder.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY))


def filled(count: int = 400, queues: int = 2, recut: int = 1_000) -> BmbpBounds:
    bounder = BmbpBounds(BoundSettings(recut=recut))
    run(bounder, happenings(made(count, queues=queues)))
    return bounder


def job(queue_number: int | None = None, time: int = 10**6) -> JobSubmitted:
    return JobSubmitted(
        time=time, job_number=77_777, requested_processors=8, requested_time=600, queue_number=queue_number
    )


def test_of_the_cluster_first_then_of_the_queue() -> None:
    bounder = filled()
    said = bounder.predict_one(job(queue_number=1))
    assert [(each.queue, each.grouping) for each in said] == [(queue, name) for queue in (None, 1) for name in ALL]
    assert [each.queue for each in bounder.predict_one(job())] == [None] * len(ALL)
    assert said[: len(ALL)] == bounder.predict_one(job())


def test_of_a_new_queue_nothing_is_known_but_the_reason() -> None:
    bounder = filled()
    before = saved(bounder)
    cluster, queue = bounder.predict_one(job(queue_number=9))[:: len(ALL)]
    assert cluster.bound is not None
    assert (queue.queue, queue.bound, queue.reason) == (9, None, "not enough history: 0 of 59 waits")
    assert saved(bounder) == before


def test_before_any_job_there_is_no_bound_but_a_reason() -> None:
    for each in BmbpBounds(BoundSettings()).predict_one(job(queue_number=1)):
        assert (each.bound, each.observations, each.starts_within) == (None, 0, ())
        assert each.reason is not None
        assert each.reason.startswith("not enough history: 0 of ")


@pytest.mark.parametrize("queue", [1, 2])
def test_a_queue_is_bounded_as_if_it_were_a_cluster_of_its_own(queue: int) -> None:
    jobs = made(600, queues=2)
    together, alone = BmbpBounds(BoundSettings(recut=100)), BmbpBounds(BoundSettings(recut=100))
    happen = happenings(jobs)
    results = dict(enumerate(run(together, happen)))
    for place, each in enumerate(happen):
        if each.job.queue_number != queue:
            continue
        own = each._replace(job=each.job.model_copy(update={"queue_number": None}))
        expected, found = mirror_cluster_event(alone, own), results[place]
        if isinstance(expected, Updates):
            assert isinstance(found, Updates)
            parts: list[tuple[Any, Any]] = [(expected[0], found[0]), (expected[1], found[1])]
        else:
            parts = [(expected, found)]
        for its, both in parts:
            assert [message for message in both if message.queue == queue] == [
                message.model_copy(update={"queue": queue}) for message in its
            ]


def test_predictions_leave_no_trace() -> None:
    """Whether and how often anything is asked, the answers and the state are the same."""
    asked, quiet = BmbpBounds(BoundSettings(recut=50)), BmbpBounds(BoundSettings(recut=50))
    for place, each in enumerate(happenings(made(300, queues=2))):
        if each.wait is not None:
            quiet.learn_one(each.job, each.wait)
        else:
            quiet.observe(each.job)
        if place % 20 == 0:
            other = job(queue_number=3, time=each.time)
            assert asked.predict_one(other) == asked.predict_one(other)
            assert asked.bounds_at(other, each.time + 10**6, 0.5, 0.8) == asked.bounds_at(
                other, each.time + 10**6, 0.5, 0.8
            )
        mirror_cluster_event(asked, each)
        if place % 20 == 0:
            assert saved(asked) == saved(quiet)
    assert saved(asked) == saved(quiet)


@given(st.integers(0, 400))
@examples(6)
def test_a_restored_one_goes_on(cut: int) -> None:
    happen = happenings(made(200, queues=2))
    bounder, again = BmbpBounds(BoundSettings(recut=40)), filled(100, queues=3, recut=40)  # to be forgotten
    run(bounder, happen[:cut])
    again.restore(saved(bounder))
    assert saved(again) == saved(bounder)
    assert run(again, happen[cut:]) == run(bounder, happen[cut:])
    assert saved(again) == saved(bounder)


def test_restored_between_a_prediction_and_its_submission() -> None:
    bounder, again = filled(), BmbpBounds(BoundSettings())
    said = bounder.predict_one(job(queue_number=1))
    again.restore(saved(bounder))
    assert again.predict_one(job(queue_number=1)) == said
    for each in (bounder, again):
        each.observe(job(queue_number=1))
    assert saved(again) == saved(bounder)


@pytest.mark.few(5)
@pytest.mark.parametrize("keys", ["", ",quantile=0.5,confidence=0.8"])
@pytest.mark.parametrize("name", ALL)
def test_a_published_bound_is_the_same_alone(name: str, keys: str) -> None:
    """Also its coverage, its change points and its bounds at another quantile."""
    happen = happenings(made(900, queues=1))
    every, alone = (BOUNDERS.build(parse(f"bmbp:publish={publish},recut=150{keys}")) for publish in ("all", name))
    assert isinstance(every, BmbpBounds)
    assert isinstance(alone, BmbpBounds)
    for among, own in zip(run(every, happen), run(alone, happen), strict=True):
        if isinstance(own, Updates):
            assert isinstance(among, Updates)
            assert list(own.coverage) == [each for each in among.coverage if each.grouping == name]
            assert list(own.change_points) == [each for each in among.change_points if each.grouping == name]
        else:
            assert isinstance(among, tuple)
            assert not isinstance(among, Updates)
            assert list(own) == [each for each in among if each.grouping == name]
    asked = job(queue_number=1), job().time, 0.9, 0.7
    assert list(alone.bounds_at(*asked)) == [each for each in every.bounds_at(*asked) if each.grouping == name]


def test_at_another_quantile_and_confidence() -> None:
    bounder = filled()
    usual, before = bounder.predict_one(job(queue_number=1)), saved(bounder)
    assert bounder.bounds_at(job(queue_number=1), job().time, 0.95, 0.95) == usual
    median = bounder.bounds_at(job(queue_number=1), job().time, 0.5, 0.8)
    assert [(each.queue, each.grouping) for each in median] == [
        (queue, name) for queue in (None, 1) for name in (*FIVE, "ensemble")
    ]
    assert {(each.quantile, each.confidence) for each in median} == {(0.5, 0.8)}
    by_name = {(each.queue, each.grouping): each.bound for each in usual}
    assert all((each.bound or 0) <= (by_name[each.queue, each.grouping] or 0) for each in median)
    extreme = bounder.bounds_at(job(), job().time, 0.999, 0.95)
    assert extreme[0].reason is not None
    assert extreme[0].reason.endswith("of 2995 waits")
    assert saved(bounder) == before


def test_a_run_at_another_quantile_has_lower_bounds() -> None:
    happen = happenings(made(300))
    usual = run(BmbpBounds(BoundSettings()), happen)
    median = run(BmbpBounds(BoundSettings(quantile=0.5)), happen)
    for low, high in zip(median, usual, strict=True):
        if isinstance(low, Updates) or isinstance(high, Updates):
            continue
        assert len(low) == len(high)
        assert (low[0].quantile, high[0].quantile) == (0.5, 0.95)
        if high[0].bound is not None:
            assert low[0].bound is not None
            assert low[0].bound <= high[0].bound


def test_time_that_passes_is_noticed_without_any_start() -> None:
    """A queue that stands still: what has waited longer than its conformal bound is a miss at once."""
    bounder = filled(300, queues=0)
    conformal = len(ALL) - 1
    before = bounder.predict_one(job())[conformal].bound
    assert before is not None
    for number in range(100):
        bounder.observe(JobSubmitted(time=10**6, job_number=80_000 + number, requested_processors=1))
    bounder.observe(SchedulingPoint(time=10**6 + 10**5))
    after = bounder.predict_one(job(time=10**6 + 10**5))[conformal].bound
    assert after is not None
    assert after > before


def test_no_requeued_or_unknown_job_breaks_it() -> None:
    bounder = filled()
    bounder.observe(job(queue_number=1))
    bounder.learn_one(job(queue_number=1), 30)
    bounder.learn_one(job(queue_number=1), 900)
    bounder.learn_one(job(queue_number=8), 1)
    assert saved(bounder)["cluster"]["open"] == []
    assert [each[0] for each in saved(bounder)["queues"]] == [1, 2]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bmbp:quantile=0", "wait bound 'bmbp': quantile=0: "),
        ("bmbp:quantile=1", "wait bound 'bmbp': quantile=1: "),
        ("bmbp:quantile=95", "wait bound 'bmbp': quantile=95: "),
        ("bmbp:quantile=nan", "wait bound 'bmbp': quantile=nan: "),
        ("bmbp:confidence=0", "wait bound 'bmbp': confidence=0: "),
        ("bmbp:confidence=1", "wait bound 'bmbp': confidence=1: "),
        ("bmbp:gamma=0", "wait bound 'bmbp': gamma=0: "),
        ("bmbp:history=99", "wait bound 'bmbp': history=99: "),
        ("bmbp:publish=five", "wait bound 'bmbp': publish=five: "),
        (
            "bmbp:tau=0.5",
            "has no key 'tau'; known keys: quantile, confidence, history, side, ends, clusters, recut, "
            "minimum_end, gamma, publish",
        ),
        ("plain", "unknown wait bound 'plain'; known: bmbp, futures, none"),
    ],
)
def test_a_spec_that_is_none(spec: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        BOUNDERS.build(parse(spec))
    assert message in str(refused.value)


def test_a_spec_with_all_its_keys() -> None:
    assert str(BOUNDERS.canonical(parse("bmbp"))) == (
        "bmbp(quantile=0.95,confidence=0.95,history=20000,side=upper,ends=4+16+64,clusters=1-5,recut=1000,minimum_end=0,"
        "gamma=0.05,publish=all)"
    )
    assert str(BOUNDERS.canonical(parse("none"))) == "none"


@pytest.mark.parametrize("quantile", [0.01, 0.999])
def test_the_outermost_quantiles(quantile: float) -> None:
    bounder = BOUNDERS.build(parse(f"bmbp:quantile={quantile},history=3000"))
    assert isinstance(bounder, BmbpBounds)
    results = run(bounder, happenings(made(300)))
    bounds = {each.bound is None for said in results[-50:] if not isinstance(said, Updates) for each in said[:6]}
    assert bounds == {quantile > 0.9}


def test_a_history_too_short_for_its_quantile_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"history=100: .* at least 2995 waits"):
        BOUNDERS.build(parse("bmbp:quantile=0.999,history=100"))


def test_finding_11_queues_without_end_share_the_bounds_of_the_cluster() -> None:
    """A queue for each job took 25 kB a queue, and each event as long as there were queues."""
    bounder = BmbpBounds(BoundSettings())
    for number in range(3 * MAX_QUEUES):
        job = JobSubmitted(time=number, job_number=number, requested_processors=1, queue_number=number)
        told = bounder.predict_one(job)
        own = [each for each in told if each.queue is not None]
        assert len(own) == len(ALL)
        crowded = number >= MAX_QUEUES
        assert all(
            (each.reason == f"only the first {MAX_QUEUES} queues have their own bounds") == crowded for each in own
        )
        bounder.observe(job)
        bounder.learn_one(job, 5)
    assert len(bounder.snapshot()["queues"]) == MAX_QUEUES
    again = BmbpBounds(BoundSettings())
    again.restore(orjson.loads(orjson.dumps(bounder.snapshot())))
    late = JobSubmitted(time=10**6, job_number=10**6, requested_processors=1, queue_number=10**6)
    assert again.predict_one(late) == bounder.predict_one(late)


def test_many_queues_remember_a_bounded_number_of_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounders, "MAX_WAITS", 1_000)
    bounder = BmbpBounds(BoundSettings(history=400))
    saved_at: dict[int, Any] = {}
    for number in range(4_000):
        queue = number // 600  # one after another
        one = JobSubmitted(time=number, job_number=number, requested_processors=1 + number % 9, queue_number=queue)
        bounder.predict_one(one)
        bounder.observe(one)
        bounder.learn_one(one, number % 977)
        if number % 40 and number % 600 > 5:
            continue
        counts = [len(history) for history in histories(bounder)]
        assert max(counts) <= (400 if queue < 1 else 200 if queue < 4 else 100)
        if number in (500, 2_500):
            saved_at[number] = saved(bounder)
    assert sum(counts) <= 1_000 * 7, "five groupings, the conformal bound, and what is recut"
    for number, state in saved_at.items():
        again = BmbpBounds(BoundSettings(history=400))
        again.restore(state)
        assert saved(again) == state, number
        for later in range(number + 1, 4_000):
            one = JobSubmitted(
                time=later, job_number=later, requested_processors=1 + later % 9, queue_number=later // 600
            )
            again.predict_one(one)
            again.observe(one)
            again.learn_one(one, later % 977)
        assert saved(again) == saved(bounder), number


def histories(bounder: BmbpBounds) -> list[Any]:
    """Return the known waits of each grouping, of each conformal bound, and those for the next ranges."""
    state = bounder.snapshot()
    scopes = [state["cluster"], *(scope for _, scope in state["queues"])]
    waits = [group[-1] for scope in scopes for grouping in scope["groupings"] for group in grouping["groups"]]
    waits += [scope["conformal"]["history"] for scope in scopes]
    revealed = [unpacked_numbers(scope["revealed"])[0] for scope in scopes]
    return [*map(unpacked_numbers, waits), *revealed]


def test_finding_11_an_event_looks_at_its_own_queue_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    bounder, advanced = BmbpBounds(BoundSettings()), []
    for number in range(20):
        bounder.observe(JobSubmitted(time=0, job_number=number, requested_processors=1, queue_number=number))
    monkeypatch.setattr(QueueBounds, "advance", lambda self, now: advanced.append(self.queue))
    bounder.observe(JobSubmitted(time=1, job_number=99, requested_processors=1, queue_number=7))
    bounder.observe(SchedulingPoint(time=2))
    assert advanced == [None, 7, None]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("bmbp:ends=4+4", "ends=4+4: expected ascending numbers; found '4+4'"),
        ("bmbp:ends=0+4", "ends=0+4: expected fewer than 30 numbers, each from 1 to"),
        ("bmbp:ends=4x", "ends=4x: expected whole numbers of processors joined by plus signs"),
        ("bmbp:clusters=9", "clusters=9: expected the fewest and the most ranges, as in 1-15"),
        ("bmbp:clusters=9-3", "clusters=9-3: expected 1 to 30 ranges, the fewest first"),
        ("bmbp:clusters=1-31", "clusters=1-31: expected 1 to 30 ranges"),
        (
            "bmbp:side=lower,quantile=0.01,history=100",
            "history=100: quantile=0.01, confidence=0.95 and side=lower need at least 299 waits",
        ),
    ],
)
def test_ranges_and_sides_that_cannot_be(spec: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        BOUNDERS.build(parse(spec))
    assert message in str(refused.value)


@pytest.mark.parametrize("spec", ["futures:", "bmbp:publish=conformal,", "bmbp:side=lower,"])
def test_only_a_bound_from_above_with_a_confidence_needs_many_waits(spec: str) -> None:
    with pytest.raises(SettingsError, match="need at least 2995 waits"):
        BOUNDERS.build(parse("bmbp:quantile=0.999,history=2000"))
    assert BOUNDERS.build(parse(f"{spec}quantile=0.999,history=2000"))


def test_both_sides_of_a_quantile() -> None:
    """Each has half of the error probability, so the sides are the bounds alone at the confidence 0.975."""
    happen, asked = happenings(made(400, queues=1)), (job(queue_number=1), job().time, 0.5, 0.95)
    both = BmbpBounds(BoundSettings(side="both", quantile=0.5))
    run(both, happen)
    told = both.predict_one(asked[0])
    assert [each.grouping for each in told] == 2 * [*FIVE, "ensemble"]
    assert {each.side for each in told} == {"both"}
    assert all(each.lower is not None and each.bound is not None and each.lower <= each.bound for each in told)
    upper, lower = (both.sided_bounds_at(*asked[:3], 0.975, side) for side in ("upper", "lower"))
    assert [each.bound for each in told] == [each.bound for each in upper if each.grouping != "conformal"]
    assert [each.lower for each in told] == [each.lower for each in lower]
    assert all(each.bound is None and each.reason is None for each in lower)


def test_bounds_from_below_are_held_by_waits_that_are_no_shorter() -> None:
    bounder = BmbpBounds(BoundSettings(side="lower", quantile=0.05, publish="plain"))
    shares = [
        coverage
        for said in run(bounder, happenings(made(900)))
        if isinstance(said, Updates)
        for coverage in said.coverage
    ]
    assert {each.quantile for each in shares} == {0.95}
    assert shares[-1].low <= shares[-1].covered


def test_ranges_are_published_with_the_submission_that_cuts_them() -> None:
    bounder = BmbpBounds(BoundSettings(recut=50, ends="8"))
    submissions = Counter[int | None]()
    published = set[int | None]()
    for each in happenings(made(350, queues=2)):
        mirror_cluster_event(bounder, each)
        scopes = dict.fromkeys((None, each.job.queue_number)) if each.wait is None else {}
        submissions.update(list(scopes))
        due = [queue for queue in scopes if submissions[queue] % 50 == 0]
        ranges = bounder.updates.wait_ranges
        assert [(its.grouping, its.queue) for its in ranges or ()] == [
            (name, queue) for queue in due for name in ("static", "nodes")
        ]
        assert all(len(its.waits) == len(its.ends) + 1 for its in ranges or ())
        assert set(ranges or ()) <= set(bounder.ranges_at(each.job))
        published.update(due)
    assert published >= {None, 1}
