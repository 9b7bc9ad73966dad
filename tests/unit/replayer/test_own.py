"""A policy or predictor of a notebook is replayed like an installed one, and its mistakes are named."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import Field

import shadowtime
from shadowtime.replayer.api.own import OwnClasses
from shadowtime.services.catalogue import REGISTRIES
from shadowtime.services.scheduler import Policy, PolicySettings, start
from shadowtime.services.scheduler.policy import FITS_NOW
from shadowtime.shared.errors import ReplayError, SettingsError
from shadowtime.shared.messages import JobSubmitted, RunTimePrediction
from shadowtime.shared.spec import SpecSettings

LOG = shadowtime.read_log(jobs=200)


def waits(policy: Any, **options: Any) -> list[int]:
    return shadowtime.replay(LOG, policy, **options).jobs["wait"].tolist()


def in_order(now: int, queue: Any, running: Any, free: int) -> Any:
    return np.cumsum(queue.processors) <= free


class InOrder:
    """No name, no base class, no settings."""

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> Any:
        rows = np.flatnonzero(np.cumsum(queue.processors) <= free)
        return [start(queue, int(row), FITS_NOW) for row in rows]


class Counting(Policy):
    """Has state of its own, made without settings."""

    name = "counting"

    def __init__(self, most: int = 10_000) -> None:
        self.most, self.passes = most, 0

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> Any:
        self.passes += 1
        assert self.passes < self.most, "used twice"
        return InOrder.schedule(self, now, queue, running, free)  # type: ignore[arg-type]


COUNTING: Any = Counting


@pytest.mark.parametrize(
    "policy",
    [in_order, InOrder, InOrder(), COUNTING, COUNTING(5_000)],
    ids=["function", "class", "object", "policy class", "policy"],
)
def test_a_policy_of_ones_own_decides(policy: Any) -> None:
    assert waits(policy) == waits("fcfs")
    assert waits(policy) == waits("fcfs")  # an object begins anew


class Callable:
    """Not a function, but called like one. It has state."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, now: int, queue: Any, running: Any, free: int) -> Any:
        assert self.calls < 10_000, "used twice"
        self.calls += 1
        return in_order(now, queue, running, free)

    def decide(self, now: int, queue: Any, running: Any, free: int) -> Any:
        return self(now, queue, running, free)


@pytest.mark.parametrize(
    ("called", "name"),
    [(partial(in_order), "in-order"), (Callable(), "callable"), (Callable().decide, "decide")],
    ids=["partial", "object", "method"],
)
def test_whatever_can_be_called_is_a_policy(called: Any, name: str) -> None:
    result = shadowtime.replay(LOG, called)
    assert result.jobs["wait"].tolist() == waits("fcfs")
    assert str(result.configuration.policy) == name
    assert getattr(called, "calls", 0) == 0, "each replay has a copy of its own"


def test_a_function_may_have_a_name() -> None:
    """Two of one function, or of one class, are otherwise not told apart."""
    policies = [partial(in_order), partial(in_order), Callable(), lambda *queues: in_order(*queues)]
    for number, policy in enumerate(policies):
        policy.name = f"mine-{number}"  # type: ignore[attr-defined]
    compared = shadowtime.compare(shadowtime.read_log(jobs=20), policies)
    assert [draw.policy for draw in compared.draws] == ["mine-0", "mine-1", "mine-2", "mine-3"]


@pytest.mark.parametrize("name", ["my policy", "v2.1", "2nd", "wide:1", "a=b", 5])
def test_a_name_that_no_spec_can_have_is_named(name: Any) -> None:
    message = f"policy: `name` {str(name)!r}: expected a letter, then letters, digits, '-', '_' or '/'"
    with pytest.raises(SettingsError, match=message):
        shadowtime.replay(LOG, type("Named", (InOrder,), {"name": name}))


@pytest.mark.parametrize("kind", [set, iter, lambda rows: (row for row in rows)])
def test_rows_may_be_of_any_iterable(kind: Any) -> None:
    assert waits(lambda *queues: kind(np.flatnonzero(in_order(*queues)).tolist())) == waits("fcfs")


def test_a_function_cannot_change_the_queue() -> None:
    def shortest_first(now: int, queue: Any, running: Any, free: int) -> Any:
        queue.requested_time.sort()
        return []

    with pytest.raises(ReplayError, match=r"read-only \(test_own.py:\d+\)"):
        shadowtime.replay(LOG, shortest_first)

    def of_running(now: int, queue: Any, running: Any, free: int) -> Any:
        if len(running):
            running.start_time[:] = 0
        return in_order(now, queue, running, free)

    with pytest.raises(ReplayError, match=r"read-only \(test_own.py:\d+\)"):
        shadowtime.replay(LOG, of_running)


