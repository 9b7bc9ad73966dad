"""Step-by-step replay: the start of each job under a policy, from the recorded state just before that start.

References
----------
docs/algorithms.md#step-by-step (ours).
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import Workload, real_starts
from shadowtime.replayer.simulation import DEFAULT_TRAITS, EmbeddedReplay, JobTraits, Machine, Observer
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.kernels import Integers
from shadowtime.shared.messages import CapacityChanged, Decided, Envelope, Event, JobStarted

DECIDING = [stage for stage in STAGES if stage.name != "scoreboard"]


class Stepped(Machine):
    """A machine that starts jobs as recorded, whatever the policy decides.

    The policy runs whenever it would run in a closed replay. It also runs one second after recorded starts, unless its
    last decision had exactly these starts.

    With `free`, the machine continues from the snapshot of a machine without `free`, and applies decisions. The first
    is the last decision in the snapshot. It is applied at the time of the next recorded start.

    Raise `TraceError` as in `Machine` and `real_starts`.
    """

    name = "stepped"
    closed_loop = False

    def __init__(
        self,
        workload: Workload,
        capacity: Sequence[CapacityChanged] = (),
        traits: JobTraits = DEFAULT_TRAITS,
        *,
        free: bool = False,
    ) -> None:
        super().__init__(workload, capacity, traits)
        starts = real_starts(workload)
        self._order = np.argsort(starts, kind="stable")
        self._starts = starts[self._order]
        self._begun = 0
        self._decided: Decided | None = None
        """Last decision, if it has starts or kills and the machine has not changed since then."""
        self._free = free

    def starting(self) -> list[int]:
        """Return the numbers of the jobs with a recorded start at the next instant.

        The result is empty if the instant has other events, or with `free`.
        """
        time = self.next_time()
        if time is None or self._free or time == self._soonest():
            return []
        rows = self._order[self._begun : np.searchsorted(self._starts, time, side="right")]
        numbers: list[int] = self._workload.columns["job_number"][rows].tolist()
        return numbers

    def next_time(self) -> int | None:
        """Return the time of the next event; None if nothing is left."""
        soonest = self._soonest()
        if self._free:
            return soonest if self._decided is None else self._time
        if self._begun == len(self._starts):
            return soonest
        start = int(self._starts[self._begun])
        return start if soonest is None else min(soonest, start)

    def next_instant(self) -> Sequence[Event]:
        """Return the events of the next instant. Recorded starts are a separate instant, after the scheduling point."""
        decided = self._decided
        if self._free and decided is not None:
            self._decided = None
            return super().apply(decided)
        if not (numbers := self.starting()):
            return super().next_instant()
        self._time = int(self._starts[self._begun])
        self._begun += len(numbers)
        self._decided = None
        if decided is None or {start.job_number for start in decided.starts} != set(numbers):
            soon = self._time + 1
            self._again = soon if self._again is None else min(self._again, soon)
        changes = []
        for number in numbers:
            row, job = self._waiting[number]
            changes.append(self._run(row, job, job.processors, job.limit))
        return changes

    def apply(self, decided: Decided) -> Sequence[Event]:
        """Record the decision; apply it only with `free`."""
        if self._free:
            return super().apply(decided)
        self._again = decided.again
        self._decided = decided if decided.starts or decided.kills else None
        return ()

    def snapshot(self) -> Any:
        """Return the whole state as plain values."""
        decided = None if self._decided is None else self._decided.model_dump(mode="json")
        return super().snapshot() | {"begun": self._begun, "decided": decided}

    def restore(self, state: Any) -> None:
        """Restore the state that `snapshot` returned."""
        super().restore(state)
        self._begun, decided = state["begun"], state["decided"]
        self._decided = None if decided is None else Decided.model_validate(decided)
        if self._free and self._begun < len(self._starts):
            self._time = int(self._starts[self._begun])


def stepped_starts(plan: RunPlan, patience: int) -> Integers:
    """Return the time at which a policy starts each job from the recorded state, in seconds, in order of the log.

    If the policy decides to start the job by the recorded start, this is the time of the first such decision. Otherwise
    a copy of the machine applies the policy's decisions from just before the recorded start, and the start on the copy
    counts. A job that has not started on the copy within `patience` seconds gets a start one second after that limit.
    The cost is one replay, and for each late start a copy of the state and at most `patience` seconds of a replay.

    Parameters
    ----------
    plan
        The run. Its mode is ignored.
    patience
        Seconds after a recorded start for which the policy continues alone.

    Raises
    ------
    TraceError
        If a job has no recorded wait.
    """
    started = real_starts(plan.workload)
    numbers = plan.workload.columns["job_number"].tolist()
    real = dict(zip(numbers, started.tolist(), strict=True))
    ours: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, Decided):
            for start in envelope.event.starts:
                ours.setdefault(start.job_number, envelope.event.time)

    source = Stepped(plan.workload, plan.capacity, plan.traits)
    replay = _replay(plan, source, note)
    while replay.step():
        if replay.last is None or not isinstance(replay.last.event, Decided | JobStarted):
            continue  # the scheduling point of this instant is pending
        late = [number for number in source.starting() if number not in ours]
        if late:
            until = real[late[0]] + patience
            alone = _alone(plan, replay.snapshot(), late, until)
            ours |= {number: alone.get(number, until + 1) for number in late}

    return np.array([ours[number] for number in numbers], dtype=np.int64)


def _alone(plan: RunPlan, snapshot: bytes, wanted: Sequence[int], until: int) -> dict[int, int]:
    """Return start times by job number on a machine that continues from a snapshot and applies decisions.

    The machine stops after the time `until`, or once all wanted jobs have started.
    """
    started: dict[int, int] = {}

    def note(envelope: Envelope) -> None:
        if isinstance(envelope.event, JobStarted):
            started[envelope.event.job_number] = envelope.event.time

    replay = _replay(plan, Stepped(plan.workload, plan.capacity, plan.traits, free=True), note)
    replay.restore(snapshot)
    while not started.keys() >= set(wanted) and (time := replay.next_time()) is not None and time <= until:
        replay.step()
    return started


def _replay(plan: RunPlan, source: Stepped, note: Observer) -> EmbeddedReplay:
    return EmbeddedReplay(plan._replace(mode="recorded").opened(), source, [note], stages=DECIDING)
