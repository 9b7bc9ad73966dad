"""What the site's own scheduler expects of waiting jobs changes nothing that anybody else says of them."""

from collections.abc import Callable, Iterator, Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.shared.messages.envelope import (
    ClusterClosed,
    ClusterOpened,
    Event,
    JobExpected,
    JobStarted,
    JobSubmitted,
    JobWithdrawn,
    SchedulingPoint,
)
from shadowtime.shared.messages.scores import Happenings, Scores
from shadowtime.shared.stages.predicting_stage import PredictingStage
from shadowtime.testing.chain import Chain
from tests.support.strategies.logs import eventful, eventful_logs


def with_words(events: Sequence[Event], draw: Callable[[int], int]) -> Iterator[Event]:
    """Yield a log in which the site's own scheduler has its say of waiting jobs, between any two events."""
    waiting: list[int] = []
    for event in events:
        yield event
        if isinstance(event, JobSubmitted):
            waiting.append(event.job_number)
        elif isinstance(event, JobStarted | JobWithdrawn):
            waiting.remove(event.job_number)
        for number in waiting:
            if draw(3) == 0:
                yield JobExpected(time=event.time, job_number=number, start=event.time + draw(100) - 20)


def said(opened: ClusterOpened, events: Sequence[Event]) -> tuple[dict[str, list[bytes]], Scores]:
    """Return what lies on each topic of a log, but for the site's words, and the scores without their part of these.

    Envelopes have the numbers that they would have if the site were silent.
    """
    chain = Chain(opened)
    for event in (opened, *events):
        chain.push(event)
    scores = chain.push(ClusterClosed(time=events[-1].time if events else opened.time)).scores
    assert scores is not None
    told = sum(isinstance(event, JobExpected) for event in events)
    counted = scores.happenings or Happenings()
    assert (counted.expected or 0) == told
    found = {}
    for name, read in chain.read.items():
        others = [each for each in read if not isinstance(each.event, JobExpected)]
        found[name] = [each.model_copy(update={"sequence": at}).to_bytes() for at, each in enumerate(others)]
    silent = {"expected_starts": None, "happenings": counted.model_copy(update={"expected": None})}
    return found, scores.model_copy(update=silent)


def alike(opened: ClusterOpened, events: Sequence[Event], chance: Random) -> None:
    """Let a site be silent, and speak; its silence and its words leave all else the same, byte for byte."""
    spoken = list(with_words(events, chance.randrange))
    assert said(opened, spoken) == said(opened, events)


@given(log=eventful_logs(), chance=st.randoms(use_true_random=False))
def test_predictions_bounds_forecasts_and_decisions_are_the_same_without_it(
    log: tuple[ClusterOpened, list[Event]], chance: Random
) -> None:
    events = [event for event in log[1] if not isinstance(event, JobExpected)]
    alike(log[0].model_copy(update={"sample_every": None}), events, chance)


@pytest.fixture(scope="module")
def log() -> list[Event]:
    source, events = Recorded(prepare(read_swf(BUNDLED), limit=150)), list[Event]()
    while instant := source.next_instant():
        events.extend(each for each in instant if not isinstance(each, SchedulingPoint))
    return [event for event in eventful(events, Random(7).randrange) if not isinstance(event, JobExpected)]


@pytest.mark.few(4)
@pytest.mark.parametrize("policy", [*sorted(POLICIES.classes), "easy:forecast=yes"])
def test_it_is_the_same_under_every_policy_that_has_learned(policy: str, log: list[Event]) -> None:
    opened = ClusterOpened(
        time=log[0].time,
        cluster="c",
        processors=prepare(read_swf(BUNDLED), limit=1).processors,
        mode="recorded",
        policy=canonical("policy", policy),
        runtime="empirical",
        adjustment="auto",
        wait_bound="bmbp",
    )
    alike(opened, log, Random(5))


def test_no_predictor_sees_it_not_even_a_plug_in(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(ClusterOpened(time=0, cluster="c", processors=8, mode="recorded"))
    chain.push(chain.opened)
    seen: list[Event] = []
    for stage in chain.stages.values():
        if isinstance(stage.handler, PredictingStage):
            monkeypatch.setattr(stage.handler.predictor, "observe", seen.append)
    job = JobSubmitted(time=1, job_number=1, requested_processors=1)
    chain.push(job)
    chain.push(JobExpected(time=2, job_number=1, start=9))
    assert seen == [job] * 3
