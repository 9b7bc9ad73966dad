"""The mixture: the rule written out by hand, who is heard, what a new user is told, tenths that are tenths."""

from typing import Any

import numpy as np
import pytest

from shadowtime.services.runtime_distribution.ensembles import boosted
from shadowtime.services.runtime_distribution.ensembles import mixture as module
from shadowtime.services.runtime_distribution.ensembles.mixture import KINDS, Mixture, MixtureSettings
from shadowtime.services.runtime_distribution.ensembles.recalibration import PitRecalibration
from shadowtime.services.runtime_distribution.ensembles.within_bins import (
    NearRequest,
    gathered,
    parts_of,
    quantiles_of,
    spread,
    transformed_within,
)
from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.weighted_jobs import UserHistories
from shadowtime.services.scoreboard.scores.run_time_distributions import RunTimeDistributionScores
from shadowtime.shared.distributions import LEVELS
from shadowtime.shared.distributions.histogram import EDGES, bin_of
from shadowtime.shared.distributions.outcomes import outcome_of
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import Event, JobEnded, JobSubmitted, JobWithdrawn
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.spec import SpecSettings, parse
from shadowtime.shared.stages.predictor import Predictor
from tests.unit.services.runtime_distribution.followed import EVERY, Followed, happenings, restarted_at

LIMIT = 3600.0


def job(number: int = 1, user_id: int | None = 7, time: int = 0, requested_time: int | None = 3600) -> JobSubmitted:
    return JobSubmitted(
        time=time, job_number=number, requested_processors=1, requested_time=requested_time, user_id=user_id
    )


class Fixed(Predictor[JobSubmitted, int, RunTimePrediction]):
    """Always says the same."""

    name = "fixed"
    Settings = SpecSettings

    def __init__(self, settings: SpecSettings) -> None:
        self.seen: list[Event] = []

    def bin_said(self, x: JobSubmitted) -> int | None:
        return 5

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction | None:
        said = self.bin_said(x)
        if said is None:
            return None
        masses = np.full(15, 0.1 / 15)
        masses[said] += 0.9
        return RunTimePrediction.of(masses, x.requested_time, 1)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        pass

    def observe(self, event: Event) -> None:
        self.seen.append(event)

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


class Longer(Fixed):
    """Says a longer time."""

    name = "longer"

    def bin_said(self, x: JobSubmitted) -> int | None:
        return 12


class Silent(Fixed):
    """Says nothing of any user but one."""

    name = "silent"

    def bin_said(self, x: JobSubmitted) -> int | None:
        return 12 if x.user_id == 8 else None


