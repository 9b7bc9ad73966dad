"""A run whose stages are stored in memory, to be asked."""

import asyncio
from typing import Any

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes.ask.advice import Advice, AdviceQuestion, Advising
from shadowtime.services.processes.ask.answers import Answers
from shadowtime.services.processes.ask.once import ADVISE
from shadowtime.services.processes.ask.questions import read_as
from shadowtime.shared.stages.stage import Stage, StageRun
from shadowtime.shared.streaming.protocols import Transaction
from tests.support.memory_reader import MemoryReader

NAMED = {stage.name: stage for stage in STAGES}


class Stored:
    """The states of a run under some settings, and what advises from them."""

    def __init__(self, policy: str, runtime: str, wait_bound: str = "bmbp", jobs: int = 300) -> None:
        workload = prepare(read_swf(BUNDLED), limit=jobs)
        plan = RunPlan(
            policy, "kth", workload, configure(policy, runtime), wait_bound=canonical("wait-bound", wait_bound)
        )
        replay = EmbeddedReplay(plan.opened(), plan.source(), run="kth/a")
        runs = {each.stage.name: each for each in replay.stages}
        while replay.step() and sum(map(len, self._waiting(runs))) < 12:  # in the midst of a queue
            pass
        self.states = runs
        self.readers = {name: MemoryReader() for name in ADVISE}
        for name in ADVISE:
            asyncio.run(self._store(self.readers[name], runs.get(name) or self._silent(NAMED[name], runs)))

    @staticmethod
    def _waiting(runs: dict[str, StageRun]) -> list[Any]:
        handler = runs["scheduler"].handler
        return [] if handler is None else [handler.jobs.waiting]

    @staticmethod
    def _silent(stage: Stage, runs: dict[str, StageRun]) -> StageRun:
        raise AssertionError(f"{stage.name} is not among {sorted(runs)}")

    @staticmethod
    async def _store(reader: MemoryReader, state: StageRun) -> None:
        sequence = state.sequence
        await reader.commit(Transaction("kth/a", -1, sequence, sequence, 0, state.snapshot(), [], [], 0))

    @property
    def advising(self) -> Advising:
        return Advising(*(Answers(NAMED[name], self.readers[name]) for name in ADVISE))

    def advise(self, **parameters: object) -> Advice:
        question = asked(**parameters)
        return asyncio.run(self.advising.advise(question))


def asked(**parameters: object) -> AdviceQuestion:
    return read_as(AdviceQuestion, {"cluster": "kth", "processors": 8, "requested_time": 7200, **parameters})
