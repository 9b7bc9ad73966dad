"""A shadow beside a log: exact, by predictions, taking over on the way; restored anywhere; beside whatever happens."""

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest

from shadowtime.replayer.api.api import read_log
from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.services.catalogue import configure
from shadowtime.services.shadows.machine.machine import TwinMachine
from shadowtime.services.shadows.options import ShadowOf, ShadowOptions
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterClosed,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobEnded,
    JobStarted,
    JobSubmitted,
    JobSuspended,
    SchedulingPoint,
)
from shadowtime.shared.streaming.settings import Settings
from tests.support.shadow_beside import Beside, closed, played, settings, told
from tests.support.small_logs import job, workload_of
from tests.support.strategies.logs import eventful

PROMISED = "conservative:speculate=expected,test_runs=yes,shape=greedy,runtime=empirical"
POLICIES = ("easy", "best", "fcfs", PROMISED)
SHRINKS = (CapacityChanged(time=40_000, processors=64), CapacityChanged(time=90_000, processors=128))


@pytest.fixture(scope="module")
def log() -> Workload:
    return read_log(jobs=250)


@pytest.fixture(scope="module")
def replays(log: Workload) -> dict[str, list[Envelope]]:
    return {policy: closed(log, policy, SHRINKS) for policy in POLICIES}


def as_bytes(log: Sequence[Envelope]) -> list[bytes]:
    return [each.to_bytes() for each in log]


@pytest.mark.few(3)
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize(
    "real", ["easy", PROMISED, *(pytest.param(real, marks=pytest.mark.nightly) for real in ("best", "fcfs"))]
)
def test_an_exact_shadow_is_a_closed_replay_of_the_whole_log(
    log: Workload, replays: dict[str, list[Envelope]], real: str, policy: str
) -> None:
    """Whatever really decides, and however often the shadow is restored on the way."""
    source = Beside(told(replays[real]), exact=True, kills=0.1)
    assert as_bytes(played(settings(log, policy), source)) == as_bytes(replays[policy])
    assert list(source.twin.actual) == []


@pytest.mark.parametrize(("asks", "more"), [(3, 1), (2, 1)])
def test_a_job_on_more_processors_ends_in_an_exact_shadow_as_in_a_closed_replay(asks: int, more: int) -> None:
    """A second on the cluster may be the first half of a second in the shadow, which ends no job yet."""
    jobs = job(1, 0, processors=2, run_time=2, requested_time=asks), job(2, more, run_time=2, requested_time=2)
    policy = "conservative:shape=greedy,widen=yes"
    source = Beside(told(closed(workload_of(*jobs), "fcfs")), exact=True)
    expected = closed(workload_of(*jobs), policy)
    assert as_bytes(played(settings(workload_of(*jobs), policy), source)) == as_bytes(expected)


def test_a_policy_that_asks_to_be_asked_again_is_asked_in_an_exact_shadow_too() -> None:
    some = read_log(jobs=60)
    alone = closed(some, "slurm")
    asked = {each.event.again for each in alone if isinstance(each.event, Decided)} - {None}
    happened = {each.event.time for each in alone if not isinstance(each.event, Decided)}
    assert asked - happened
    source = Beside(told(closed(some, "easy")), exact=True, kills=0.1)
    assert as_bytes(played(settings(some, "slurm"), source)) == as_bytes(alone)


@pytest.mark.parametrize("policy", ["easy", PROMISED])
def test_taking_over_on_the_way_under_the_same_policy_changes_nothing(
    log: Workload, replays: dict[str, list[Envelope]], policy: str
) -> None:
    source = Beside(told(replays[policy]), exact=True, takes_over=60_000, kills=0.1)
    assert as_bytes(played(settings(log, policy), source)) == as_bytes(replays[policy])


def test_until_it_takes_over_what_happened_happens(log: Workload, replays: dict[str, list[Envelope]]) -> None:
    real = told(replays["fcfs"])
    source = Beside(real, exact=False, takes_over=60_000)
    shadow = told(played(settings(log, "easy"), source))
    before = [each for each in real[1:] if each.time < 60_000]
    assert shadow[1 : len(before) + 1] == before
    assert starts(shadow) != starts(real)


def test_a_shadow_that_takes_over_a_closed_run_is_closed_once(replays: dict[str, list[Envelope]]) -> None:
    opened, *real = told(replays["fcfs"])
    assert isinstance(opened, ClusterOpened)
    twin = TwinMachine(opened, exact=False, takes_over=real[-1].time + 1)
    emitted: list[Event] = []
    for event in real:
        twin.receive(event)
    while twin.next_time() is not None:
        emitted += twin.next_instant()
    assert emitted == real
    assert twin.closed