@pytest.fixture
def mixed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what makes a mixture of kinds of these tests."""
    for each in (Fixed, Longer, Silent):
        monkeypatch.setitem(KINDS, each.name, each)
    return lambda kinds, **keys: Mixture(MixtureSettings(kinds=kinds, **keys))


def run(mixture: Mixture, x: JobSubmitted, run_time: int) -> None:
    """Let a job pass through the system, as the stage does."""
    mixture.predict_one(x)
    mixture.observe(x)
    mixture.learn_one(x, run_time)
    mixture.observe(JobEnded(time=x.time + run_time, job_number=x.job_number, run_time=run_time))


class ByHand:
    """The rule as docs/algorithms.md#mixture has it, over what kinds say by themselves."""

    def __init__(self, kinds: list[str], rate: float = 0.1, global_rate: float = 0.01, share: float = 0.01) -> None:
        self.kinds: list[Any] = [PREDICTORS.build(parse(each)) for each in kinds]
        self.rate, self.global_rate, self.share = rate, global_rate, share
        self.common = [1 / len(kinds)] * len(kinds)
        self.own: dict[int, list[float]] = {}
        self.recalibration, self.histories, self.near = PitRecalibration(), UserHistories(60), NearRequest()
        self.kept: dict[int, tuple[Any, Any]] = {}
        self.at_request = [2.0, 2.0]

    def predict_one(self, x: JobSubmitted) -> tuple[Any, Any, Any] | None:
        limit = float("inf") if x.requested_time is None else float(x.requested_time)
        told = [each.predict_one(x) for each in self.kinds]
        says = [None if each is None or not each.histogram else each.outcomes(limit) for each in told]
        share = self.share_at_request(x, limit)
        for said, outcomes in zip(told, says, strict=True):
            if outcomes is not None and said.at_request is None and share is not None:
                outcomes[-2:] = sum(outcomes[-2:]) * (1 - share), sum(outcomes[-2:]) * share
        weights = self.common if x.user_id is None else self.own.get(x.user_id, self.common)
        heard = [(weight, each) for weight, each in zip(weights, says, strict=True) if each is not None]
        if not heard:
            return None
        together = sum(weight * each for weight, each in heard) / sum(weight for weight, _ in heard)
        fine = spread(together, parts_of(self.histories.of(x), self.near.counts, limit))
        return [together if each is None else each for each in says], fine, self.recalibration.moved(fine)

    def observe(self, event: Event) -> None:
        if isinstance(event, JobSubmitted):
            said = self.predict_one(event)
            if said is not None:
                self.kept[event.job_number] = said[:2]
        elif isinstance(event, JobWithdrawn) or (isinstance(event, JobEnded) and not event.requeued):
            self.kept.pop(event.job_number, None)
        for each in self.kinds:
            each.observe(event)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        limit = float("inf") if x.requested_time is None else float(x.requested_time)
        if x.job_number in self.kept:
            says, fine = self.kept[x.job_number]
            foretold = [max(each[outcome_of(y, limit)], 1e-6) for each in says]
            if x.user_id is not None:
                own = self.moved(self.own.get(x.user_id, self.common), foretold, self.rate)
                self.own[x.user_id] = [
                    (1 - self.share) * mine + self.share * all_ for mine, all_ in zip(own, self.common, strict=True)
                ]
            self.common = self.moved(self.common, foretold, self.global_rate)
            self.recalibration.learn(*transformed_within(fine, y, limit))
        self.histories.learn(x, y)
        self.near.learn(y, limit)
        if limit < float("inf") and (y >= limit or bin_of(y) == bin_of(limit)):
            self.at_request = [0.999 * self.at_request[0] + (y < limit), 0.999 * self.at_request[1] + (y >= limit)]
        for each in self.kinds:
            each.learn_one(x, y)

    def share_at_request(self, x: JobSubmitted, limit: float) -> float | None:
        """Of the user's jobs that came to the bin, counted 0.8^age, and half a job of everybody's."""
        if limit == float("inf"):
            return None
        at, count = 0.5 * self.at_request[1] / sum(self.at_request), 0.5
        for age, (run_time, request, *_) in enumerate(self.histories.of(x).tolist()):
            if request > 0 and run_time / request > EDGES[bin_of(limit)] / limit:
                at, count = at + 0.8**age * (run_time >= request), count + 0.8**age
        return at / count

    @staticmethod
    def moved(weights: list[float], foretold: list[float], rate: float) -> list[float]:
        """Each weight goes towards its share in what was foretold."""
        whole = sum(weight * said for weight, said in zip(weights, foretold, strict=True))
        return [
            (1 - rate) * weight + rate * weight * said / whole for weight, said in zip(weights, foretold, strict=True)
        ]


def test_it_says_what_the_rule_says() -> None:
    """Jobs without users or requests, withdrawn and requeued ones among them; a kind is silent for a week."""
    kinds = ["experts", "templates", "hmm"]
    mixture: Any = PREDICTORS.build(parse(f"mixture:kinds={'+'.join(kinds)}"))
    hand, jobs, compared = ByHand(kinds), {}, 0
    for event in happenings(1100):
        if isinstance(event, JobSubmitted):
            event = event if event.job_number % 13 else event.model_copy(update={"user_id": None})
            jobs[event.job_number] = event
            said, expected = mixture.predict_one(event), hand.predict_one(event)
            assert (said is None) == (expected is None)
            if said is not None and expected is not None:
                limit = float("inf") if event.requested_time is None else float(event.requested_time)
                quantiles = quantiles_of(expected[2], limit, LEVELS)
                assert said.quantiles == pytest.approx(quantiles, abs=2e-3, rel=1e-6)
                assert said.point == pytest.approx(quantiles[9], rel=1e-6)
                assert said.outcomes(limit)[-1] == pytest.approx(gathered(expected[2])[-1], abs=2e-6)
                compared += 1
        elif isinstance(event, JobEnded) and not event.requeued:
            for each in (mixture, hand):
                each.learn_one(jobs[event.job_number], event.run_time)
        for each in (mixture, hand):
            each.observe(event)
    assert compared > 1000
    assert mixture.weights(job(user_id=3)) == pytest.approx(hand.own[3])
    assert mixture.weights(job(user_id=None)) == pytest.approx(hand.common)


