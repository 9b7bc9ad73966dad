"""Keys without an effect on the decisions of a policy: docs/algorithms.md#uses-of-an-adjusted-request."""

import pytest

import shadowtime

OTHER = {
    "adjust_queue": "no",
    "adjust_candidates": "no",
    "running": "yes",
    "distribution": "ignore",
    "fallback": "incremental",
}
ADJUSTED = "percentile(key=user,percentile=50,threshold=0.1,minimum=2)"

RUNNING = {"running", "fallback"}
BUT_QUEUE = OTHER.keys() - {"adjust_queue"}


def schedule(policy: str, runtime: str = "last-two") -> str:
    log = shadowtime.read_log(jobs=200)
    return shadowtime.replay(log, policy, runtime=runtime, adjustment=ADJUSTED).schedule_sha256


@pytest.mark.parametrize(
    ("policy", "runtime", "without"),
    [
        ("slurm:weight_size=1000", "last-two", OTHER.keys()),
        ("lwf:plan=predicted", "last-two", BUT_QUEUE),
        ("easy:queue=saf,plan=requested", "last-two", BUT_QUEUE),
        ("easy:queue=saf", "empirical", {"distribution"}),
        ("guarded:queue=saf", "last-two", RUNNING | {"distribution"}),
        ("guarded:queue=saf,tau=0.2", "empirical", RUNNING),
    ],
)
def test_keys_without_effect(policy: str, runtime: str, without: set[str]) -> None:
    keys = ",".join(f"{key}={OTHER[key]}" for key in sorted(without))
    assert schedule(f"{policy},{keys}", runtime) == schedule(policy, runtime)


@pytest.mark.parametrize(
    ("policy", "key", "runtime"),
    [
        ("lwf:plan=predicted", "adjust_queue", "requested"),
        ("easy:queue=saf", "adjust_candidates", "requested"),
        ("easy:queue=saf", "running", "requested"),
        ("easy:queue=saf", "fallback", "last-two"),
        ("guarded:queue=saf", "adjust_candidates", "requested"),
    ],
)
def test_keys_with_an_effect(policy: str, key: str, runtime: str) -> None:
    assert schedule(f"{policy},{key}={OTHER[key]}", runtime) != schedule(policy, runtime)
