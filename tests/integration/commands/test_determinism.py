"""The decision log is the same bytes however often a replay is repeated, stopped, moved and continued."""

import json
import subprocess
import sys
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from shadowtime.replayer.comparison.plan import RunPlan
from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.replayer.logs.swf import FIELDS, write_swf
from shadowtime.replayer.logs.trace import Trace
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.replayer.synthetic.waits import easy_waits
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.messages.scores import Scores
from shadowtime.testing.examples import examples
from tests.support.small_logs import generated, plan_of

POLICIES = (
    "fcfs",
    "easy",
    "easy-sjbf",
    "probabilistic:budget=0.5,patience=1,points=2",
    "easy:fallback=incremental",
    "cautious",
    "tuned",
)
PREDICTORS = ("requested", "last-two", "experts")


class Whole(NamedTuple):
    """An uninterrupted replay."""

    log: bytes
    scores: Scores | None
    instants: int


def uninterrupted(plan: RunPlan) -> Whole:
    log, instants = BytesIO(), 0
    replay = plan.replay([DecisionLog(log)])
    while replay.step():
        instants += 1
    assert replay.last is not None
    return Whole(log.getvalue(), replay.last.scores, instants)


@lru_cache(maxsize=64)
def plan_and_whole(policy: str, runtime: str, seed: int, mode: str = "closed") -> tuple[RunPlan, Whole]:
    header, table = generate(jobs=50, processors=16, seed=seed, load=4.0)
    if mode == "recorded":
        table[:, FIELDS.index("wait_time")] = easy_waits(header, table)
    plan = plan_of(prepare(Trace("generated", header, table)), policy, runtime, seed)
    plan = plan._replace(mode="recorded") if mode == "recorded" else plan
    return plan, uninterrupted(plan)


@examples(60)
@given(
    policy=st.sampled_from(POLICIES),
    runtime=st.sampled_from(PREDICTORS),
    seed=st.integers(0, 5),
    mode=st.sampled_from(["closed", "recorded"]),
)
def test_repeated(policy: str, runtime: str, seed: int, mode: str) -> None:
    plan, whole = plan_and_whole(policy, runtime, seed, mode)
    assert uninterrupted(plan) == whole


@examples(150)
@given(
    policy=st.sampled_from(POLICIES),
    runtime=st.sampled_from(PREDICTORS),
    seed=st.integers(0, 5),
    mode=st.sampled_from(["closed", "recorded"]),
    cuts=st.lists(st.floats(0, 1), min_size=1, max_size=3),
)
@example(policy="easy", runtime="requested", seed=1, mode="closed", cuts=[0.0])
@example(policy="easy", runtime="requested", seed=1, mode="closed", cuts=[1.0])
def test_stopped_restored_and_continued(policy: str, runtime: str, seed: int, mode: str, cuts: list[float]) -> None:
    """Stopped before the first instant, after the last, or anywhere between; more than once."""
    plan, whole = plan_and_whole(policy, runtime, seed, mode)
    log = BytesIO()
    replay = plan.replay([DecisionLog(log)])
    done = 0
    for cut in sorted(round(each * whole.instants) for each in cuts):
        for _ in range(cut - done):
            replay.step()
        done = max(done, cut)
        snapshot = replay.snapshot()
        assert replay.snapshot() == snapshot, "taking a snapshot changes nothing"
        replay = plan.replay([DecisionLog(log)])
        replay.restore(snapshot)
        assert json.loads(replay.snapshot()) == json.loads(snapshot)
    last = replay.run_to_end()
    assert log.getvalue() == whole.log
    assert last.scores == whole.scores


def test_seeds_are_in_the_log() -> None:
    workload = generated()
    logs = [uninterrupted(plan_of(workload, seed=seed)).log.splitlines() for seed in (1, 2)]
    assert logs[0][0] != logs[1][0]
    assert logs[0][1:] == logs[1][1:], "no policy of these draws"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("policy", "runtime", "seed", "share"),
    [
        ("easy", "requested", 1, 0.5),
        ("easy-sjbf:fallback=incremental", "last-two", 2, 0.25),
        ("cautious", "requested", 3, 0.9),
        ("probabilistic:tau=0.3", "hmm", 5, 0.6),
        ("fcfs", "last-two", 4, 0.02),
    ],
)
def test_continued_in_a_new_process(tmp_path: Path, policy: str, runtime: str, seed: int, share: float) -> None:
    trace = tmp_path / "generated.swf.gz"
    write_swf(trace, *generate(jobs=80, processors=16, seed=seed, load=4.0))
    chosen = {"policy": policy, "runtime": runtime, "seed": seed}
    plan = plan_of(generated(jobs=80, seed=seed), policy, runtime, seed)
    whole = uninterrupted(plan)

    log = BytesIO()
    replay = plan.replay([DecisionLog(log)])
    for _ in range(round(share * whole.instants)):
        replay.step()
    (tmp_path / "plan.json").write_text(json.dumps(chosen))
    (tmp_path / "snapshot").write_bytes(replay.snapshot())
    paths = [tmp_path / "plan.json", trace, tmp_path / "snapshot", tmp_path / "rest.jsonl"]
    subprocess.run(
        [sys.executable, "-m", "tests.integration.commands.continue_replay", *map(str, paths)], check=True, cwd=ROOT
    )
    rest = paths[-1].read_bytes()
    assert rest
    assert log.getvalue() + rest == whole.log
