"""The tests that every policy must pass."""

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.logs import Workload
from shadowtime.replayer.simulation import EmbeddedReplay, Machine
from shadowtime.services.scheduler import POLICIES, Output, Policy
from shadowtime.shared.messages import (
    Again,
    Chosen,
    ClusterOpened,
    CutShort,
    Decided,
    Envelope,
    Evaluated,
    JobEnded,
    JobStarted,
    Kill,
    SchedulingPoint,
    Start,
)
from shadowtime.shared.spec import parse
from shadowtime.testing.examples import examples
from shadowtime.testing.instances import Instance, contents, instances
from shadowtime.testing.listed import own_specs
from shadowtime.testing.pipeline import InPipeline
from shadowtime.testing.workloads import workloads


@st.composite
def runtimes(draw: st.DrawFn) -> str:
    """Draw the SPEC of a usable predictor of this package. The list is made anew at each draw."""
    return draw(st.sampled_from(own_specs("runtime")))


def policy_of(spec: str) -> Policy:
    return POLICIES.build(parse(spec))


def decide(policy: Policy, instance: Instance) -> list[Output]:
    """Return the decisions of a policy, and assert that it has not changed the tables."""
    tables = instance.tables()
    before = contents(*tables)
    decisions = list(policy.schedule(instance.now, *tables, instance.free))
    assert contents(*tables) == before
    return decisions


class Occupancy:
    """Observer of a replay. It asserts that decided jobs start at once, as decided, on free processors."""

    def __init__(self, processors: int) -> None:
        self.free = processors
        self.holds: dict[int, int] = {}
        self.started: list[int] = []
        self.due: list[Start] = []

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, Decided):
            assert not self.due
            self.due = list(event.starts)
        elif isinstance(event, JobStarted):
            decided = self.due.pop(0)
            assert (event.job_number, event.processors, event.limit) == (
                decided.job_number,
                decided.processors,
                decided.limit,
            )
            self.free -= event.processors
            self.holds[event.job_number] = event.processors
            self.started.append(event.job_number)
            assert self.free >= 0
        elif isinstance(event, JobEnded):
            self.free += self.holds.pop(event.job_number)


class Policies(InPipeline):
    """The tests that a policy must pass, by itself and in the pipeline."""

    option = "policy"

    @given(instance=instances())
    @examples(60)
    def test_decisions_are_about_jobs_that_are_there(self, spec: str, instance: Instance) -> None:
        decisions = decide(policy_of(spec), instance)
        started = [decision.job_number for decision in decisions if isinstance(decision, Start)]
        killed = [decision.job_number for decision in decisions if isinstance(decision, Kill)]
        assert len(set(started)) == len(started)
        assert len(set(killed)) == len(killed)
        assert set(started) <= {job.job_number for job in instance.queue}
        assert set(killed) <= {job.job_number for job in instance.running}

    @given(instance=instances())
    @examples(60)
    def test_no_more_is_started_than_is_free(self, spec: str, instance: Instance) -> None:
        decisions = decide(policy_of(spec), instance)
        holding = {job.job_number: job.processors for job in instance.running}
        taken = sum(decision.processors for decision in decisions if isinstance(decision, Start))
        given_back = sum(holding[decision.job_number] for decision in decisions if isinstance(decision, Kill))
        assert taken <= max(instance.free + given_back, 0)

    @given(instance=instances())
    @examples(60)
    def test_every_decision_has_its_reason_and_its_limit(self, spec: str, instance: Instance) -> None:
        requested = {job.job_number: job.requested_time for job in instance.queue}
        waiting = {job.job_number: job for job in instance.queue}
        for start in decide(policy_of(spec), instance):
            if isinstance(start, Again | Chosen | CutShort | Evaluated):
                continue
            assert start.reason
            if isinstance(start, Start):
                assert start.processors >= 1
                assert start.limit is None or 1 <= start.limit <= requested[start.job_number]
                head = getattr(start.reason, "head", None)
                assert head is None or (head in waiting and head != start.job_number)

    @given(instance=instances())
    @examples(60)
    def test_a_policy_that_only_starts_is_silent_when_nothing_fits(self, spec: str, instance: Instance) -> None:
        policy = policy_of(spec)
        if not policy.starts_only:
            return
        sizes = {job.job_number: job.processors for job in instance.queue}
        for start in decide(policy, instance):
            if isinstance(start, Chosen | Evaluated):
                continue
            assert isinstance(start, Start)
            assert start.processors == sizes[start.job_number]

        too_few = instance._replace(free=min(sizes.values(), default=1) - 1)
        assert decide(policy, too_few) == []

    @pytest.mark.parametrize("free", [-5, 0, 1, 100])
    def test_an_empty_queue_gives_no_starts(self, spec: str, free: int) -> None:
        assert decide(policy_of(spec), Instance(10, free, [], [], ())) == []

    @given(before=st.lists(instances(), max_size=3), after=st.lists(instances(), min_size=1, max_size=3))
    @examples(30)
    def test_deterministic_also_when_restored(self, spec: str, before: list[Instance], after: list[Instance]) -> None:
        policy, twin, restored = policy_of(spec), policy_of(spec), policy_of(spec)
        for instance in before:
            policy.observe(SchedulingPoint(time=instance.now))
            twin.observe(SchedulingPoint(time=instance.now))
            assert decide(policy, instance) == decide(twin, instance)

        restored.restore(orjson.loads(orjson.dumps(policy.snapshot(), option=orjson.OPT_SERIALIZE_NUMPY)))
        for instance in after:
            expected = decide(policy, instance)
            assert decide(twin, instance) == expected
            assert decide(restored, instance) == expected

    @given(jobs=workloads(), runtime=runtimes())
    @examples(30)
    def test_every_job_starts_in_the_end(self, spec: str, jobs: Workload, runtime: str) -> None:
        opened = ClusterOpened(time=0, cluster="c", processors=jobs.processors, policy=spec, runtime=runtime)
        occupancy = Occupancy(jobs.processors)
        last = EmbeddedReplay(opened, Machine(jobs), [occupancy]).run_to_end()
        assert set(occupancy.started) == {job.job_number for job in jobs}
        assert not occupancy.holds
        assert last.scores is not None
        assert last.scores.policy.jobs == len(jobs)
