"""Worked examples of adjusted requests."""

import pytest

from shadowtime.services.walltime_adjustment.handler import ADJUSTERS
from shadowtime.shared.messages.envelope import JobEnded, JobSubmitted
from shadowtime.shared.messages.predictions import WalltimeAdjustment
from shadowtime.shared.spec import parse
from tests.conformance.vectors.vector import vector


def answer(keys: str, ratios: list[float]) -> WalltimeAdjustment | None:
    example = vector("p4_adjustment")
    adjuster = ADJUSTERS.build(parse(f"percentile:{keys}"))
    job = JobSubmitted(time=0, job_number=1, requested_processors=1, requested_time=int(example["t_req"]), user_id=1)
    for each in ratios:
        adjuster.learn_one(job, JobEnded(time=0, job_number=1, run_time=round(each * example["t_req"])))
    return adjuster.predict_one(job)


@pytest.mark.parametrize("row", range(7))
def test_percentiles(row: int) -> None:
    example = vector("p4_adjustment")
    case = example["table"][row]
    percentile = round(100 * case["p"])
    for keys, expected in (
        ("threshold=0.01,rank=nearest", case["nearest_rank"]),
        ("threshold=0.01,rank=cobalt", case["cobalt_index"]),
        ("rank=nearest", case["with_threshold_nearest"]),
    ):
        found = answer(f"{keys},percentile={percentile}", example["R"])
        assert found is not None
        assert found.adjusted_time == pytest.approx(expected * example["t_req"])


def test_adjusted_requests() -> None:
    example = vector("p4_adjustment")
    for percentile, expected in ((85, example["t_sched_p85_nearest"]), (50, example["t_sched_p50"])):
        found = answer(f"percentile={percentile}", example["R"])
        assert found is not None
        assert found.adjusted_time == expected


def test_nine_jobs_are_too_few_and_more_than_ten_can_be_asked_for() -> None:
    example = vector("p4_adjustment")
    for keys, ratios in (("minimum=10", example["R"][:9]), ("minimum=11", example["R"])):
        found = answer(keys, ratios)
        assert found is not None
        assert found.adjusted_time == example["t_req"]