def test_a_wrong_prediction_is_named_on_one_line() -> None:
    class Negative(Half):
        def predict_one(self, x: JobSubmitted) -> RunTimePrediction:
            return RunTimePrediction(point=-5.0, observations=0)

    with pytest.raises(ReplayError) as raised:
        shadowtime.replay(LOG, "easy", runtime=Negative)
    message = str(raised.value)
    assert "RunTimePrediction.point: expected a number greater than or equal to 0 (test_own.py:" in message
    assert "\n" not in message


class Half:
    """Predict half of the request."""

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction:
        return RunTimePrediction(point=max(1.0, (x.requested_time or 2) / 2), observations=1)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        pass

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        pass


def test_a_predictor_of_ones_own_predicts() -> None:
    for own in (Half, Half()):
        result = shadowtime.replay(LOG, "easy", runtime=own)
        assert str(result.configuration.runtime) == "half"
        assert waits("easy", runtime=own) != waits("easy")


def test_a_class_that_is_written_anew_replaces_the_old_one() -> None:
    def mine(now: int, queue: Any, running: Any, free: int) -> Any:
        return []

    renamed = type("Mine", (InOrder,), {})
    with pytest.raises(
        ReplayError,
        match="deadlock: none of 200 waiting jobs starts: each of them fits on the idle machine, so the policy",
    ):
        waits(mine)
    assert waits(renamed) == waits("fcfs")


def test_a_class_is_known_for_the_duration_of_its_replay_alone(tmp_path: Path) -> None:
    result = shadowtime.replay(LOG, InOrder)
    assert "in-order" not in REGISTRIES["policy"].classes
    with pytest.raises(SettingsError, match="unknown policy 'in-order'"):
        shadowtime.replay(LOG, "in-order")
    with pytest.raises(ReplayError):
        shadowtime.replay(LOG, _broken([9]))
    assert "broken" not in REGISTRIES["policy"].classes
    result.report(tmp_path / "report.html", shadowtime.replay(LOG, "easy"), shadowtime.replay(LOG, in_order))
    assert "in-order" in (tmp_path / "report.html").read_text()
    assert "in-order" not in REGISTRIES["policy"].classes


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([0, 0], "expected rows 0 to 0 of the queue, each once; found \\[0, 0\\]"),
        ([5], "found \\[5\\]"),
        (["a"], "found \\['a'\\]"),
        ([0.0], "found \\[0.0\\]"),
    ],
)
def test_rows_that_are_none_are_named(rows: Any, reason: str) -> None:
    with pytest.raises(ReplayError, match=f"broken: .*{reason}"):
        shadowtime.replay(LOG, _broken(rows))


def _broken(rows: Any) -> Any:
    def broken(now: int, queue: Any, running: Any, free: int) -> Any:
        return rows

    return broken


def test_a_forgotten_return_is_named() -> None:
    with pytest.raises(ReplayError, match="broken: expected the rows to start, found None; return an empty list"):
        shadowtime.replay(LOG, _broken(None))


def test_a_class_whose_constructor_needs_more_than_settings_is_refused() -> None:
    class Scaled(InOrder):
        def __init__(self, factor: float, offset: float = 0.0) -> None:
            self.factor, self.offset = factor, offset

    with pytest.raises(SettingsError, match="its constructor needs factor; pass an object of the class instead"):
        shadowtime.replay(LOG, Scaled)
    assert shadowtime.replay(LOG, Scaled(2.0)).scores.policy.jobs == len(LOG)


def test_jobs_that_do_not_fit_are_named() -> None:
    def greedy(now: int, queue: Any, running: Any, free: int) -> Any:
        return range(len(queue))

    with pytest.raises(ReplayError, match=r"greedy starts jobs on \d+ processors, and \d+ are free; return fewer rows"):
        shadowtime.replay(LOG, greedy)


def test_a_name_that_is_taken_is_refused() -> None:
    with pytest.raises(SettingsError, match="policy 'easy' exists already; give yours another `name`"):
        shadowtime.replay(LOG, type("Easy", (InOrder,), {}))
    for nothing in (type("Nothing", (), {}), 5, None):
        with pytest.raises(
            SettingsError, match="policy: expected a SPEC, a function, or a class or object with the method schedule"
        ):
            shadowtime.replay(LOG, nothing)
    with pytest.raises(SettingsError, match=r"with the methods predict_one and learn_one; found .<class"):
        shadowtime.replay(LOG, runtime=type("Nothing", (), {}))
    own = OwnClasses()
    own.spec_of("policy", InOrder)
    with pytest.raises(SettingsError, match="policy 'in-order' occurs twice"):
        own.spec_of("policy", in_order)
    assert "easy" in REGISTRIES["policy"].classes


