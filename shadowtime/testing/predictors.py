"""The tests that every run-time predictor, walltime adjustment and wait bound must pass."""

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any, ClassVar, get_args

import orjson
from numpy.random import PCG64, Generator

from shadowtime.services.catalogue import REGISTRIES
from shadowtime.services.wait_bound import BOUNDERS
from shadowtime.shared.messages import JobEnded, JobSubmitted, RunTimePrediction, Side, WaitBound, WalltimeAdjustment
from shadowtime.shared.spec import Registry, parse
from shadowtime.shared.stages import Predictor
from shadowtime.testing.pipeline import InPipeline

# Description of the part of a state that grew, for messages of failed tests.


def bytes_of(state: Any) -> int:
    """Return the size of a state as JSON."""
    return len(orjson.dumps(state, option=orjson.OPT_SERIALIZE_NUMPY))


def what_grew(before: Any, after: Any) -> str:
    """Return a sentence about the part of a state that grew most.

    >>> what_grew({"shares": [[1, 0.5]], "count": 1}, {"shares": [[1, 0.5], [2, 0.25]], "count": 2})
    "['shares'] grew from 1 to 2 entries"
    >>> what_grew([[1], "ab"], [[1], "abcd"])
    '[1] grew from 4 to 6 bytes'
    """
    plain = [orjson.loads(orjson.dumps(state, option=orjson.OPT_SERIALIZE_NUMPY)) for state in (before, after)]
    return max(_grown("", *plain))[1]


def _grown(place: str, before: Any, after: Any) -> Iterator[tuple[int, str]]:
    """Yield the growth in bytes, with a sentence, of each smallest part of a state that can be compared."""
    more, where = bytes_of(after) - bytes_of(before), place or "the whole"
    if type(before) is type(after) and isinstance(after, dict | list):
        if len(before) == len(after):
            keys = after if isinstance(after, dict) else range(len(after))
            if after and all(isinstance(after, list) or key in before for key in keys):
                for key in keys:
                    yield from _grown(f"{place}[{key!r}]", before[key], after[key])
                return

        yield more, f"{where} grew from {len(before):,} to {len(after):,} entries"
    else:
        yield more, f"{where} grew from {bytes_of(before):,} to {bytes_of(after):,} bytes"


SETTLED = 2_000
"""Number of jobs after which a state should stop growing. By then all users, executables and queues have appeared."""
MOST_GROWTH = 1.25

AnyPredictor = Predictor[JobSubmitted, Any, Any]
Observation = tuple[JobSubmitted, Any]


class TimedPredictor:
    """A wrapper through which all predictors learn outcomes in seconds.

    An adjustment learns from, and then observes, an end event with this run time, a day after the submission.
    """

    def __init__(self, option: str, predictor: AnyPredictor) -> None:
        self._learns_ends = option == "adjustment"
        self.predict_one, self.snapshot, self.restore = predictor.predict_one, predictor.snapshot, predictor.restore
        self._predictor = predictor

    def learn_one(self, job: JobSubmitted, outcome: int) -> None:
        ended = JobEnded(time=job.time + 86_400, job_number=job.job_number, run_time=outcome)
        self._predictor.learn_one(job, ended if self._learns_ends else outcome)
        if self._learns_ends:
            self._predictor.observe(ended)


def maker(option: str, spec: str) -> Callable[[], TimedPredictor]:
    registry: Registry[Any] = REGISTRIES[option]
    return lambda: TimedPredictor(option, registry.build(parse(spec)))


def observations(seed: int = 1, gap: int = 60) -> Iterator[Observation]:
    """Yield 999,999 random jobs of 20 users with their outcomes in seconds.

    Some fields are unknown, and some outcomes exceed the request. `gap` is the time between submissions in seconds.
    """
    chance = Generator(PCG64([seed]))
    for job_number in range(1, 1_000_000):
        user, executable, queue, size, request, outcome = chance.integers(
            (0, 0, 0, 1, 1, 0), (20, 40, 3, 129, 50, 50), size=6
        ).tolist()
        job = JobSubmitted(
            time=job_number * gap,
            job_number=job_number,
            requested_processors=size,
            requested_time=None if request == 1 else request * 600,
            user_id=None if user == 0 else user,
            group_id=None if user == 1 else user % 4,
            executable_number=None if executable == 0 else executable,
            queue_number=None if queue == 0 else queue,
        )
        yield job, outcome * 700 + job_number % 60


def learn(predictor: TimedPredictor, count: int, seed: int = 1) -> None:
    for job, outcome in islice(observations(seed), count):
        predictor.learn_one(job, outcome)


def answers(predictor: TimedPredictor, count: int = 200, seed: int = 2) -> list[Any]:
    return [predictor.predict_one(job) for job, _ in islice(observations(seed), count)]


def check_range(job: JobSubmitted, answer: object) -> None:
    longest = float("inf") if job.requested_time is None else job.requested_time
    if isinstance(answer, RunTimePrediction):
        assert 1 <= answer.point <= longest
    elif isinstance(answer, WalltimeAdjustment):
        assert 1 <= answer.adjusted_time <= longest
    elif isinstance(answer, tuple):
        for bound in answer:
            assert isinstance(bound, WaitBound)
            assert 0 < bound.quantile < 1
            assert 0 < bound.confidence < 1
            assert bound.bound is None or bound.bound >= 0
    else:
        assert answer is None


