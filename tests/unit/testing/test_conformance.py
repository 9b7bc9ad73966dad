"""The suites that ship: one line tries a plug-in, and each kind of fault fails the property that names it."""

from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.sources import SOURCES
from shadowtime.services.runtime_distribution.ensembles import boosted
from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.simple import LastTwo
from shadowtime.services.scheduler.policies.fcfs import Fcfs
from shadowtime.services.scheduler.policy import FITS_NOW, start
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.testing import conformance
from shadowtime.testing.listed import own_specs
from shadowtime.testing.suites import SUITES


class Greedy(Fcfs):
    """Starts what does not fit."""

    name = "greedy"

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> list[Any]:
        return [start(queue, row, FITS_NOW) for row in range(len(queue))]


class Forgetful(Fcfs):
    """Starts at every second pass, and has no snapshot that says which."""

    name = "forgetful"
    passes = 0

    def schedule(self, now: int, queue: Any, running: Any, free: int) -> list[Any]:
        self.passes += 1
        return list(super().schedule(now, queue, running, free)) if self.passes % 2 else []


class Lasting(LastTwo):
    """Learns where it should only say."""

    name = "lasting"

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> Any:
        self.learn_one(x, 60)
        return super().predict_one(x, elapsed)


class Boundless(LastTwo):
    """Says more than the request."""

    name = "boundless"

    def predict_one(self, x: JobSubmitted, elapsed: int = 0) -> Any:
        said = super().predict_one(x, elapsed)
        return said and said.model_copy(update={"point": said.point * 1000})


class Hoarding(LastTwo):
    """Remembers every job."""

    name = "hoarding"

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        self._last[-x.job_number] = (y,)


class ByExecutable(LastTwo):
    """Remembers a run time of every executable of every user, of whom there are soon no more."""

    name = "by-executable"

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        self._last[1_000 * (x.user_id or 0) + (x.executable_number or 0)] = (y,)


class BySize(LastTwo):
    """Remembers a run time of every size of every user, of which there are more for long."""

    name = "by-size"

    def learn_one(self, x: JobSubmitted, y: int) -> None:
        self._last[1_000 * (x.user_id or 0) + x.requested_processors] = (y,)


class Foreseeing(Machine):
    """Gives the number of all jobs away: each seems to come from a user of that number."""

    name = "foreseeing"

    def next_instant(self) -> Any:
        user = len(self._workload)
        instant = super().next_instant()
        return [
            each.model_copy(update={"user_id": user}) if isinstance(each, JobSubmitted) else each for each in instant
        ]

    def __init__(self, workload: Any, *others: Any) -> None:
        super().__init__(workload, *others)
        self._workload = workload


def tried(kind: str, spec: str, test: str) -> Callable[[], None]:
    suite = conformance(kind, spec)()
    return lambda: getattr(suite, test)(spec=spec)


