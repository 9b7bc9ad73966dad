"""A shadow beside a log, all in one process: what it tells, also where its state is stored and restored on the way."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.replayer.simulation.source import DEFAULT_TRAITS, JobTraits, ReplaySource
from shadowtime.services.catalogue import configure
from shadowtime.services.shadows.machine.machine import TwinMachine
from shadowtime.shared.messages.envelope import (
    CapacityChanged,
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobSubmitted,
    SchedulingPoint,
)


class Beside(ReplaySource):
    """What a twin tells of a log, as a source of an embedded replay."""

    name = "twin"
    closed_loop = True

    def __init__(
        self, log: Sequence[Event], *, exact: bool, takes_over: int = 0, kills: float = 0.0, seed: int = 0
    ) -> None:
        self.log = log
        opened = log[0]
        assert isinstance(opened, ClusterOpened)
        self._make = partial(TwinMachine, opened, exact=exact, takes_over=takes_over)
        self.twin = self._make()
        self.heard = 1
        self.at_rest: Callable[[], None] = lambda: None
        self._kills, self._random = kills, Random(seed)

    def next_time(self) -> int | None:
        while self.twin.needs_events and self.heard < len(self.log):
            self.at_rest()
            self.twin.receive(self.log[self.heard])
            self.heard += 1
            if self._random.random() < self._kills:
                state = json.loads(json.dumps(self.twin.snapshot()))
                self.twin = self._make()
                self.twin.restore(state)
        return None if self.twin.closed else self.twin.next_time()

    def next_instant(self) -> Sequence[Event]:
        self.next_time()
        events = self.twin.next_instant()
        return [] if self.twin.closed else events

    def apply(self, decided: Decided) -> Sequence[Event]:
        if not self.twin.deciding:
            return ()
        self.twin.apply(decided)
        return self.twin.next_instant() if decided.starts or decided.kills else ()

    def can_start(self) -> bool:
        return True

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        raise AssertionError


def settings(workload: Workload, policy: str, **of: Any) -> ClusterOpened:
    chosen = configure(policy, "empirical", "none")
    return ClusterOpened(
        time=int(workload.columns["submit_time"][0]),
        cluster="twins",
        processors=workload.processors,
        pools=workload.pools,
        policy=chosen.policy,
        runtime=chosen.runtime,
        adjustment=chosen.adjustment,
        **of,
    )


def closed(
    workload: Workload, policy: str, capacity: Sequence[CapacityChanged] = (), traits: JobTraits = DEFAULT_TRAITS
) -> list[Envelope]:
    """Return the decision log of a closed replay."""
    return played(settings(workload, policy), Machine(workload, capacity, traits))


def played(
    opened: ClusterOpened, source: ReplaySource, observer: Callable[[Envelope], None] = lambda _: None
) -> list[Envelope]:
    log: list[Envelope] = []

    def note(envelope: Envelope) -> None:
        log.append(envelope)
        if isinstance(source, Beside) and envelope.run_time is not None and isinstance(envelope.event, JobSubmitted):
            source.twin.predict(envelope.event.job_number, envelope.run_time.point)

    EmbeddedReplay(opened, source, [note, observer]).run_to_end()
    return log


def told(log: Sequence[Envelope]) -> list[Event]:
    """Return what was told to the stages: scheduling points, where decisions are now."""
    return [SchedulingPoint(time=each.event.time) if isinstance(each.event, Decided) else each.event for each in log]
