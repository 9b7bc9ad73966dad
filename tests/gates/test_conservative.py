"""Conservative backfilling on full KTH: an independent simulator's figures."""

import json

import pytest

from shadowtime.replayer.comparison.plan import carry_out
from tests.gates.archive import needs_archive, plan, replayed

pytestmark = [pytest.mark.archive, needs_archive]


@pytest.mark.parametrize(
    ("keys", "slowdown", "delay"),
    [
        ("queue=BF", 88.96, 121.9),
        ("queue=BF,guarantees=no", 101.8, 132.3),
        ("queue=1/L", 70.8, None),
        ("queue=1/L,guarantees=no", 45.4, 76.1),
        ("speculate=0.2", 79.4, None),
        ("speculate=0.2,test_runs=yes", 69.6, None),
        ("shape=half", 56.4, None),
        ("shape=quarter", 41.4, None),
    ],
)
def test_deterministic_variants(keys: str, slowdown: float, delay: float | None) -> None:
    scores = replayed("KTH", 100, f"conservative:{keys}", "as-logged").scores.policy
    assert scores.mean_wait is not None
    assert scores.mean_bounded_slowdown_unclamped == pytest.approx(slowdown, rel=0.03)
    assert delay is None or scores.mean_wait / 60 == pytest.approx(delay, rel=0.03)


@pytest.mark.parametrize(
    ("keys", "slowdown", "delay", "beyond"),
    [
        ("queue=P", 73.4, None, 0.0),
        ("queue=P,guarantees=no", 71.5, None, 0.0),
        ("queue=R", 71.3, None, 0.0),
        ("queue=R,guarantees=no", 72.3, None, 0.04),
        ("queue=P/L", 69.4, None, 0.0),
        ("queue=P/L,guarantees=no", 52.4, None, 0.0),
        ("queue=R/L", 69.2, None, 0.0),
        ("queue=R/L,guarantees=no", 48.0, 82.1, 0.0),
        ("queue=R/L,guarantees=no,speculate=0.8,test_runs=yes", 31.9, None, 0.0),
        ("queue=R/L,guarantees=no,shape=half", 21.7, None, 0.0),
        ("queue=R/L,guarantees=no,speculate=0.8,test_runs=yes,shape=half", 14.87, None, 0.0),
    ],
)
def test_random_variants(
    keys: str, slowdown: float, delay: float | None, beyond: float, capsys: pytest.CaptureFixture[str]
) -> None:
    """The figure lies within the spread of ten seeds, or `beyond` its end by no more than this share.

    It is one draw of another simulator. An eleventh draw lies outside of ten with probability 2/11, so one or two of
    eleven figures are to be expected there: with these seeds R-NG, with ten others P and P/L-NG, and not R-NG.
    """
    run = plan("KTH", 100, f"conservative:{keys}")
    scores = [carry_out(run._replace(seed=seed)).scores.policy for seed in range(10)]
    slowdowns = [each.mean_bounded_slowdown_unclamped or 0.0 for each in scores]
    delays = [(each.mean_wait or 0.0) / 60 for each in scores]
    with capsys.disabled():
        figures = {"slowdown": slowdowns, "anchor": slowdown, "delay_minutes": delays}
        print("\n" + json.dumps({"gate": "seeds", "policy": keys} | figures))
    assert min(slowdowns) * (1 - beyond) <= slowdown <= max(slowdowns) * (1 + beyond)
    assert delay is None or min(delays) <= delay <= max(delays)


def test_the_best_combination_is_a_sixth_of_conservative() -> None:
    """On average of three seeds; an independent simulator has 16.7 %, the paper about 15 % on CTC."""
    keys = "queue=R/L,guarantees=no,speculate=0.8,test_runs=yes,shape=half"
    plain = replayed("KTH", 100, "conservative", "as-logged").scores.policy.mean_bounded_slowdown_unclamped
    run = plan("KTH", 100, f"conservative:{keys}")
    scores = [carry_out(run._replace(seed=seed)).scores.policy for seed in range(3)]
    found = [each.mean_bounded_slowdown_unclamped or 0.0 for each in scores]
    assert plain is not None
    assert sum(found) / len(found) / plain < 0.2


@pytest.mark.parametrize("trials", ["speculate=0.8", "speculate=expected,plan=requested,runtime=empirical"])
def test_the_best_combinations_on_the_machine_of_the_paper(trials: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A fifth of conservative on average of five seeds; single seeds lie on either side (the paper: about 15 %)."""
    keys = f"queue=R/L,guarantees=no,{trials},test_runs=yes,shape=quarter,widen=yes"
    plain = replayed("CTC", 430, "conservative", "as-logged").scores.policy.mean_bounded_slowdown_unclamped
    run = plan("CTC", 430, f"conservative:{keys}")
    scores = [carry_out(run._replace(seed=seed)).scores.policy for seed in range(5)]
    assert plain is not None
    shares = [(each.mean_bounded_slowdown_unclamped or 0.0) / plain for each in scores]
    with capsys.disabled():
        print("\n" + json.dumps({"gate": "best on CTC", "policy": keys, "shares": shares}))
    assert sum(shares) / len(shares) <= 0.2
