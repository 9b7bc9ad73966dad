"""The smallest machine, or the largest load, with which a policy keeps a target: `shadowtime plan` (docs/plan.md)."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from math import ceil, floor, isnan
from statistics import fmean
from typing import NamedTuple

import numpy as np

from shadowtime.replayer.arguments import require_different
from shadowtime.replayer.comparison import RunPlan, replay_schedule
from shadowtime.replayer.logs import MAX_MACHINE, Trace, Workload, perturbed, prepare
from shadowtime.replayer.options import Oversized, Requests
from shadowtime.replayer.sweep.ranges import PLAIN, UNIT, UNITS
from shadowtime.services.catalogue import Configuration, configure
from shadowtime.shared.cli import FittedTable
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.formatting import counted
from shadowtime.shared.kernels import Floats
from shadowtime.shared.quoting import quote
from shadowtime.shared.statistics import half_width
from shadowtime.shared.text import NOTHING, TableColumn

TARGET = re.compile(rf"\s*(mean|median|longest|p{PLAIN})\s+(wait|slowdown)\s*<=\s*({PLAIN})\s*({UNIT})\s*\Z")
EXAMPLES = "expected a target such as 'p95 wait <= 4h', 'mean wait <= 30min' or 'mean slowdown <= 20'"

LARGEST = 64
"""Largest machine, up to `MAX_MACHINE`, and largest load that are tried, as multiples of those of the log."""

STEPS = 200
"""Number of steps into which the size of the log's machine is divided. Loads have steps of a hundredth."""


class Target(NamedTuple):
    """A limit on a statistic of the waits in seconds, or of the bounded slowdowns.

    `share` is the quantile between 0 and 1; None for the mean.
    """

    text: str
    share: float | None
    of_waits: bool
    limit: float

    def kept(self, waits: Floats, run_times: Floats) -> bool:
        """Return whether jobs with these waits and run times, in seconds, keep the target.

        Slowdowns count a run time as at least 10 s, and are at least 1.
        """
        values = waits if self.of_waits else np.maximum((waits + run_times) / np.maximum(run_times, 10.0), 1.0)
        if self.share is None:
            return bool(values.mean() <= self.limit)
        at = max(ceil(round(self.share * len(values), 9)), 1) - 1
        return bool(np.partition(values, at)[at] <= self.limit)


def parse_target(text: str) -> Target:
    """Return the target that a text states.

    Raise `SettingsError` if the text is no target.

    Examples
    --------
    >>> parse_target("p95 wait <= 4h")
    Target(text='p95 wait <= 4h', share=0.95, of_waits=True, limit=14400.0)
    >>> parse_target("mean slowdown <= 20").share is None
    True
    """
    match = TARGET.match(text)
    if match is None:
        raise SettingsError(f"--target {quote(text)}: {EXAMPLES}")
    statistic, figure, number, unit = match.groups()
    if (figure == "wait") != bool(unit):
        needs = "a wait has a unit: s, min, h or d" if figure == "wait" else "a slowdown has no unit"
        raise SettingsError(f"--target {quote(text)}: {needs}; {EXAMPLES}")
    shares = {"mean": None, "median": 0.5, "longest": 1.0}
    share = shares[statistic] if statistic in shares else float(statistic[1:]) / 100
    if share is not None and not 0 < share <= 1:
        raise SettingsError(f"--target {quote(text)}: expected a percentile above 0 and at most 100")
    return Target(" ".join(text.split()), share, figure == "wait", float(number) * UNITS[unit])


