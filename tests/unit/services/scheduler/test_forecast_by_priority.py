"""Forecasts in the order of priority, against the machine that goes on as was predicted."""

from random import Random
from typing import Any

import pytest

from shadowtime.services.catalogue import configure
from shadowtime.services.pipeline import STAGES
from shadowtime.shared.messages.envelope import (
    ClusterOpened,
    Decided,
    Envelope,
    Event,
    JobChanged,
    JobEnded,
    JobStarted,
    JobSubmitted,
    SchedulingPoint,
)
from shadowtime.shared.messages.predictions import RunTimePrediction, WaitForecast
from shadowtime.shared.stages.stage import StageRun

PROCESSORS = 16
(SCHEDULER,) = (stage for stage in STAGES if stage.name == "scheduler")


class Machine:
    """A machine that EASY runs in order of priority, where jobs run as predicted; another policy is told."""

    def __init__(self, policy: str) -> None:
        self.runs = [StageRun(SCHEDULER), StageRun(SCHEDULER)]
        self.sequence = self.time = 0
        self.run_times: dict[int, int] = {}
        self.ends: dict[int, int] = {}
        self.starts: dict[int, int] = {}
        machine: dict[str, Any] = {"time": 0, "cluster": "c", "processors": PROCESSORS, "runtime": "requested"}
        self.push(
            ClusterOpened(**machine, policy=configure("easy:queue=priority", "requested", "none").policy),
            ClusterOpened(**machine, policy=configure(policy, "requested", "none").policy, mode="recorded"),
        )

    def push(self, event: Event, other: Event | None = None, run_time: int | None = None) -> list[Envelope]:
        predicted = None if run_time is None else RunTimePrediction(point=float(run_time), observations=9)
        told = []
        for run, each in zip(self.runs, (event, other or event), strict=True):
            answer = run.push(Envelope(run="r", sequence=self.sequence, event=each, run_time=predicted))
            assert answer is not None
            told.append(answer)
        self.sequence += 1
        return told

    def submit(self, number: int, processors: int, run_time: int, requested: int, priority: int) -> WaitForecast | None:
        self.run_times[number] = run_time
        asked: dict[str, Any] = {"requested_processors": processors, "requested_time": requested, "priority": priority}
        return self.push(JobSubmitted(time=self.time, job_number=number, **asked), run_time=run_time)[1].forecast

    def go_on(self, until: int) -> None:
        """Start what EASY decides, and let jobs end, up to an instant; its scheduling point is left out."""
        while self.time < until:
            decided = self.push(SchedulingPoint(time=self.time))[0].event
            assert isinstance(decided, Decided)
            for each in decided.starts:
                number = each.job_number
                self.push(JobStarted(time=self.time, job_number=number, processors=each.processors, limit=each.limit))
                self.starts[number], self.ends[number] = self.time, self.time + self.run_times[number]
            self.time = min(until, min(self.ends.values(), default=until))
            for number in sorted(each for each, end in self.ends.items() if end == self.time):
                del self.ends[number]
                self.push(JobEnded(time=self.time, job_number=number, run_time=self.run_times[number]))


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("policy", ["easy:queue=priority,forecast=yes", "cautious:queue=priority,forecast=yes"])
def test_a_job_starts_when_it_was_forecast_if_nothing_else_comes(policy: str, seed: int) -> None:
    random = Random(seed)
    machine = Machine(policy)
    jobs, forecast = random.randint(3, 25), None
    for number in range(1, jobs + 1):
        run_time = random.choice((10, 60, 300, 900))
        requested = run_time * random.choice((1, 2, 9))
        forecast = machine.submit(number, random.randint(1, PROCESSORS), run_time, requested, random.randint(0, 3))
        assert forecast is not None
        waiting = [each for each in machine.run_times if each not in machine.starts]
        if number < jobs and random.random() < 0.2:
            machine.push(
                JobChanged(time=machine.time, job_number=random.choice(waiting), priority=random.randint(0, 5))
            )
        if number < jobs and random.random() < 0.5:
            machine.go_on(machine.time + random.choice((1, 7, 100)))
    submitted = machine.time
    machine.go_on(10**6)
    assert forecast is not None
    assert forecast.wait == machine.starts[jobs] - submitted
