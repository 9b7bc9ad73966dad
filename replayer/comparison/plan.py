"""Plans of runs, and their replay: one alone, several at the same time at a pace, or several over Kafka."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

from shadowtime.replayer.comparison.wait_coverage import BoundedWaits
from shadowtime.replayer.io import CLOCKS, Pace, Stopwatch
from shadowtime.replayer.logs import YEAR_2000, Workload
from shadowtime.replayer.simulation import (
    DEFAULT_TRAITS,
    SOURCES,
    CompiledReplay,
    EmbeddedReplay,
    JobTraits,
    Machine,
    Observer,
    ReplaySource,
    compiled_replay,
    named_errors,
)
from shadowtime.services.catalogue import DEFAULTS, Configuration
from shadowtime.services.pipeline import STAGES
from shadowtime.services.scheduler import POLICIES
from shadowtime.shared.chance import key_of
from shadowtime.shared.errors import ReplayError
from shadowtime.shared.kernels import Kernel
from shadowtime.shared.messages import CapacityChanged, ClusterOpened, Envelope, Scores, run_name
from shadowtime.shared.spec import parse
from shadowtime.shared.statistics import Interval

if TYPE_CHECKING:
    from shadowtime.shared.streaming import Settings


REHEARSED_JOBS = 150
"""Number of jobs whose replay shows which kernels are needed; with plain functions it takes about a second."""


class RunPlan(NamedTuple):
    """The plan of one run: a workload, a configuration, and the label of its row in tables.

    `sample_every` and `experiment` are as in `ClusterOpened`.
    """

    label: str
    cluster: str
    workload: Workload
    configuration: Configuration
    mode: str = Machine.name
    wait_bound: str = DEFAULTS["wait-bound"]
    seed: int = 0
    capacity: tuple[CapacityChanged, ...] = ()
    traits: JobTraits = DEFAULT_TRAITS
    sample_every: int | None = None
    experiment: str | None = None

    @property
    def bounds_waits(self) -> bool:
        """Whether the run has wait bounds."""
        return self.wait_bound != DEFAULTS["wait-bound"]

    @property
    def obeyed(self) -> bool:
        """Whether jobs start as decided, not as recorded."""
        obeys: bool = SOURCES[self.mode].closed_loop
        return obeys

    def of_first_jobs(self, jobs: int) -> "RunPlan":
        """Return the plan of a run of the first jobs alone."""
        columns = {name: column[:jobs] for name, column in self.workload.columns.items()}
        return self._replace(workload=replace(self.workload, columns=columns))

    def source(self) -> ReplaySource:
        """Return a new event source of the run, at its beginning."""
        with named_errors(kind := SOURCES[self.mode]):
            source: ReplaySource = kind(self.workload, self.capacity, self.traits)
        return source

    def opened(self) -> ClusterOpened:
        """Return the opening event of the run, with the settings of the run."""
        return ClusterOpened(
            time=min([next(iter(self.workload)).submit_time, *(change.time for change in self.capacity[:1])]),
            cluster=self.cluster,
            processors=self.workload.processors,
            pools=self.workload.pools,
            mode="closed" if self.obeyed else "recorded",
            policy=self.configuration.policy,
            runtime=self.configuration.runtime,
            adjustment=self.configuration.adjustment,
            wait_bound=self.wait_bound,
            seed=self.seed,
            unix_start=YEAR_2000 if (start := self.workload.unix_start_time) is None else start,
            sample_every=self.sample_every,
            name=run_name(self.label),
            experiment=self.experiment,
        )

    def replay(self, observers: Sequence[Observer] = (), stopwatch: Stopwatch | None = None) -> EmbeddedReplay:
        """Return a new embedded replay of the run. A stopwatch, if given, measures its wait-bound stage."""
        stages = [stopwatch.around(stage) if stopwatch and stage.name == "wait_bound" else stage for stage in STAGES]
        return EmbeddedReplay(self.opened(), self.source(), observers, run_name(self.cluster, self.label), stages)

    def stopwatch(self) -> Stopwatch | None:
        """Return a stopwatch for the wait-bound stage; None if the run has no wait bounds."""
        return Stopwatch() if self.bounds_waits else None


class RunResult(NamedTuple):
    """The result of a plan.

    `wait_bound_seconds` is the run time of the wait-bound stage, if measured. `coverage` has the coverage of each
    grouping with its confidence interval, if measured. `compiled` has the schedule if the compiled machine replayed the
    run; None if the pipeline did.
    """

    plan: RunPlan
    scores: Scores
    elapsed_seconds: float
    cpu_seconds: float
    wait_bound_seconds: float | None = None
    coverage: Mapping[str, Interval] = MappingProxyType({})
    compiled: CompiledReplay | None = None


def carry_out_compiled(plan: RunPlan) -> RunResult | None:
    """Replay one plan on the compiled machine, and return its result; None if only the pipeline can replay it."""
    if plan.mode != Machine.name:
        return None
    began = CLOCKS.now()
    with rehearsed(carry_out_compiled, [plan]):
        compiled = compiled_replay(plan.opened(), plan.workload, plan.capacity, plan.traits)
    if compiled is None:
        return None
    return RunResult(plan, compiled.scores, *CLOCKS.since(began), compiled=compiled)


@contextmanager
def rehearsed(carry_out_plan: Callable[[RunPlan], object], plans: Sequence[RunPlan]) -> Iterator[None]:
    """Let the first jobs of each plan show, if kernels are missing, which ones the replays will need."""

    def rehearse() -> None:
        for plan in plans:
            if plan.workload.whole:
                carry_out_plan(plan.of_first_jobs(REHEARSED_JOBS))

    before = Kernel.rehearsal
    if before is None and Kernel.rehearsed is None:
        Kernel.rehearsal = rehearse
    try:
        yield
    finally:
        Kernel.rehearsal = before


def carry_out(plan: RunPlan, observers: Sequence[Observer] = (), *, own: bool = False) -> RunResult:
    """Replay one plan as fast as possible through the pipeline, and return its result.

    Raise `ReplayError` if the replay cannot continue. With classes of the user's own, nothing is called but once.
    """
    stopwatch, waits = plan.stopwatch(), BoundedWaits()
    remembered = plan.bounds_waits and plan.workload.whole
    replay = plan.replay([*observers, waits] if remembered else observers, stopwatch)
    began = CLOCKS.now()
    with nullcontext() if own else rehearsed(carry_out, [plan]):
        replay.run_to_end()
    result = _result(plan, replay.run, replay.last, *CLOCKS.since(began), stopwatch)
    return result._replace(coverage=waits.coverage(key_of(plan.seed, plan.cluster)))


def carry_out_paced(plans: Sequence[RunPlan], pace: Pace, observers: Sequence[Sequence[Observer]]) -> list[RunResult]:
    """Replay several plans at the same time and at a pace, each from its first instant and with its own observers."""
    stopwatches = [plan.stopwatch() for plan in plans]
    work = zip(plans, observers, stopwatches, strict=True)
    replays = [plan.replay(seen_by, stopwatch) for plan, seen_by, stopwatch in work]
    began = [replay.next_time() or 0 for replay in replays]
    opened = CLOCKS.now()
    open_runs = set(range(len(plans)))
    results: dict[int, RunResult] = {}
    while open_runs:
        due = {run: (replays[run].next_time() or began[run]) - began[run] for run in open_runs}
        run = min(due, key=lambda name: (due[name], name))
        pace.wait_for(due[run])
        if not replays[run].step():
            open_runs.remove(run)
            replay = replays[run]
            results[run] = _result(plans[run], replay.run, replay.last, *CLOCKS.since(opened), stopwatches[run])

    return [results[run] for run in range(len(plans))]


async def carry_out_streamed(
    plans: Sequence[RunPlan],
    settings: "Settings",
    run: str | None,
    pace: Pace | None,
    observers: Sequence[Sequence[Observer]],
) -> list[RunResult]:
    """Replay several plans over Kafka at the same time. Errors are raised as an `ExceptionGroup`.

    `run` is the name of the run, or a prefix for the names of several runs. Without `run`, names are unique. A run is
    resumed if the Kafka log already has a run of this name. Without `pace`, the replay is as fast as possible.
    """
    # here, so that an embedded replay does not load the Kafka client
    import asyncio

    from shadowtime.replayer.io import StreamedReplay

    names = [run_name(plan.cluster, plan.label, uuid4().hex[:8]) if run is None else run for plan in plans]
    experiment = run_name(f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {run or ''}".rstrip())
    if run is not None and len(plans) > 1:
        names = [run_name(run, plan.cluster, plan.label) for plan in plans]

    async def carry_out_one(plan: RunPlan, name: str, seen_by: Sequence[Observer]) -> RunResult:
        starts_only = POLICIES.build(parse(plan.configuration.policy)).starts_only
        opened = plan._replace(sample_every=settings.sample_seconds or None, experiment=experiment).opened()
        replay = StreamedReplay(opened, plan.source(), seen_by, name, settings, starts_only=starts_only, pace=pace)
        began = CLOCKS.now()
        last = await replay.run_to_end()
        return _result(plan, name, last, *CLOCKS.since(began))

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(carry_out_one(*work)) for work in zip(plans, names, observers, strict=True)]
    return [task.result() for task in tasks]


def _result(
    plan: RunPlan, run: str, last: Envelope | None, elapsed: float, cpu: float, stopwatch: Stopwatch | None = None
) -> RunResult:
    if last is None or last.scores is None:
        raise ReplayError(f"run {run!r} ended without scores")
    return RunResult(plan, last.scores, elapsed, cpu, None if stopwatch is None else stopwatch.seconds)