@pytest.mark.parametrize(
    ("kind", "classes", "faulty", "test"),
    [
        ("policies", POLICIES.classes, Greedy, "test_no_more_is_started_than_is_free"),
        pytest.param(
            "policies",
            POLICIES.classes,
            Greedy,
            "test_every_job_starts_in_the_end",
            marks=pytest.mark.nightly,  # hypothesis takes long to make the failing log small
        ),
        pytest.param(
            "policies",
            POLICIES.classes,
            Forgetful,
            "test_a_stage_that_is_restored_says_what_the_embedded_one_says",
            marks=pytest.mark.nightly,  # as above
        ),
        ("predictors", PREDICTORS.classes, Lasting, "test_prediction_is_pure"),
        ("predictors", PREDICTORS.classes, Boundless, "test_predictions_stay_within_their_range"),
        ("predictors", PREDICTORS.classes, Hoarding, "test_memory_does_not_grow_with_the_jobs"),
        pytest.param(
            "sources",
            SOURCES,
            Foreseeing,
            "test_it_tells_nothing_of_the_future",
            marks=pytest.mark.nightly,  # as above
        ),
    ],
    ids=lambda each: getattr(each, "name", None),
)
def test_a_fault_fails_the_property_that_names_it(
    kind: str, classes: Any, faulty: Any, test: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = next(iter(classes.data))
    tried(kind, own, test)()
    monkeypatch.setitem(classes.data, faulty.name, faulty)
    rule = test.removeprefix("test_").replace("_", " ")
    with pytest.raises(pytest.fail.Exception, match=f"^{faulty.name}[^\n]*: broken rule: {rule}: [^\n]*$"):
        tried(kind, faulty.name, test)()


@pytest.mark.parametrize("faulty", [Hoarding, BySize])
def test_what_grew_is_named(faulty: type[LastTwo], monkeypatch: pytest.MonkeyPatch) -> None:
    test = "test_memory_does_not_grow_with_the_jobs"
    monkeypatch.setitem(PREDICTORS.classes.data, ByExecutable.name, ByExecutable)
    tried("predictors", ByExecutable.name, test)()
    monkeypatch.setitem(PREDICTORS.classes.data, faulty.name, faulty)
    told = (
        rf"{faulty.name}: the state has [\d,]+ bytes after 2,000 jobs and [\d,]+ after 20,000; expected at most 1.25 "
    )
    with pytest.raises(pytest.fail.Exception, match=told + r"times as many; .* grew from [\d,]+ to [\d,]+ entries"):
        tried("predictors", faulty.name, test)()


@pytest.mark.parametrize("kind", SUITES)
def test_every_kind_has_a_suite_of_tests_of_its_own(kind: str) -> None:
    suite = conformance(kind)
    assert len([each for each in dir(suite) if each.startswith("test_")]) >= 5
    assert suite is not conformance(kind)


def test_a_spec_is_tried_as_it_is_and_a_name_with_every_choice() -> None:
    def specs(*names: str) -> list[str]:
        (mark,) = conformance("policies", *names).pytestmark  # type: ignore[attr-defined]
        return list(mark.args[1])

    assert len(specs("fcfs")) == 4
    assert specs("fcfs:distribution=limit,fallback=request") == ["fcfs"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("policy", "easy"), "unknown kind 'policy'; known: policies, predictors, adjusters, bounders, sources"),
        (("policies", "glass"), "unknown policy 'glass'; known: "),
        (("sources", "glass"), "unknown source 'glass'; known: closed, recorded"),
    ],
)
def test_what_is_not_there_is_named(arguments: tuple[str, ...], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        conformance(*arguments)


def test_a_failure_is_one_line_with_the_smallest_input_and_the_line_of_the_plug_in(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Dividing(Fcfs):
        name = "dividing"

        def schedule(self, now: int, queue: Any, running: Any, free: int) -> list[Any]:
            return [] if len(queue) < 2 else [1 // 0]

    monkeypatch.setitem(POLICIES.classes.data, Dividing.name, Dividing)
    rule = r"^dividing: broken rule: no more is started than is free: ZeroDivisionError: [^;]*; "
    told = rule + r"at [^;]*test_conformance.py:\d+; smallest input: "
    with pytest.raises(pytest.fail.Exception, match=told) as caught:
        tried("policies", "dividing", "test_no_more_is_started_than_is_free")()
    assert "\n" not in str(caught.value)
    assert str(caught.value).count("job_number") <= 2


def test_what_is_not_installed_or_of_another_plug_in_takes_no_part(monkeypatch: pytest.MonkeyPatch) -> None:
    """F3: the shipped suite failed for every policy where LightGBM was missing, after 60 lines of hypothesis."""
    monkeypatch.setattr(boosted, "is_installed", lambda: False)
    monkeypatch.setitem(PREDICTORS.classes.data, Boundless.name, Boundless)
    assert not [spec for spec in own_specs("runtime") if spec.startswith(("boosted", "boundless"))]
    (mark,) = conformance("predictors").pytestmark  # type: ignore[attr-defined]
    assert not [spec for spec in mark.args[1] if spec.startswith("boosted")]
    tried("policies", "fcfs", "test_every_job_starts_in_the_end")()
