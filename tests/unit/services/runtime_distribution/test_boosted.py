"""Boosted trees: what they learn, that a walk says what the library says, and that a restart changes nothing."""

from itertools import islice
from typing import Any

import lightgbm
import numpy as np
import pytest

from shadowtime.services.runtime_distribution.ensembles import boosted as module
from shadowtime.services.runtime_distribution.ensembles.boosted import Boosted, BoostedSettings
from shadowtime.services.runtime_distribution.ensembles.features import ITSELF, OF_GROUP, JobGroups
from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.history import RememberedJob
from shadowtime.shared.distributions import boosted_trees
from shadowtime.shared.distributions.boosted_trees import ALWAYS, Fit, Growth, asked, tree_scores
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import JobEnded, JobStarted, JobSubmitted
from shadowtime.shared.spec import parse
from tests.unit.services.runtime_distribution.followed import EVERY, Followed, happenings, restarted_at

SMALL = "boosted(history=500,days=1,trees=15,rounds=4)"
JOB = RememberedJob(-1, 3600, 4, 7, 2, -1, 1, -1)


@pytest.mark.parametrize(("classes", "leaves"), [(1, 8), (3, 8), (1, 64)])
def test_trees_say_what_the_library_says(classes: int, leaves: int) -> None:
    chance = np.random.default_rng(1)
    rows = chance.normal(size=(2000, 6)).astype(np.float32)
    labels = (rows[:, 0] * 3 + rows[:, 1] > 0).astype(np.float64) + (rows[:, 2] > 1)
    kind: dict[str, Any] = {"objective": "regression_l1", "num_leaves": leaves}
    if classes > 1:
        kind |= {"objective": "multiclass", "num_class": classes}
    [(nodes, roots)] = Growth(rows, [Fit(labels, 20, kind)]).run()
    library = lightgbm.train({**ALWAYS, **kind}, lightgbm.Dataset(rows, labels), 20)
    expected = np.asarray(library.predict(rows[:100], raw_score=True)).reshape(100, classes)
    trees = asked(nodes, roots)
    found = [tree_scores(trees, classes, row.astype(np.float64)) for row in rows[:100]]
    assert np.allclose(found, expected, rtol=1e-12)
    assert len(roots) == 20 * classes


@pytest.mark.parametrize("cells", [1, 4_000, 10**9])
def test_trees_grown_in_steps_are_those_grown_at_once(monkeypatch: pytest.MonkeyPatch, cells: int) -> None:
    monkeypatch.setattr(boosted_trees, "CELLS", cells)
    chance = np.random.default_rng(2)
    rows = chance.normal(size=(700, 5)).astype(np.float32)
    labels, weights, start = chance.integers(0, 3, 700).astype(float), chance.random(700), chance.normal(size=(700, 3))
    point: dict[str, Any]
    classes: dict[str, Any]
    point, classes = {"objective": "regression_l1"}, {"objective": "multiclass", "num_class": 3}
    fits = [
        Fit(labels, 13, point, weights),
        Fit(labels, 7, classes, start=start),
        Fit(labels[::-1], 2, point, np.ones(700)),
    ]
    growth = Growth(rows, fits)
    growth.run()
    data = lightgbm.Dataset(rows, labels, weight=weights)
    other = lightgbm.Dataset(rows, labels, init_score=start.flatten(order="F"))
    plain = lightgbm.Dataset(rows, labels[::-1], weight=np.ones(700))
    models = [
        lightgbm.train({**ALWAYS, **kind}, its, fit.rounds)
        for kind, its, fit in zip((point, classes, point), (data, other, plain), fits, strict=True)
    ]
    for (nodes, roots), model, count in zip(growth.trees, models, (1, 3, 1), strict=True):
        trees = asked(nodes, roots)
        found = np.array([tree_scores(trees, count, row.astype(np.float64)) for row in rows])
        expected = np.asarray(model.predict(rows, raw_score=True)).reshape(700, count)
        assert np.allclose(found, expected, rtol=1e-12, atol=0)
    assert growth.steps == {1: 1 + 13 + 7 + 2, 4_000: 1 + 3 + 7 + 1, 10**9: 1 + 1 + 1 + 1}[cells]


def test_it_learns_what_users_and_sizes_do() -> None:
    followed = Followed(SMALL).follow(happenings(1500))
    job = JobSubmitted(time=EVERY * 1500, job_number=9999, requested_processors=2, requested_time=4000, user_id=3)
    found = followed.predictor.predict_one(job)
    assert found.point == pytest.approx(1830, rel=0.15)
    assert np.argmax(found.histogram) == 13  # of 1,156 to 2,082 s
    assert found.observations == 500


