"""A documented method is called if it is overridden: of a class that derives from any policy, predictor or source."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import shadowtime
from shadowtime.replayer.api.own import OwnClasses
from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.simulation import SOURCES
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.services.catalogue import REGISTRIES, canonical, configure
from shadowtime.services.explained import EXPLAINED
from shadowtime.services.scheduler.policies.easy import Easy
from shadowtime.shared.messages import ClusterOpened, Envelope, JobStarted, JobSubmitted, SchedulingPoint, WaitBound
from shadowtime.shared.stages import BoundsWaits, ForecastsStarts, StageRun

LOG = shadowtime.read_log(jobs=250)


def documented(of: type[Any]) -> Iterator[str]:
    """Yield the public methods with a docstring that a class or its bases in the project define."""
    for name in dir(of):
        method = getattr(of, name)
        owner = next((base for base in of.__mro__ if name in vars(base)), object)
        plain = callable(method) and not isinstance(vars(owner).get(name), (staticmethod, classmethod, type))
        if not name.startswith("_") and plain and owner.__module__.startswith("shadowtime.") and method.__doc__:
            yield name


def counting(of: type[Any], name: str, called: Counter[str]) -> type[Any]:
    """Return a class that derives from another, and counts the calls of each documented method."""

    def wrap(method: str) -> Any:
        def overridden(self: Any, *arguments: Any, **options: Any) -> Any:
            called[method] += 1
            return getattr(super(derived, self), method)(*arguments, **options)

        return overridden

    methods = {method: wrap(method) for method in documented(of)}
    derived: type[Any] = type("Derived", (of,), {"name": name, **methods})
    return derived


QUERIES = {
    "beside": "only of policies that set `sees_all`, on machines with pools",
    "own_snapshot": "of all pools but the first; by default `snapshot`",
    "share": "only of policies that set `sees_all`, on machines with pools",
    "force_pass": "asked by explanations of waiting jobs, if the policy can be run on a copy",
    "last_jobs": "asked by predictors that hold another one",
    "point": "asked by the search for templates",
    "belief": "asked by predict_one of a job alone",
    "can_start": "asked by replays over Kafka and by the explanations of a pass",
}
"""Documented methods that a replay does not call, and why."""

HEAD = JobSubmitted(time=0, job_number=10**6, requested_processors=4, requested_time=600, user_id=1)


AT_LEAST_500 = ("boosted", "mixture")


def carried_out(kind: str, name: str, of: type[Any]) -> None:
    """Replay with a class in the place of `kind`, save and restore all state in between, and ask what can be asked."""
    own = OwnClasses()
    spec = own.spec_of(kind, of)
    with own:
        keys = set(REGISTRIES[kind].classes[spec].Settings.model_fields)
        chosen = [
            text
            for text in ("predict=anew", f"history={500 if name in AT_LEAST_500 else 100}", "forecast=yes")
            if text.partition("=")[0] in keys
        ]
        specs = {"policy": "easy:forecast=yes", "runtime": "downey-mean(predict=anew)", "adjustment": "none"}
        specs |= {"wait-bound": "bmbp"} | {kind: spec + (f":{','.join(chosen)}" if chosen else "")}
        configuration = configure(specs["policy"], specs["runtime"], specs["adjustment"])
        bound = canonical("wait-bound", specs["wait-bound"])
        plan = RunPlan("mine", "a", LOG, configuration, wait_bound=bound)
        first, then = (EmbeddedReplay(plan.opened(), plan.source()) for _ in range(2))
        for _ in range(300):
            first.step()
        then.restore(first.snapshot())
        handlers: dict[str, Any] = {run.stage.name: run.handler for run in then.stages}
        now = handlers["scheduler"].time
        assert isinstance(handlers["scheduler"], ForecastsStarts)
        handlers["scheduler"].starts_of([(HEAD.model_copy(update={"time": now}), None)])
        assert isinstance(handlers["wait_bound"], BoundsWaits)
        for side in ("upper", "lower"):
            handlers["wait_bound"].bounds_at(HEAD, 0.9, 0.9, side)
        handlers["wait_bound"].doubt_at(WaitBound(grouping="plain", quantile=0.95, confidence=0.95, bound=60))
        handlers["wait_bound"].ranges_at(HEAD)
        explaining: Any = StageRun(EXPLAINED)
        (scheduler,) = [run for run in first.stages if run.stage.name == "scheduler"]
        explaining.restore(scheduler.snapshot())
        for number in list(explaining.handler.jobs.waiting):
            explaining.handler.explain(number, "a", 1)
        then.run_to_end()


CASES = [(kind, name) for kind in REGISTRIES for name in REGISTRIES[kind].classes]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=[name for _, name in CASES])
def test_every_documented_method_is_called_if_it_is_overridden(kind: str, name: str) -> None:
    called: Counter[str] = Counter()
    of = REGISTRIES[kind].classes[name]
    carried_out(kind, name, counting(of, f"derived-{name}", called))
    assert sorted(set(documented(of)) - set(called) - set(QUERIES)) == []


@pytest.mark.parametrize("mode", list(SOURCES))
def test_every_documented_method_of_a_source_is_called(mode: str) -> None:
    called: Counter[str] = Counter()
    of = SOURCES[mode]
    derived = counting(of, "derived", called)
    plan = RunPlan("easy", "a", LOG, configure("easy"), mode=mode)
    first, then = (EmbeddedReplay(plan.opened(), derived(plan.workload, plan.capacity, plan.traits)) for _ in range(2))
    for _ in range(300):
        first.step()
    then.restore(first.snapshot())
    then.run_to_end()
    assert sorted(set(documented(of)) - set(called) - set(QUERIES)) == []


def test_explanations_show_the_rows_of_a_subclass() -> None:
    """They showed the order of submission, under the name of the default order."""

    class Widest(Easy):
        name = "widest"

        def rows(self, now: int, queue: Any) -> Any:
            return np.argsort(-queue.processors, kind="stable")

    own = OwnClasses()
    spec = own.spec_of("policy", Widest)
    with own:
        state: Any = StageRun(EXPLAINED)
        events: list[Any] = [
            ClusterOpened(time=0, cluster="a", processors=8, policy=configure(spec).policy),
            *(JobSubmitted(time=0, job_number=n, requested_processors=n, requested_time=60) for n in (8, 3, 5, 4)),
        ]
        decided = SchedulingPoint(time=0)
        for sequence, event in enumerate([*events, decided]):
            state.push(Envelope(run="a", cluster="a", sequence=sequence, event=event))
        started = JobStarted(time=0, job_number=8, processors=8)
        state.push(Envelope(run="a", cluster="a", sequence=len(events) + 1, event=started))
        why = state.handler.explain(3, "a", 1)

    assert why.ahead is not None
    assert (why.ahead.order, why.ahead.job_numbers) == ("widest", (5, 4))


def test_an_order_of_ones_own_decides_as_the_order_of_that_name() -> None:
    """F2: `Easy.order` was never asked with default keys, and the replay was EASY's under another name."""

    class Shortest(Easy):
        name = "shortest"

        def order(self, now: int, queue: Any) -> Any:
            return np.argsort(np.argsort(queue.predicted_time, kind="stable"), kind="stable")

    class ServedShortest(Easy):
        name = "served-shortest"

        def rows(self, now: int, queue: Any) -> Any:
            return np.argsort(queue.predicted_time, kind="stable")

    def starts(policy: Any) -> list[int]:
        return shadowtime.replay(LOG, policy).jobs["start_time"].tolist()

    assert starts(Shortest) == starts("easy:candidates=spf")
    assert starts(ServedShortest) == starts("easy:queue=spf")
    assert starts(Shortest) != starts("easy") != starts(ServedShortest)