@pytest.mark.parametrize(
    ("spec", "name"),
    [("best", "tuned"), ("cautious:tau=0.1", "probabilistic"), ("easy:runtime=hmm,queue=srf", "easy")],
)
def test_a_policy_is_made_of_any_spec_that_a_replay_accepts(spec: str, name: str) -> None:
    """The recommended policy had "a short name, but a run needs a full SPEC"."""
    assert shadowtime.make("policy", spec).name == name


class Beyond:
    """Predicts more than any request."""

    point = 10.0**7

    def predict_one(self, x: JobSubmitted) -> RunTimePrediction:
        return RunTimePrediction(point=self.point, observations=1)

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        pass


class Nothing(Beyond):
    point = 0.0


@pytest.mark.parametrize("mode", ["closed", "recorded"])
def test_a_prediction_beyond_the_request_counts_as_the_request(mode: str) -> None:
    beyond, asked = (shadowtime.replay(LOG, "easy", runtime=source, mode=mode) for source in (Beyond, "requested"))
    assert beyond.scores.run_time.mean_absolute_error == asked.scores.run_time.mean_absolute_error
    assert beyond.schedule_sha256 == asked.schedule_sha256
    nothing = shadowtime.replay(LOG, "easy", runtime=Nothing, mode=mode)
    assert set(nothing.jobs["predicted_run_time"]) == {1}


class SmallFirstSettings(PolicySettings):
    most: int = Field(64, gt=0)


class SmallFirst(Policy):
    name = "small-first"
    Settings = SmallFirstSettings

    def __init__(self, settings: SmallFirstSettings) -> None:
        super().__init__(settings)
        self.most = settings.most

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> Any:
        rows = (queue.processors > self.most).argsort(kind="stable")
        return [start(queue, row, FITS_NOW) for row in rows[queue.processors[rows].cumsum() <= free]]


def test_the_settings_of_an_object_are_those_that_are_stated() -> None:
    made: Any = SmallFirst
    for most in (16, 64):
        result = shadowtime.replay(LOG, made(SmallFirstSettings(most=most)))
        assert result.configuration.policy == f"small-first(most={most})"
    rows = [
        draw.policy
        for draw in shadowtime.compare(LOG, [made(SmallFirstSettings(most=most)) for most in (4, 16, 64)]).draws
    ]
    assert rows == ["small-first:most=4", "small-first:most=16", "small-first"]


class Share(Beyond):
    class Settings(SpecSettings):
        share: float = 0.5

    def __init__(self, settings: Any) -> None:
        self.point = settings.share * 600


def test_settings_that_an_object_does_not_keep_are_not_stated() -> None:
    share: Any = Share
    kept: Any = share(Share.Settings(share=0.25))
    assert shadowtime.replay(LOG, "easy", runtime=kept).configuration.runtime == "share"
    kept.settings = Share.Settings(share=0.25)
    assert shadowtime.replay(LOG, "easy", runtime=kept).configuration.runtime == "share(share=0.25)"


def test_settings_of_another_kind_are_named() -> None:
    class Configured(InOrder):
        def __init__(self) -> None:
            self.settings = {"most": 5}

    expected = "configured: `settings`: expected PolicySettings, found .*; keep this in an attribute of another name"
    for policy in (Configured, Configured()):
        with pytest.raises(ReplayError, match=expected):
            waits(policy)


def test_settings_need_no_class_attribute_to_be_stated() -> None:
    class Limit(PolicySettings):
        most: int = 3

    class Limited(InOrder):
        def __init__(self, most: int) -> None:
            self.limit = self.settings = Limit(most=most)

    assert shadowtime.replay(LOG, Limited(4)).configuration.policy == "limited(most=4)"


@pytest.mark.parametrize(
    ("policy", "option", "own"),
    [("best", "runtime", "empirical"), ("easy:runtime=requested", "runtime", "requested"),
     ("easy:adjustment=none", "adjustment", "none")],
)  # fmt: skip
def test_an_argument_that_the_policy_would_not_use_is_refused(policy: str, option: str, own: str) -> None:
    value = "last-two" if option == "runtime" else "auto"
    options: dict[str, Any] = {option: value}
    with pytest.raises(SettingsError, match=rf"{option} '{value}': '{policy}' has its own \({own}\).*{option}=…"):
        waits(policy, **options)
    with pytest.raises(SettingsError, match=f"{option} '{value}': '{policy}' has its own"):
        shadowtime.compare(LOG, [policy, policy.replace("easy", "lwf")], **options)


def test_a_column_that_a_queue_lacks_is_named_with_those_that_it_has() -> None:
    def by_run_time(now: int, queue: Any, running: Any, free: int) -> Any:
        return queue.run_time.argsort()

    with pytest.raises(ReplayError, match="queue has no column 'run_time'; it has job_number, submit_time, processors"):
        waits(by_run_time)