def test_experts_speak_before_trees_have_grown() -> None:
    events = happenings(310)
    assert Followed(SMALL).follow(events).said == Followed("experts").follow(events).said


def test_a_restart_anywhere_changes_nothing() -> None:
    """Before trees, between two growths, with a ring that is full, and twice in a row."""
    whole, cut = restarted_at((10, 700, 1023, 1500, 1501, 2400, 3000), SMALL, happenings(1200))
    assert cut.said == whole.said
    assert cut.stored() == whole.stored()


def test_a_restart_while_trees_are_grown_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted_trees, "CELLS", 1)
    events = happenings(340)
    whole, cut = restarted_at(tuple(range(970, 1_000, 4)), SMALL, events)
    assert Followed(SMALL).follow(events[:980]).predictor.snapshot()["growth"] == [300, 2, 5]
    assert whole.predictor.snapshot()["growth"] is None
    assert cut.said == whole.said
    assert cut.stored() == whole.stored()


def test_what_happens_later_changes_nothing_before() -> None:
    events, time = happenings(900), 500 * EVERY
    as_it_was, otherwise = Followed(SMALL).follow(events), Followed(SMALL).follow(happenings(900, changed_after=time))
    before = [prediction for when, prediction in as_it_was.said if when <= time]
    assert before == [prediction for when, prediction in otherwise.said if when <= time]
    assert any(before)
    assert as_it_was.said != otherwise.said


def test_jobs_beyond_the_history_are_forgotten() -> None:
    """Trees grown on 500 jobs with short run times know nothing of the long ones before them."""
    followed = Followed(SMALL)
    for number in range(1200):
        time, run_time = number * 10_000, 3000 if number < 600 else 60
        job = JobSubmitted(time=time, job_number=number, requested_processors=1, requested_time=4000)
        followed.follow(
            [
                job,
                JobStarted(time=time, job_number=number, processors=1),
                JobEnded(time=time + run_time, job_number=number, run_time=run_time),
            ]
        )
    assert followed.predictor.predict_one(job).point == pytest.approx(60, abs=1)


def test_jobs_that_are_too_many_to_be_followed_are_not_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_FOLLOWED", 0)
    events = happenings(600)
    assert Followed(SMALL).follow(events).said == Followed("experts").follow(events).said


def test_a_group_knows_the_last_run_times_of_its_jobs() -> None:
    groups = JobGroups(100)
    for k, run_time in enumerate((10, 20, 30)):
        groups.submitted(JOB, 1000 * k)
        groups.started(JOB, 1000 * k + 5)
        groups.learn(JOB, run_time)
        groups.left(JOB, 1000 * k + 5 + run_time)
    groups.submitted(JOB, 3000)
    found = groups.features(JOB, 3100)[ITSELF : ITSELF + OF_GROUP]
    assert np.exp(found[[8, 9, 10, 11]]).round().tolist() == [30, 20, 20, 30]
    assert np.expm1(found[[1, 2, 3, 7]]).round().tolist() == [100, 1095, 3, 1065]
    assert found[0] == 0
    assert found[6] == pytest.approx(20 / 3600)


def test_groups_are_bounded() -> None:
    groups = JobGroups(50)
    for user in range(200):
        groups.submitted(JOB._replace(user_id=user), user)
    assert len(groups.snapshot()["keys"]) == 50


@pytest.mark.parametrize(
    ("keys", "culprit"),
    [("history=499", "history=499"), ("days=0", "days=0"), ("trees=501", "trees=501"), ("x=1", "'x'")],
)
def test_wrong_settings_are_named(keys: str, culprit: str) -> None:
    with pytest.raises(SettingsError, match="run-time predictor 'boosted'") as error:
        PREDICTORS.build(parse(f"boosted:{keys}"))
    assert culprit in str(error.value)


def test_without_lightgbm_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "is_installed", lambda: False)
    with pytest.raises(SettingsError) as error:
        PREDICTORS.canonical(parse("boosted"))
    assert str(error.value) == (
        "run-time predictor 'boosted': it needs LightGBM, which is not installed: pip install 'shadowtime[boosted]'"
    )


def test_the_same_log_gives_the_same_trees() -> None:
    first, second = (Followed(SMALL).follow(happenings(500)) for _ in range(2))
    assert first.stored() == second.stored()
    assert isinstance(first.predictor, Boosted)
    assert BoostedSettings().history == 20_000
    assert list(islice(first.said, 400)) == list(islice(second.said, 400))