def starts(log: Sequence[Event]) -> dict[int, int]:
    return {each.job_number: each.time for each in log if isinstance(each, JobStarted) and not each.trial}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_shadow_by_predictions_is_never_behind_and_learns_the_truth(
    log: Workload, replays: dict[str, list[Envelope]], policy: str
) -> None:
    source = Beside(told(replays["fcfs"]), exact=False, kills=0.1)
    behind: list[int] = []

    def at_rest() -> None:
        if source.twin.needs_events and not source.twin.deciding:
            ends = [life.known_end(source.twin.horizon) for life in source.twin.actual if life.start is not None]
            behind.extend(end for end in ends if end is not None and end <= source.twin.horizon)

    source.at_rest = at_rest
    shadow = told(played(settings(log, policy), source))
    assert behind == []
    lengths = {int(each.job_number): int(each.run_time) for each in map(log.__getitem__, range(len(log)))}
    requests = {int(each.job_number): int(each.requested_time) for each in map(log.__getitem__, range(len(log)))}
    ended = [each for each in shadow if isinstance(each, JobEnded) and not each.requeued]
    assert {each.job_number for each in ended} == set(lengths)
    for each in ended:
        most = min(lengths[each.job_number], requests[each.job_number])
        assert each.own_run_time <= most
        if each.happened is None and each.outcome != "killed":
            assert each.own_run_time == most
    if policy != "fcfs":
        assert any(isinstance(each, JobSuspended) for each in shadow)


def test_what_a_shadow_told_does_not_depend_on_what_comes_later(
    log: Workload, replays: dict[str, list[Envelope]]
) -> None:
    real = told(replays["fcfs"])
    until = real[len(real) // 2].time
    later = [
        each.model_copy(update={"time": each.time + 500})
        for each in real
        if each.time > until and not isinstance(each, JobEnded)
    ]
    changed = [each for each in real if each.time <= until]
    for exact in (True, False):
        logs = [
            heard_until(log, Beside(events, exact=exact), until)
            for events in (real, [*changed, *later[:-1], ClusterClosed(time=later[-1].time)])
        ]
        assert logs[0] == logs[1] != []


def heard_until(log: Workload, source: Beside, until: int) -> list[bytes]:
    """Return what a shadow tells before its cluster's log goes beyond a time."""
    found: list[bytes] = []

    def note(envelope: Envelope) -> None:
        if source.twin.horizon <= until:
            found.append(envelope.to_bytes())

    played(settings(log, "best"), source, note)
    return found


@pytest.mark.parametrize("seed", range(3))
def test_beside_a_log_with_everything_that_clusters_do(seed: int) -> None:
    """Jobs cancelled, held, changed, suspended, told late: nothing is rejected, and restarts change nothing."""
    log = read_log(jobs=120, recorded=True)
    recorded = Recorded(log, SHRINKS)
    events: list[Event] = []
    while instant := recorded.next_instant():
        events.extend(each for each in instant if not isinstance(each, SchedulingPoint))
    opened = settings(log, "easy", mode="recorded")
    real = [opened, *eventful(events, Random(seed).randrange)]
    real.append(ClusterClosed(time=real[-1].time))
    for policy, exact, takes_over in (
        ("easy", True, 0),
        ("best", False, 0),
        (PROMISED, False, 50_000),
        ("tuned:least=20,every=3600,runtime=empirical", True, 50_000),
    ):
        logs = []
        for kills in (0.0, 0.2):
            source = Beside(real, exact=exact, takes_over=takes_over, kills=kills, seed=seed)
            logs.append(as_bytes(played(settings(log, policy), source)))
        assert logs[0] == logs[1]
        submitted = {each.job_number for each in real if isinstance(each, JobSubmitted)}
        shadow = [Envelope.from_bytes(each).event for each in logs[0]]
        assert {each.job_number for each in shadow if isinstance(each, JobSubmitted)} == submitted


def test_a_shadow_opens_as_the_cluster_did_but_for_what_is_wanted() -> None:
    spec = configure("easy:forecast=yes", "experts", "auto")
    real = ClusterOpened(
        time=5,
        cluster="mine",
        processors=64,
        mode="recorded",
        seed=3,
        wait_bound="bmbp:publish=plain",
        name="site",
        **spec._asdict(),
    )
    of = ShadowOf("mine", "mine/live", "mine/shadow/best", Settings())
    like = ShadowOptions(of, "best").opened(real)
    kept = {
        "time": 5,
        "cluster": "mine",
        "processors": 64,
        "seed": 3,
        "wait_bound": "bmbp:publish=plain",
        "adjustment": spec.adjustment,
    }
    assert {name: getattr(like, name) for name in kept} == kept
    assert (like.mode, like.name) == ("closed", "best")
    assert (like.policy, like.runtime) == configure("best", spec.runtime, spec.adjustment)[:2]
    other = ShadowOptions(of, "easy", runtime="last-two", adjustment="none", wait_bound="none", seed=9).opened(real)
    assert (other.runtime, other.adjustment, other.wait_bound, other.seed) == ("last-two", "none", "none", 9)
    with pytest.raises(SettingsError, match="is of cluster 'mine', not of 'other'"):
        ShadowOptions(replace(of, cluster="other"), "best").opened(real)