class CapacityQuestion(NamedTuple):
    """The question of a plan: the size of the machine, or the load with `of_load`, over a log and its copies."""

    trace: Trace
    processors: int
    of_load: bool
    copies: int
    jobs: int | None
    oversized: Oversized
    requests: Requests
    assumed_size: bool = False

    @property
    def step(self) -> int:
        """Step of the search: processors, or hundredths of the load."""
        return 1 if self.of_load else max(self.processors // STEPS, 1)

    @property
    def logged(self) -> int:
        """The log's own size in processors, or its own load in hundredths."""
        return 100 if self.of_load else self.processors

    @property
    def least(self) -> int:
        """The least value that is tried: the processors of the widest job; for loads, or if jobs are cut, one step."""
        if self.of_load or self.oversized == "align":
            return self.step
        return int(self.workload(self.logged, 0).columns["processors"].max())

    def workload(self, value: int, copy: int) -> Workload:
        """Return a draw of the log on a machine of `value` processors, or with a load of `value` hundredths.

        Copy 0 is the log itself. Jobs that the log's own machine leaves out are left out on every machine, so that all
        machines have the same jobs.
        """
        load = value / 100 if self.of_load else 1.0
        own = self.of_load or self.oversized == "drop"
        size = None if self.trace.pools is not None else self.processors if own else value
        prepared = prepare(
            self.trace, size, oversized=self.oversized, requests=self.requests, limit=self.jobs, load=load
        )
        return perturbed(prepared if self.of_load else replace(prepared, processors=value), copy)


class CapacityAnswer(NamedTuple):
    """The value of each draw with which a policy keeps the target: processors, or hundredths of the load.

    None for a draw in which no value in the range keeps it. A load at the end of the range stands for all larger loads.
    """

    policy: str
    values: tuple[int | None, ...]

    @property
    def interval(self) -> tuple[float, float | None, float | None] | None:
        """Mean and ends of the 95 % interval of the mean, from Student's t, none of them negative.

        None if a draw has no value. A single draw has a mean, but no interval: its ends are None.
        """
        values = [value for value in self.values if value is not None]
        if len(values) < len(self.values):
            return None
        mean, half = fmean(values), half_width(values)
        return (mean, None, None) if isnan(half) else (mean, max(mean - half, 0.0), mean + half)

    @property
    def failed(self) -> int:
        """Number of draws in which no value that was tried keeps the target."""
        return self.values.count(None)


def keeps(question: CapacityQuestion, target: Target, configured: Configuration, value: int, copy: int) -> bool:
    """Return whether a policy keeps the target on a draw. It replays the draw, on the compiled machine if possible."""
    workload = question.workload(value, copy)
    plan = RunPlan("plan", workload.name, workload, configured)
    jobs = replay_schedule(plan)[1].jobs
    return target.kept(jobs.wait.astype(np.float64), jobs.own_run_time.astype(np.float64))


def boundary(kept: Callable[[int], bool], start: int, step: int, least: int, most: int) -> int | None:
    """Return the smallest of `least`, `least + step`, … whose value is kept, by bisection; None above `most`.

    The search begins near `start`. It assumes that every larger value is kept, too. O(log(most / step)) calls. The
    largest value that is tried is at most `most`, and less than a step below it.

    >>> boundary(lambda value: value >= 37, start=20, step=1, least=1, most=1000)
    37
    >>> boundary(lambda value: value >= 990, start=20, step=1, least=1, most=1000)
    990
    >>> boundary(lambda value: False, start=20, step=1, least=1, most=1000) is None
    True
    """
    lost, held, last = -1, max(ceil((start - least) / step), 0), (most - least) // step
    while not kept(least + held * step):
        if held == last:
            return None
        lost, held = held, min(max(2 * held, 1), last)
    while held - lost > 1:
        middle = (lost + held) // 2
        if kept(least + middle * step):
            held = middle
        else:
            lost = middle
    return least + held * step


def answers(question: CapacityQuestion, target: Target, policies: list[str]) -> Iterator[CapacityAnswer]:
    """Yield the answer of each policy.

    Raise `SettingsError` if a SPEC is invalid, two policies are equal, or the size of a machine with pools is asked.
    """
    if question.trace.pools is not None and not question.of_load:
        raise SettingsError(
            f"{question.trace.name}: expected a machine without pools, because a plan varies only its number of "
            f"processors; found {counted(len(question.trace.pools), 'pool')}; find the largest load with --load, or "
            "leave --pools out"
        )
    chosen = [(policy, configure(policy)) for policy in policies]
    require_different("--policy", chosen)
    least = question.least
    for policy, configured in chosen:
        yield CapacityAnswer(
            policy, tuple(_searched(question, target, configured, least, copy) for copy in range(question.copies + 1))
        )


def _searched(
    question: CapacityQuestion, target: Target, configured: Configuration, least: int, copy: int
) -> int | None:
    """Return the value of one draw: the smallest size that is kept, or the load before the smallest that is not."""

    def kept(value: int) -> bool:
        return keeps(question, target, configured, value, copy)

    most = LARGEST * question.logged
    if question.of_load:
        lost = boundary(lambda load: not kept(load), question.logged, question.step, least, most)
        return most if lost is None else lost - 1 or None
    return boundary(kept, question.processors, question.step, least, min(most, MAX_MACHINE))


def _text(question: CapacityQuestion, value: float | None, *, up: bool | None = None) -> str:
    """Return a value in words, rounded up or down; by default to the safe side: processors up, loads down."""
    if value is None:
        return "none"
    rounded = (floor if question.of_load else ceil) if up is None else (ceil if up else floor)
    whole = rounded(round(value, 6))
    return f"{whole / 100:.2f}" if question.of_load else f"{whole:,}"


def sentence(question: CapacityQuestion, target: Target, results: list[CapacityAnswer]) -> str:
    """Return the answers in words: the policies that keep the target, the best first, then those that do not."""
    best = sorted(
        (result for result in results if result.interval is not None),
        key=lambda result: fmean([value or 0 for value in result.values]) * (-1 if question.of_load else 1),
    )
    parts = []
    for result in best:
        mean = _text(question, (result.interval or (None,))[0])
        least = "at least " * (question.of_load and LARGEST * question.logged in result.values)
        what = f"{least}{mean} times the load" if question.of_load else f"{mean} processors"
        within = _within(question, result)
        parts.append(f"{result.policy} at {what}{f' (95 %: {within})' if within != NOTHING else ''}")

    sentences = [f"{target.text} is kept by {'; by '.join(parts)}."] if parts else []
    for failed in sorted({result.failed for result in results} - {0}, reverse=True):
        policies = ", ".join(result.policy for result in results if result.failed == failed)
        draws = "" if failed > question.copies else f" in {failed} of {question.copies + 1} draws"
        sentences.append(f"{policies}: no value that was tried keeps {target.text}{draws}.")
    return " ".join(sentences)


def _within(question: CapacityQuestion, result: CapacityAnswer) -> str:
    """Return the 95 % interval of a mean in words, its ends rounded outwards."""
    _, low, high = result.interval or (None, None, None)
    if low is None or high is None:
        return NOTHING
    return f"{_text(question, low, up=False)} to {_text(question, high, up=True)}"


def plan_table(question: CapacityQuestion, target: Target, results: list[CapacityAnswer], name: str) -> FittedTable:
    """Return a table with a row for each policy: its mean, the interval of the mean, and the value of each draw."""
    columns = [
        TableColumn("mean", "", [_text(question, (result.interval or (None,))[0]) for result in results]),
        TableColumn("95 %", "", [_within(question, result) for result in results]),
        TableColumn("draws", "", [" ".join(_text(question, value) for value in result.values) for result in results]),
    ]
    what = f"largest load on {question.processors:,} processors" if question.of_load else "smallest machine, processors"
    size = f"{question.processors:,} processors"
    stated = f"the log states no size; {size} are assumed" if question.assumed_size else f"the log has {size}"
    notes = [] if question.of_load else [stated]
    policies = {"policy": [result.policy for result in results]}
    return FittedTable(f"{name}: {what}, for {target.text}", policies, columns, notes)
