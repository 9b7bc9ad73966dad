"""The figures of an independent simulator, and those published for run-time predictors."""

import json

import pytest

from shadowtime.replayer.options import Requests
from tests.gates.archive import needs_archive, replayed

pytestmark = [pytest.mark.archive, needs_archive]

COLUMNS: tuple[tuple[str, Requests], ...] = (
    ("easy", "as-logged"),
    ("easy-sjbf", "as-logged"),
    ("easy", "actual"),
    ("easy-sjbf", "actual"),
)
# Mean wait and longest wait in seconds with the mean bounded slowdown between them, by column.
TABLE: dict[tuple[str, int], tuple[tuple[float, float, int], ...]] = {
    ("KTH", 100): (
        (6834.6, 92.69, 262_194),
        (5903.7, 69.39, 284_815),
        (6327.7, 71.72, 258_803),
        (5435.8, 49.85, 275_239),
    ),
    ("SDSC-SP2", 128): (
        (20567.9, 87.76, 459_740),
        (20416.7, 82.95, 519_155),
        (17330.0, 70.41, 456_876),
        (16300.0, 56.77, 441_651),
    ),
    ("CTC", 338): (
        (13943.0, 48.84, 303_954),
        (11817.7, 30.10, 358_973),
        (13581.7, 37.17, 250_827),
        (10005.0, 17.57, 309_810),
    ),
    ("CTC", 430): (
        (3161.7, 10.56, 155_525),
        (2812.1, 7.85, 153_607),
        (3365.6, 9.54, 148_438),
        (2687.1, 5.35, 150_936),
    ),
    ("CTC", 512): (
        (1243.1, 4.50, 101_073),
        (1127.1, 3.86, 101_073),
        (1328.5, 3.89, 93_078),
        (1141.2, 2.78, 94_978),
    ),
    ("HPC2N", 240): (
        (10800.8, 89.04, 1_163_311),
        (10222.3, 83.21, 1_163_311),
        (10972.1, 77.93, 1_163_311),
        (9986.8, 64.13, 1_163_311),
    ),
}
WITHIN = 0.001

INCREMENTAL = "easy-sjbf:runtime=last-two,fallback=incremental"
REQUEST = "easy-sjbf:runtime=last-two"
SIZES = {"KTH": 100, "SDSC-SP2": 128, "CTC": 338}


@pytest.mark.parametrize("column", range(len(COLUMNS)), ids=[" ".join(each) for each in COLUMNS])
@pytest.mark.parametrize(("trace", "processors"), TABLE)
def test_independent_simulator(trace: str, processors: int, column: int, capsys: pytest.CaptureFixture[str]) -> None:
    policy, requests = COLUMNS[column]
    result = replayed(trace, processors, policy, requests)
    scores = result.scores.policy
    ours = (scores.mean_wait, scores.mean_bounded_slowdown, scores.max_wait)
    theirs = TABLE[trace, processors][column]
    with capsys.disabled():
        figures = {"mean_wait": ours[0], "mean_bounded_slowdown": ours[1], "max_wait": ours[2]}
        run = {"gate": "anchor", "trace": trace, "processors": processors, "policy": policy, "requests": requests}
        print("\n" + json.dumps(run | figures | {"anchor": theirs, "cpu_seconds": round(result.cpu_seconds, 2)}))
    # A slowdown that is given to two decimals is not known any better than that.
    assert ours[0] == pytest.approx(theirs[0], rel=WITHIN)
    assert ours[1] == pytest.approx(theirs[1], rel=WITHIN, abs=0.005)
    assert ours[2] == pytest.approx(theirs[2], rel=WITHIN)


@pytest.mark.parametrize(("policy", "figure"), [(REQUEST, 62.86), (INCREMENTAL, 63.50)])
def test_last_two_on_kth_is_as_published(policy: str, figure: float) -> None:
    assert replayed("KTH", 100, policy, "as-logged").scores.policy.mean_bounded_slowdown == pytest.approx(
        figure, rel=0.03
    )


# Published: 26.53 and 85.77 on CTC, 65.06 and 79.40 on SDSC-SP2, by pyss, which passes after every event of an
# instant. Passing so as well gives 26.71 and 78.30 on CTC: there the order of passes is the difference. On SDSC-SP2 it
# gives 70.94 and 83.90, so there it is not; nor is learning unclipped run times (71.28), keying by group (70.25), or
# predicting from one run time alone (68.33). That difference is not explained.
@pytest.mark.parametrize("policy", [REQUEST, INCREMENTAL])
@pytest.mark.parametrize("trace", ["KTH", "CTC", "SDSC-SP2"])
def test_last_two_beats_plain_easy_where_it_falls_back_to_the_request(
    trace: str, policy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    slowdown = replayed(trace, SIZES[trace], policy, "as-logged").scores.policy.mean_bounded_slowdown
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "last-two", "trace": trace, "policy": policy, "slowdown": slowdown}))
    plain = replayed(trace, SIZES[trace], "easy", "as-logged").scores.policy.mean_bounded_slowdown
    assert slowdown is not None
    assert plain is not None
    assert policy == INCREMENTAL or slowdown < plain