class Predictors(InPipeline):
    """The tests that an online estimator must pass, by itself and in the pipeline."""

    option = "runtime"
    history: ClassVar[int] = 500
    """Maximum number of outcomes that an estimator remembers in the test of memory growth."""

    def make(self, spec: str) -> TimedPredictor:
        return maker(self.option, spec)()

    def test_it_predicts_before_it_has_learned(self, spec: str) -> None:
        for job, _ in islice(observations(), 50):
            check_range(job, self.make(spec).predict_one(job))

    def test_prediction_is_pure(self, spec: str) -> None:
        predictor = self.make(spec)
        for count, (job, outcome) in enumerate(islice(observations(), 300)):
            if count % 10 == 0:
                before = orjson.dumps(predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
                assert predictor.predict_one(job) == predictor.predict_one(job)
                assert orjson.dumps(predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) == before
            predictor.learn_one(job, outcome)

    def test_a_prediction_does_not_touch_the_job(self, spec: str) -> None:
        predictor = self.make(spec)
        for job, outcome in islice(observations(), 50):
            before = job.model_dump()
            predictor.predict_one(job)
            predictor.learn_one(job, outcome)
            assert job.model_dump() == before

    def test_predictions_stay_within_their_range(self, spec: str) -> None:
        predictor = self.make(spec)
        for job, outcome in islice(observations(), 1000):
            check_range(job, predictor.predict_one(job))
            predictor.learn_one(job, outcome)

    def test_outcomes_of_no_time_at_all_can_be_learned(self, spec: str) -> None:
        predictor = self.make(spec)
        for job, _ in islice(observations(), 100):
            predictor.learn_one(job, 0)
        for job, _ in islice(observations(), 100):
            check_range(job, predictor.predict_one(job))

    def test_memory_does_not_grow_with_the_jobs(self, spec: str) -> None:
        if "window=all" in spec:
            return  # its SPEC says that it remembers all jobs
        predictor = maker(self.option, spec.replace("history=20000", f"history={self.history}"))()
        learning = observations(gap=86_400)
        for job, outcome in islice(learning, SETTLED):
            predictor.learn_one(job, outcome)
        early = orjson.loads(orjson.dumps(predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY))
        for job, outcome in islice(learning, 9 * SETTLED):
            predictor.learn_one(job, outcome)
        late = predictor.snapshot()
        assert bytes_of(late) <= MOST_GROWTH * bytes_of(early), (
            f"{spec}: the state has {bytes_of(early):,} bytes after {SETTLED:,} jobs and {bytes_of(late):,} after "
            f"{10 * SETTLED:,}; expected at most {MOST_GROWTH} times as many; {what_grew(early, late)}"
        )

    def test_a_restored_predictor_goes_on_as_if_never_interrupted(self, spec: str) -> None:
        predictor, again = self.make(spec), self.make(spec)
        learn(predictor, 500)
        learn(again, 7, seed=9)  # `restore` must replace this state
        again.restore(orjson.loads(orjson.dumps(predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)))
        assert answers(again) == answers(predictor)
        for one in (predictor, again):
            learn(one, 300, seed=3)
        assert answers(again) == answers(predictor)
        assert orjson.dumps(again.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) == orjson.dumps(
            predictor.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY
        )

    def test_a_snapshot_does_not_change_with_what_is_learned_after_it(self, spec: str) -> None:
        predictor = self.make(spec)
        learn(predictor, 200)
        snapshot = predictor.snapshot()
        before = orjson.dumps(snapshot, option=orjson.OPT_SERIALIZE_NUMPY)
        learn(predictor, 200, seed=4)
        assert orjson.dumps(snapshot, option=orjson.OPT_SERIALIZE_NUMPY) == before

    def test_two_predictors_are_independent(self, spec: str) -> None:
        predictor, untouched, fresh = self.make(spec), self.make(spec), self.make(spec)
        learn(predictor, 500)
        assert answers(untouched) == answers(fresh)
        assert untouched.snapshot() == fresh.snapshot()


class Adjusters(Predictors):
    """The tests that a walltime adjustment must pass."""

    option = "adjustment"


class Bounders(Predictors):
    """The tests that a bound on waits must pass."""

    option = "wait-bound"
    history = 200  # outcomes of a group of jobs; after `SETTLED` jobs, even a rare group has as many

    def test_it_is_asked_at_any_quantile_and_stays_as_it_is(self, spec: str) -> None:
        bounder = BOUNDERS.build(parse(spec))
        for job, wait in islice(observations(), 300):
            bounder.predict_one(job)
            bounder.observe(job)
            bounder.learn_one(job, wait)

        before = orjson.dumps(bounder.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)
        for job, _ in islice(observations(seed=2), 50):
            for quantile, confidence in ((0.5, 0.95), (0.95, 0.5), (0.99, 0.99)):
                bounds = bounder.bounds_at(job, job.time, quantile, confidence)
                check_range(job, bounds)
                assert {(bound.quantile, bound.confidence) for bound in bounds} <= {(quantile, confidence)}
                assert bounder.bounds_at(job, job.time, quantile, confidence) == bounds
                assert bounder.sided_bounds_at(job, job.time, quantile, confidence, "upper") == bounds
                for side in get_args(Side)[1:]:
                    sided = bounder.sided_bounds_at(job, job.time, quantile, confidence, side)
                    assert {bound.side for bound in sided} <= {side}
            bounder.ranges_at(job)

        assert orjson.dumps(bounder.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY) == before
