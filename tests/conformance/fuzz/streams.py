"""Right streams: closed replays of small generated logs, as they are published, and as each stage passes them on."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, Envelope, Event, SchedulingPoint
from shadowtime.shared.stages.stage import StageRun

SETTINGS: tuple[tuple[str, str, str], ...] = (
    ("easy", "none", "none"),
    ("cautious", "none", "bmbp"),
    ("easy-sjbf:runtime=last-two,forecast=yes", "percentile", "bmbp:publish=ensemble"),
    ("conservative:speculate=expected,test_runs=yes,shape=greedy,runtime=experts", "none", "bmbp:publish=conformal"),
)
"""Policy, adjustment and wait bounds of the kinds of streams there are."""


@lru_cache(maxsize=64)
def right_events(seed: int, jobs: int, kind: int) -> tuple[Event, ...]:
    """Return what is published in a closed replay of a log made at random; `kind` is an index of `SETTINGS`."""
    policy, adjustment, wait_bound = SETTINGS[kind]
    chosen = configure(policy, adjustment=canonical("adjustment", adjustment))
    workload = prepare(Trace("made", *generate(jobs, 16, seed)))
    opened = ClusterOpened(
        time=0,
        cluster="made",
        processors=16,
        policy=chosen.policy,
        runtime=chosen.runtime,
        adjustment=chosen.adjustment,
        wait_bound=canonical("wait-bound", wait_bound),
        seed=seed,
        sample_every=3_600,
    )
    answers: list[Envelope] = []
    EmbeddedReplay(opened, Machine(workload), [answers.append]).run_to_end()
    return tuple(
        SchedulingPoint(time=each.event.time) if isinstance(each.event, Decided) else each.event for each in answers
    )


def published(run: str, events: Sequence[Event]) -> list[bytes]:
    """Return the messages of a run on the first topic."""
    return [Envelope(run=run, cluster="made", sequence=at, event=event).to_bytes() for at, event in enumerate(events)]


@lru_cache(maxsize=64)
def passed_on(run: str, seed: int, jobs: int, kind: int) -> tuple[tuple[bytes, ...], ...]:
    """Return the messages of a run on every topic of the flow, from the first on, as nothing disturbed them."""
    found = [tuple(published(run, right_events(seed, jobs, kind)))]
    for stage in STAGES:
        state = StageRun(stage)
        answers: list[Any] = [state.push(Envelope.from_bytes(value)) for value in found[-1]]
        found.append(tuple(answer.to_bytes() for answer in answers))
    return tuple(found)
