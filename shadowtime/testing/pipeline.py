"""The tests of a plug-in within the pipeline, together with all other stages."""

from collections.abc import Callable
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.replayer.comparison import RunPlan
from shadowtime.replayer.logs import Workload
from shadowtime.services.catalogue import DEFAULTS, canonical, configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import Decided, Envelope, JobEnded, SchedulingPoint
from shadowtime.shared.spec import parse
from shadowtime.shared.stages import StageRun
from shadowtime.testing.examples import examples
from shadowtime.testing.workloads import TraceRow, workload, workloads

MORE = 7
"""Seconds by which a job runs longer in the alternative future."""


def played(of: RunPlan) -> list[Envelope]:
    """Replay a run, and return the last stage's envelope for every event."""
    envelopes: list[Envelope] = []
    of.replay([envelopes.append]).run_to_end()
    return envelopes


def foresees_nothing(plan: Callable[[Workload], RunPlan], jobs: Workload, share: float) -> None:
    """Assert that a run's output up to an instant does not depend on later events.

    The run is repeated with an alternative future: no more jobs are submitted, and jobs that have not ended run longer.
    `plan` returns the run of a workload. `share` is the place of the instant among the events, from 0 to 1.
    """
    envelopes = played(plan(jobs))[:-1]
    now = envelopes[int(share * (len(envelopes) - 1))].event.time
    ended = {
        envelope.event.job_number
        for envelope in envelopes
        if isinstance(envelope.event, JobEnded) and not envelope.event.requeued and envelope.event.time <= now
    }
    first = jobs[0].job_number
    other = workload(
        jobs.processors,
        [
            TraceRow(
                job.job_number,
                job.submit_time,
                job.processors,
                job.requested_time,
                job.run_time if job.job_number in ended else job.run_time + MORE,
                *(-1 if value is None else value for value in (job.user_id, job.wait_time, job.status)),
            )
            for job in jobs
            if job.submit_time <= now or job.job_number == first
        ],
    )
    again = played(plan(other))[:-1]
    assert [envelope for envelope in again if envelope.event.time <= now] == [
        envelope for envelope in envelopes if envelope.event.time <= now
    ]


def by_wire(envelopes: list[Envelope], every: int) -> list[Envelope]:
    """Repeat a run through the stages, with serialized messages, and return the last stage's envelopes.

    After every `every` events the state of each stage is saved and restored into a new stage.
    """
    runs = [StageRun(stage) for stage in STAGES]
    answers = []
    for result in envelopes:
        event = SchedulingPoint(time=result.event.time) if isinstance(result.event, Decided) else result.event
        envelope = Envelope(run=result.run, cluster=result.cluster, sequence=result.sequence, event=event)
        for place, run in enumerate(runs):
            answer = run.push(Envelope.from_bytes(envelope.to_bytes()))
            assert answer is not None
            envelope = answer
            if result.sequence % every == 0:
                runs[place] = StageRun(run.stage)
                runs[place].restore(run.snapshot())

        answers.append(Envelope.from_bytes(envelope.to_bytes()))

    return answers


class InPipeline:
    """The tests that policies, predictors, adjusters and bounders must pass in the pipeline."""

    option: ClassVar[str]

    def plan(self, spec: str, jobs: Workload) -> RunPlan:
        """Return a closed run under a SPEC, with defaults for all other options."""
        chosen = {**DEFAULTS, self.option: spec}
        configuration = configure(chosen["policy"], chosen["runtime"], chosen["adjustment"])
        return RunPlan("tried", "c", jobs, configuration, wait_bound=chosen["wait-bound"])

    def test_its_spec_spelled_out_stays_the_same(self, spec: str) -> None:
        assert canonical(self.option, spec) == spec
        assert str(parse(spec)) == spec

    def test_a_key_that_it_does_not_have_is_named(self, spec: str) -> None:
        with pytest.raises(SettingsError, match="has no key 'glass'"):
            canonical(self.option, f"{parse(spec).name}:glass=1")

    @given(jobs=workloads(max_jobs=12), every=st.integers(1, 5))
    @examples(12)
    def test_a_stage_that_is_restored_says_what_the_embedded_one_says(
        self, spec: str, jobs: Workload, every: int
    ) -> None:
        embedded = played(self.plan(spec, jobs))
        assert by_wire(embedded, every) == embedded

    @given(jobs=workloads(max_jobs=12), share=st.floats(0, 1))
    @examples(5)
    def test_it_knows_nothing_of_the_future(self, spec: str, jobs: Workload, share: float) -> None:
        foresees_nothing(lambda known: self.plan(spec, known), jobs, share)