@pytest.mark.parametrize("spec", ["mixture", "mixture:kinds=hmm+boosted,history=500"])
def test_a_restart_anywhere_changes_nothing(spec: str) -> None:
    whole, cut = restarted_at((10, 700, 1023, 1024, 2000), spec, happenings(900))
    assert cut.said == whole.said
    assert cut.stored() == whole.stored()


def test_what_happens_later_changes_nothing_before() -> None:
    events, time = happenings(900), 500 * EVERY
    as_it_was = Followed("mixture").follow(events)
    otherwise = Followed("mixture").follow(happenings(900, changed_after=time))
    before = [said for when, said in as_it_was.said if when <= time]
    assert before == [said for when, said in otherwise.said if when <= time]
    assert any(before)
    assert as_it_was.said != otherwise.said


def test_each_user_hears_who_foresaw_their_jobs(mixed: Any) -> None:
    mixture = mixed("fixed+longer")
    for number in range(200):
        run(mixture, job(number, user_id=7), int(EDGES[12]) + 10)
        run(mixture, job(1000 + number, user_id=8), int(EDGES[6]) - 1)
    assert mixture.weights(job(user_id=7))[1] > 0.9
    assert mixture.weights(job(user_id=8))[1] < 0.1


def test_a_new_user_is_told_by_the_common_weights(mixed: Any) -> None:
    mixture = mixed("fixed+longer")
    for number in range(200):
        run(mixture, job(number, user_id=7), int(EDGES[12]) + 10)
    common = mixture.weights(job(user_id=9))
    assert 0.6 < common[1] < mixture.weights(job(user_id=7))[1]
    assert common.tolist() == mixture.weights(job(user_id=None)).tolist()
    run(mixture, job(500, user_id=9), int(EDGES[4]) + 2)  # which both say alike
    assert mixture.weights(job(user_id=9)) == pytest.approx(common)


def test_who_says_nothing_is_left_out_and_keeps_its_weight(mixed: Any) -> None:
    mixture, alone = mixed("fixed+silent"), mixed("fixed")
    for number in range(50):
        for each in (mixture, alone):
            run(each, job(number, user_id=7), int(EDGES[6]) - 1)
    asked = job(99, user_id=7)
    assert mixture.predict_one(asked) == alone.predict_one(asked)
    assert mixture.weights(asked) == pytest.approx([0.5, 0.5])
    assert mixed("silent").predict_one(asked) is None


def test_who_speaks_alone_is_heard_whatever_it_weighs(mixed: Any) -> None:
    mixture = mixed("silent+fixed", rate=1, global_rate=1)
    for number in range(200):
        run(mixture, job(number, user_id=8), int(EDGES[6]) - 1)
    assert mixture.weights(job(user_id=8))[0] < 1e-100
    alone = mixed("silent")
    alone.restore(mixture.snapshot() | {"kinds": [None], "common": [0.0], "weights": []})
    assert alone.weights(job(user_id=8)).tolist() == [0.0]
    assert alone.predict_one(job(user_id=8)).histogram[12] > 0.5


def test_words_are_kept_until_the_job_is_gone(mixed: Any) -> None:
    mixture = mixed("fixed")

    def kept() -> list[int]:
        return [number for number, *_ in mixture.snapshot()["said"]]

    for number in (1, 2, 3):
        mixture.observe(job(number))
    mixture.observe(JobEnded(time=5, job_number=1, run_time=5, outcome="killed", requeued=True))
    assert kept() == [1, 2, 3]
    mixture.observe(JobEnded(time=5, job_number=1, run_time=5, outcome="killed"))
    mixture.observe(JobWithdrawn(time=5, job_number=2))
    assert kept() == [3]
    seen = [type(event) for event in mixture.kinds[0].seen]
    assert seen == [*[JobSubmitted] * 3, JobEnded, JobEnded, JobWithdrawn]


