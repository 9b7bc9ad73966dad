"""Sums that are made by the batch: it does not matter to them where one ends."""

from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import shadowtime.services.scoreboard.batch as batched
from shadowtime.services.scoreboard.scores.prediction_workload import PredictionWorkload
from shadowtime.services.scoreboard.scores.request_accuracy import WalltimeAccuracy
from shadowtime.services.scoreboard.scores.run_time_distributions import RunTimeDistributionScores
from shadowtime.services.scoreboard.scores.run_time_errors import RunTimeErrors
from shadowtime.services.scoreboard.scores.waits_and_utilization import WaitScores
from shadowtime.shared.bounds import MAX_DURATION, MAX_PROCESSORS
from shadowtime.shared.messages.predictions import RunTimePrediction, accuracy, adjustment_class
from shadowtime.shared.statistics.slowdown import bounded_slowdown, slowdown, unclamped_slowdown
from tests.support.plain_formulas import geometric_term, wfp_priority

HISTOGRAMS = (0.5, 0.3, 0.2), tuple([1 / 17] * 17), (0.0, 0.0, *[0.09] * 11, 0.010001)
QUANTILES = np.arange(1, 20) / 10

seconds = st.integers(0, 50) | st.integers(0, 10**6)
jobs = st.lists(
    st.tuples(seconds, seconds, seconds, st.integers(1, 99), st.integers(1, 10**6)), min_size=1, max_size=40
)


def fed(rows: list[Any], batch: int, *, restored: bool = False) -> list[Any]:
    """Return what five kinds of sums are after some jobs; `restored` once in the middle."""
    parts = waits, accuracies, errors, distributions, uses = (
        *(WaitScores(), WalltimeAccuracy(), RunTimeErrors()),
        *(RunTimeDistributionScores(), PredictionWorkload()),
    )
    with patch.object(batched, "BATCH", batch):
        for at, (submit, wait, run_time, processors, requested) in enumerate(rows):
            if restored and at == len(rows) // 2:
                for part in parts:
                    part.restore(part.snapshot())
            start = submit + wait
            waits.add(submit, start, start + run_time, processors, requested, run_time)
            accuracies.add(run_time, requested, min(requested, processors))
            errors.add(None if processors % 2 else requested + 0.1, requested if processors % 3 else None, run_time)
            known = {"at_request": 0.1} if processors % 2 else {"quantiles": tuple(QUANTILES * run_time)}
            prediction = RunTimePrediction(point=1, observations=1, histogram=HISTOGRAMS[processors % 3], **known)
            distributions.add(prediction, requested if processors % 5 else None, run_time)
            uses.submit(at, requested / 7)
            uses.decide()
            uses.start(at)
            uses.decide()
            uses.end(at, run_time)
    return [part.snapshot() for part in parts]


@given(rows=jobs, batch=st.integers(1, 50))
def test_where_a_batch_ends_does_not_matter_to_a_bit(rows: list[Any], batch: int) -> None:
    assert fed(rows, 512) == fed(rows, batch) == fed(rows, 512, restored=True)


@given(rows=jobs)
def test_a_batch_is_one_after_another_as_the_functions_have_it(rows: list[Any]) -> None:
    waits, accuracies, *_ = fed(rows, 512)
    sums, classes = [0.0] * 9, dict.fromkeys(("none", "over", "under", "bad"), 0)
    for _, wait, run_time, processors, requested in rows:
        priority = wfp_priority(wait, requested, processors)
        slowdowns = bounded_slowdown(wait, run_time), unclamped_slowdown(wait, run_time)
        plain = slowdown(wait, run_time), float(wait) ** 2
        near = accuracy(run_time, min(requested, processors)), accuracy(run_time, requested)
        for at, term in enumerate((geometric_term(wait), *slowdowns, priority, priority * wait, *plain, *near)):
            sums[at] += term
        classes[adjustment_class(run_time, requested, min(requested, processors))] += 1
    assert [waits[name] for name in WaitScores.FLOATS] == sums[:7]
    assert [accuracies["accuracy"], accuracies["accuracy_requested"]] == sums[7:]
    assert dict(accuracies["classes"]) == {name: count for name, count in classes.items() if count}


def test_whole_sums_outgrow_64_bits() -> None:
    waits = WaitScores()
    for _ in range(3):
        waits.add(0, 0, MAX_DURATION, MAX_PROCESSORS, MAX_DURATION, MAX_DURATION)
    waits.fold()
    assert waits.processor_seconds == 3 * MAX_DURATION * MAX_PROCESSORS
    assert waits.summary(1)["mean_wait"] == 0


@pytest.mark.parametrize("part", [WaitScores, WalltimeAccuracy, RunTimeErrors])
def test_nothing_is_nothing(part: Any) -> None:
    part().fold()
    assert part().snapshot()["jobs"] == 0
