"""The online state: when it learns, what it believes, and that it is what one would compute from the log."""

from collections.abc import Sequence
from typing import Any
from unittest.mock import Mock

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.hmm import predictor as module
from shadowtime.services.runtime_distribution.hmm.filter import Model, add_unfinished, forward, log_likelihoods
from shadowtime.services.runtime_distribution.hmm.learning import learn, start
from shadowtime.services.runtime_distribution.hmm.predictor import DAY, MAX_LEARNED, SLICE, WEEK, Hmm, HmmSettings
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.distributions.histogram import BINS, bin_of
from shadowtime.shared.distributions.outcome_rows import unpacked
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.kernels.arrays import Floats
from shadowtime.shared.messages.envelope import Event, JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from tests.support.hmm_log import HORIZON, log, play, submitted


def model_of(predictor: Hmm) -> Model:
    state = predictor.snapshot()
    return Model(np.array(state["emission"]), np.array(state["transition"]))


def counts_of(events: Sequence[Event], slices: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint16]]:
    """Return ended jobs by slice of arrival, counted from the log."""
    counts = np.zeros((slices, BINS), np.uint16)
    arrived = {event.job_number: event.time // SLICE for event in events if isinstance(event, JobSubmitted)}
    for event in events:
        if isinstance(event, JobEnded):
            counts[arrived[event.job_number], bin_of(float(event.run_time))] += 1
    return counts


def batch(predictor: Hmm, events: Sequence[Event], time: int, *, unfinished: bool) -> Floats:
    """Return the belief at `time` from the log alone, with the predictor's model."""
    model = model_of(predictor)
    likelihoods = log_likelihoods(counts_of(events, time // SLICE + 1), model.emission)
    if unfinished:
        arrived = {event.job_number: event.time // SLICE for event in events if isinstance(event, JobSubmitted)}
        ended = {event.job_number for event in events if isinstance(event, JobEnded)}
        running = [e for e in events if isinstance(e, JobStarted) and e.job_number not in ended]
        add_unfinished(
            likelihoods,
            np.array([arrived[e.job_number] for e in running], np.int64),
            np.array([time - e.time for e in running], np.float64),
            model.emission,
        )
    belief: Floats = forward(likelihoods, model.transition, start(len(model.emission)))[-1]
    return belief


@given(st.integers(0, 2**32), st.integers(600, 1200), st.booleans(), st.sampled_from(["em", "baum-welch"]), st.data())
@examples(12)
def test_online_is_batch_late_ends_included(
    seed: int, jobs: int, unfinished: bool, learning: Any, data: st.DataObject
) -> None:
    evidence: Any = "unfinished" if unfinished else "ended"
    predictor = Hmm(HmmSettings(states=3, open=HORIZON, evidence=evidence, learning=learning, history=2))
    events = log(seed, jobs)
    told = 0
    for cut in sorted(data.draw(st.lists(st.integers(len(events) // 2, len(events)), min_size=3, max_size=3))):
        play(predictor, events[:cut], told)
        told = cut
        time = events[cut - 1].time + data.draw(st.integers(0, 20_000))
        if predictor.predict_one(submitted(time)) is not None:
            expected = batch(predictor, events[:cut], time, unfinished=unfinished)
            assert predictor.belief(time) == pytest.approx(expected, abs=1e-9)


def test_only_the_open_slices_are_corrected() -> None:
    predictors = [Hmm(HmmSettings(states=3, open=slices, threshold=1e9, evidence="ended")) for slices in (8, 9)]
    events = log(7, 900)
    for predictor in predictors:
        play(predictor, events)
    now = events[-1].time // SLICE
    before = [predictor.belief(now * SLICE) for predictor in predictors]
    for predictor in predictors:
        for _ in range(20):
            predictor.learn_one(submitted((now - 8) * SLICE), 3)
    after = [predictor.belief(now * SLICE) for predictor in predictors]
    assert (after[0] == before[0]).all()
    assert (after[1] != before[1]).any()
    table = np.frombuffer(unpacked(predictors[0].snapshot()["counts"]), "<u2").reshape(-1, BINS)
    assert table[(now - 8) % len(table), bin_of(3.0)] >= 20  # but it is learned from


def test_it_says_nothing_before_a_week() -> None:
    predictor = Hmm(HmmSettings())
    events = log(1, 1000)
    week = next(place for place, event in enumerate(events) if event.time // SLICE - events[0].time // SLICE >= WEEK)
    play(predictor, events[:week])
    assert predictor.predict_one(submitted(WEEK * SLICE - 1)) is None
    predictor.observe(events[week])
    assert predictor.predict_one(submitted(events[week].time)) is not None


def test_a_week_without_as_many_jobs_as_states_is_not_enough() -> None:
    predictor = Hmm(HmmSettings(states=4))
    for number in range(3):
        predictor.learn_one(submitted(0, number), 60)
    predictor.observe(submitted(WEEK * SLICE))
    assert predictor.predict_one(submitted(WEEK * SLICE)) is None
    predictor.learn_one(submitted(0, 4), 60)
    predictor.observe(submitted((WEEK + DAY - 1) * SLICE))
    assert predictor.predict_one(submitted((WEEK + DAY - 1) * SLICE)) is None
    predictor.observe(submitted((WEEK + DAY) * SLICE))
    answer = predictor.predict_one(submitted((WEEK + DAY) * SLICE))
    assert answer is not None
    assert answer.observations <= 4


@pytest.mark.parametrize("threshold", [0.0, 0.3, 1e9])
def test_it_learns_again_on_the_day_on_which_distance_times_root_reaches_the_threshold(threshold: float) -> None:
    predictor = Hmm(HmmSettings(states=3, threshold=threshold))
    events = log(3, 6000, 4 * WEEK)
    first = events[0].time // SLICE
    starts = [  # of days
        next(place for place, event in enumerate(events) if event.time // SLICE - first >= day * DAY)
        for day in range(7, 4 * 7 - 1)
    ]
    told, learned = 0, []
    for place in starts:
        play(predictor, events[:place], told)
        told = place
        before = predictor.snapshot()
        predictor.observe(submitted(events[place].time, 10_000 + place))
        after = predictor.snapshot()
        assert after["ended"] == before["ended"]
        reached = before["distance"] * before["ended"] ** 0.5 >= threshold
        doubled = before["ended"] >= 2 * before["ended_at_learning"]
        learned.append(after["rounds"] - before["rounds"])
        assert learned[-1] == (reached or doubled)
    assert learned[0] == 1
    if threshold == 0:
        assert all(learned)
    elif threshold == 1e9:
        assert sum(learned) == 1 + 1  # at the first week, and at twice its jobs
    else:
        assert 2 < sum(learned) < len(learned)


def test_running_long_is_evidence_of_a_long_state() -> None:
    events = log(5, 1500)
    now = (events[-1].time // SLICE + 1) * SLICE
    points = {}
    for evidence in ("ended", "unfinished"):
        predictor = Hmm(HmmSettings.model_validate({"states": 2, "evidence": evidence}))
        play(predictor, events)
        for number in range(5000, 5005):
            predictor.observe(submitted(now, number))
            predictor.observe(JobStarted(time=now, job_number=number, processors=1))
        answers = [predictor.predict_one(submitted(now + elapsed)) for elapsed in (1, 600)]
        points[evidence] = [answer.point for answer in answers if answer]
        for number in range(5000, 5005):
            predictor.observe(JobEnded(time=now + 600, job_number=number, run_time=600, outcome="killed"))
        assert not any(
            number >= 5000 for number, _ in predictor.snapshot()["started"] + predictor.snapshot()["arrived"]
        )
    assert points["ended"][0] == points["ended"][1]
    assert points["unfinished"][1] > 1.3 * points["unfinished"][0]


def test_argmax_is_a_state_and_posterior_the_mixture() -> None:
    answers = {}
    for state in ("argmax", "posterior"):
        predictor = Hmm(HmmSettings.model_validate({"states": 3, "state": state}))
        events = log(11, 1500)
        play(predictor, events)
        belief, model = predictor.belief(events[-1].time), model_of(predictor)
        answers[state] = predictor.predict_one(submitted(events[-1].time))
    assert (belief > 0.01).sum() > 1
    for state, masses in (("argmax", model.emission[belief.argmax()]), ("posterior", belief @ model.emission)):
        answer = answers[state]
        assert answer is not None
        assert answer.histogram == pytest.approx(masses[: len(answer.histogram)], abs=1e-6)
        assert 0 < answer.observations < 1500
        assert answer.state == belief.argmax()


def test_a_requeued_job_still_belongs_to_the_slice_of_its_arrival() -> None:
    predictor = Hmm(HmmSettings())
    predictor.observe(submitted(0, 1))
    predictor.observe(JobStarted(time=10_000, job_number=1, processors=1))
    predictor.observe(JobEnded(time=20_000, job_number=1, run_time=10_000, outcome="killed", requeued=True))
    assert predictor.snapshot()["started"] == []
    assert predictor.snapshot()["arrived"] == [[1, 0]]


@pytest.mark.parametrize("gap", [1, 2 * WEEK - 1, 2 * WEEK, 2 * WEEK + 1, 5 * WEEK])
def test_a_long_silence_is_the_same_told_at_once_or_bit_by_bit(gap: int) -> None:
    at_once, bit_by_bit = (Hmm(HmmSettings(states=3, history=2, threshold=1e9)) for _ in range(2))
    events = log(13, 900)
    now = events[-1].time
    for predictor in (at_once, bit_by_bit):
        play(predictor, events)
    for passed in range(1, gap):
        bit_by_bit.observe(submitted(now + passed * SLICE))
    for predictor in (at_once, bit_by_bit):
        predictor.observe(submitted(now + gap * SLICE))
    one, other = at_once.snapshot(), bit_by_bit.snapshot()
    assert one["belief"] == pytest.approx(other["belief"], abs=1e-9)
    assert [one[key] for key in ("now", "rounds", "counts")] == [other[key] for key in ("now", "rounds", "counts")]


def test_the_longest_silence_of_all_takes_no_time() -> None:
    predictor = Hmm(HmmSettings(states=3))
    play(predictor, log(13, 900))
    predictor.observe(submitted(MAX_TIME))
    assert predictor.belief(MAX_TIME).sum() == pytest.approx(1.0)
    predictor.learn_one(submitted(0), 60)  # its slice is long gone
    assert not any(unpacked(predictor.snapshot()["counts"]))


def test_a_slice_holds_as_many_jobs_as_it_can_count() -> None:
    predictor = Hmm(HmmSettings())
    for _ in range(66_000):
        predictor.learn_one(submitted(0), 60)
    table = np.frombuffer(unpacked(predictor.snapshot()["counts"]), "<u2")
    assert table.max() == 65_535


def test_the_snapshot_is_as_large_after_a_day_as_after_two_weeks() -> None:
    predictor = Hmm(HmmSettings())
    play(predictor, log(19, 100, DAY))
    day = len(orjson.dumps(predictor.snapshot()))
    predictor = Hmm(HmmSettings())
    table = HmmSettings().history * WEEK * BINS * np.dtype(np.uint16).itemsize
    play(predictor, log(19, 4000))
    assert predictor.snapshot()["rounds"]
    assert len(orjson.dumps(predictor.snapshot())) < day + table // 10


@pytest.mark.parametrize("key", ["counts", "emission", "transition", "jobs", "belief"])
def test_a_damaged_snapshot_is_refused(key: str) -> None:
    damaged = Hmm(HmmSettings()).snapshot()
    damaged[key] = damaged[key][:-4]
    with pytest.raises(ValueError, match=r"reshape|shape|buffer"):
        Hmm(HmmSettings()).restore(damaged)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("hmm:states=0", "run-time predictor 'hmm': states=0: expected a number greater than or equal to 1"),
        ("hmm:states=65", "states=65: expected a number less than or equal to 64"),
        ("hmm:state=mode", "state=mode: expected 'posterior' or 'argmax'"),
        ("hmm:learning=gibbs", "learning=gibbs: expected 'em' or 'baum-welch'"),
        ("hmm:evidence=none", "evidence=none: expected 'unfinished' or 'ended'"),
        ("hmm:open=0", "open=0: expected a number greater than or equal to 1"),
        ("hmm:threshold=nan", "threshold=nan: expected a finite number"),
        ("hmm:threshold=-1", "threshold=-1: expected a number greater than or equal to 0"),
        ("hmm:history=1", "history=1: expected a number greater than or equal to 2"),
        ("hmm:history=161", "history=161: expected a number less than or equal to 160"),
        ("hmm:states=64,history=11", "history=11: states=64 allows a history of at most 10 weeks"),
        ("hmm:states=17,history=160", "history=160: states=17 allows a history of at most 141 weeks"),
        ("hmm:seed=-1", "seed=-1: expected a number greater than or equal to 0"),
        ("hmm:window=3", "run-time predictor 'hmm' has no key 'window'; known keys: predict, states, state, learning"),
    ],
)
def test_a_wrong_key_is_named_with_what_would_be_right(spec: str, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        PREDICTORS.build(parse(spec))
    assert message in str(refused.value)


def test_finding_10_the_largest_keys_are_bounded_together() -> None:
    """64 states and 104 weeks took 7.1 s for one submission."""
    for states in (1, 16, 17, 64):
        weeks = min(MAX_LEARNED // states**2, 160)
        assert HmmSettings(states=states, history=weeks).history == weeks
        if weeks < 160:
            with pytest.raises(ValidationError, match=f"at most {weeks} weeks"):
                HmmSettings(states=states, history=weeks + 1)


def test_finding_10_a_jump_over_the_whole_table_learns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """It went on day by day, and looked through the whole table each day: 1.9 s."""
    predictor = Hmm(HmmSettings(states=2, history=104, open=16, threshold=0))
    for number in range(50):
        predictor.learn_one(submitted(0, number), 60)
    learning, filtering = Mock(wraps=learn), Mock(wraps=forward)
    monkeypatch.setattr(module, "learn", learning)
    monkeypatch.setattr(module, "forward", filtering)
    predictor.observe(submitted(103 * WEEK * SLICE))
    assert learning.call_count == 1
    assert filtering.call_count == 1  # with what was learned; no slice on the way is filtered by itself
    assert predictor.belief(103 * WEEK * SLICE).sum() == pytest.approx(1.0)


def test_finding_10_a_snapshot_of_two_years_is_small() -> None:
    predictor = Hmm(HmmSettings(states=2, history=104))
    for number in range(200):
        predictor.learn_one(submitted(0, number), number)
    assert len(predictor.snapshot()["counts"]) < 50_000  # 8.8 MB before
    again = Hmm(HmmSettings(states=2, history=104))
    again.restore(predictor.snapshot())
    assert again.snapshot() == predictor.snapshot()