def test_jobs_that_are_too_many_are_not_judged(mixed: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_JUDGED", 2)
    mixture = mixed("fixed+longer")
    for number in range(5):
        mixture.observe(job(number))
    assert len(mixture.snapshot()["said"]) == 2
    mixture.learn_one(job(4), 1000)
    assert mixture.weights(job(4)).tolist() == [0.5, 0.5]


@pytest.mark.nightly
@pytest.mark.parametrize("kinds", ["experts+templates", "empirical"])
def test_tenths_are_tenths_whatever_kinds_say(kinds: str) -> None:
    """Three of ten jobs end at their request, which kinds cannot tell, and others later than jobs of late did."""
    chance, mixture = np.random.default_rng(3), Mixture(MixtureSettings(kinds=kinds))
    told, alone = RunTimeDistributionScores(), RunTimeDistributionScores()
    for number in range(6_000):
        user = number % 7
        x = job(number, user_id=user, time=4_000 * number)
        run_time = 3600 if chance.uniform() > 0.7 else min(int(np.exp(chance.normal(5 + user / 4, 0.5))), 3600)
        said, kind = mixture.predict_one(x), mixture.kinds[0].predict_one(x)
        if number >= 2_000:
            assert said is not None
            assert kind is not None
            told.add(said, 3600, run_time)
            alone.add(kind, 3600, run_time)
        run(mixture, x, run_time)
    tenths, before = told.summary(), alone.summary()
    assert tenths["pit"] == pytest.approx([0.1] * 10, abs=0.015)
    assert max(before["pit"]) > 0.15
    assert tenths["log_score"] < before["log_score"] - 0.05


@pytest.mark.parametrize(
    ("kinds", "message"),
    [
        ("experts+glass", "kinds=experts+glass: unknown kind 'glass'; known: "),
        ("last-two", "kinds=last-two: unknown kind 'last-two'; known: boosted, "),
        ("hmm+mixture", "kinds=hmm+mixture: unknown kind 'mixture'; known: "),
        ("hmm+experts+hmm", "kinds=hmm+experts+hmm: hmm occurs twice; name each kind once"),
        ("hmm+", "kinds=hmm+: unknown kind ''"),
    ],
)
def test_a_kind_that_cannot_be_mixed_is_named(kinds: str, message: str) -> None:
    with pytest.raises(SettingsError) as error:
        PREDICTORS.canonical(parse(f"mixture:kinds={kinds}"))
    assert str(error.value).startswith(f"run-time predictor 'mixture': {message}")


def test_a_kind_without_its_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted, "is_installed", lambda: False)
    assert str(PREDICTORS.canonical(parse("mixture"))).startswith("mixture(kinds=")
    with pytest.raises(SettingsError) as error:
        PREDICTORS.canonical(parse("mixture:kinds=hmm+boosted"))
    assert str(error.value) == (
        "run-time predictor 'mixture': kinds=hmm+boosted: boosted: it needs LightGBM, which is not installed: "
        "pip install 'shadowtime[boosted]'"
    )


def test_kinds_are_all_that_predict_distributions() -> None:
    """Whoever adds one with a histogram adds it here."""
    found, asked = set(), job(9999)
    for name, each in PREDICTORS.classes.data.items():
        predictor = each(each.Settings())
        for number in range(400):
            x = job(number, time=3600 * number)
            predictor.observe(x)
            predictor.learn_one(x, 600)
            predictor.observe(JobEnded(time=x.time + 600, job_number=number, run_time=600))
        said = predictor.predict_one(asked)
        if said is not None and any(said.histogram):
            found.add(name)
    assert found - {"mixture"} == set(KINDS)


def test_kinds_that_remember_jobs_remember_so_many() -> None:
    mixture: Any = PREDICTORS.build(parse("mixture:kinds=templates+hmm+boosted,history=500"))
    for number in range(600):
        run(mixture, job(number, time=600 * number), 60)
    templates, _, trees = mixture.snapshot()["kinds"]
    assert len(templates) == 500
    assert mixture.predict_one(job(999, time=600 * 600)).observations == 60
    assert trees["ended"]["count"] == 599


def test_names_may_have_spaces_between_them() -> None:
    assert MixtureSettings(kinds="hmm + experts").kinds == "hmm+experts"


def test_observations_are_the_users_or_everybodys(mixed: Any) -> None:
    mixture = mixed("fixed")
    for number in range(70):
        run(mixture, job(number), 60 if number % 2 else 3000)
    assert mixture.predict_one(job(99)).observations == 60
    assert mixture.predict_one(job(99, user_id=8)).observations == 70
    assert bin_of(LIMIT) == len(mixture.predict_one(job(99)).outcomes(LIMIT)) - 2
