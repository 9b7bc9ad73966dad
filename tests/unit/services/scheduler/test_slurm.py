"""The policy `slurm`: who starts in which pass, at which times, and what it asks for in between."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.logs.workload import Workload
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.machine import Machine
from shadowtime.services.catalogue import canonical
from shadowtime.services.scheduler.handler import Scheduler
from shadowtime.services.scheduler.registry import POLICIES
from shadowtime.services.scheduler.slurm.policy import Slurm, Times
from shadowtime.services.scheduler.slurm.settings import SlurmSettings
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import ClusterOpened, Decided, Envelope, Event, JobStarted, SchedulingPoint
from shadowtime.shared.messages.machine_capacity import Pool
from shadowtime.shared.spec import parse
from tests.support.small_logs import job, workload_of

PROMPT = "sched_delay=0,bf_resolution=1"
"""Passes at each event, and no rounding: what is left are the rules."""


class Seen:
    """Notes when and why jobs start, and at which times the policy was asked."""

    def __init__(self) -> None:
        self.starts: dict[int, int] = {}
        self.why: dict[int, str] = {}
        self.points: list[int] = []

    def __call__(self, envelope: Envelope) -> None:
        event = envelope.event
        if isinstance(event, JobStarted):
            self.starts[event.job_number] = event.time
        elif isinstance(event, Decided):
            self.points.append(event.time)
            self.why |= {each.job_number: each.reason.kind for each in event.starts}
        assert not isinstance(event, SchedulingPoint)


def replayed(workload: Workload, keys: str, processors: int = 10) -> Seen:
    seen = Seen()
    opened = ClusterOpened(
        time=0, cluster="c", processors=processors, policy=canonical("policy", f"slurm:{keys}"), pools=workload.pools
    )
    EmbeddedReplay(opened, Machine(workload), [seen]).run_to_end()
    return seen


def of(*jobs: tuple[int, int, int, int], **columns: Any) -> Workload:
    """Return a log of jobs: submitted, processors, run time, request; further columns, and pools."""
    pools = columns.pop("pools", None)
    size = 10 if pools is None else sum(pool.processors for pool in pools)
    made = workload_of(
        *(
            job(number, submitted, processors=processors, run_time=run_time, requested_time=request)
            for number, (submitted, processors, run_time, request) in enumerate(jobs, 1)
        ),
        processors=size,
    )
    more = {name: np.array(values, dtype=np.int64) for name, values in columns.items()}
    return replace(made, columns={**made.columns, **more}, pools=pools)


def test_the_main_pass_stops_at_the_first_that_does_not_fit_and_backfill_goes_on() -> None:
    # 1 runs to 100 on 8 of 10; 2 needs all of them; 3 fits beside 1 and ends before 2 may start
    seen = replayed(of((0, 8, 100, 100), (1, 10, 10, 10), (2, 2, 20, 20)), PROMPT)
    assert seen.starts == {1: 0, 2: 100, 3: 30}
    assert seen.why == {1: "fits-now", 2: "fits-now", 3: "reserved"}


def test_backfill_keeps_places_for_all_that_it_tests() -> None:
    # 2 has its place at 100; 3, that would fit at once, would be in its way; with a depth of 0 tests more nobody asks
    seen = replayed(of((0, 8, 100, 100), (1, 10, 10, 10), (2, 2, 90, 90)), PROMPT)
    assert seen.starts[3] == 110
    seen = replayed(of((0, 8, 100, 100), (1, 10, 10, 10), (2, 2, 20, 20)), PROMPT + ",bf_max_job_test=1")
    assert seen.starts[3] == 110


def test_without_backfill_nobody_goes_ahead() -> None:
    assert replayed(of((0, 8, 100, 100), (1, 10, 10, 10), (2, 2, 20, 20)), PROMPT + ",backfill=no").starts[3] == 110


def test_whole_steps_of_the_resolution_keep_more_than_the_job_needs() -> None:
    # 2's place begins at 100, kept from 60 on with steps of a minute: 3, from 30 to 65, would be in the way
    jobs = of((0, 8, 100, 100), (1, 10, 70, 70), (2, 2, 35, 35))
    assert replayed(jobs, "sched_delay=0,bf_resolution=1").starts[3] == 30
    assert replayed(jobs, "sched_delay=0").starts[3] == 170


def test_main_passes_keep_their_distance() -> None:
    seen = replayed(of((0, 1, 50, 50), (1, 1, 50, 50), (2, 1, 50, 50)), "sched_delay=3")
    assert seen.starts == {1: 0, 2: 3, 3: 3}
    assert seen.points[:4] == [0, 1, 2, 3]


def test_a_reservation_takes_processors_while_it_lasts() -> None:
    # 6 of 10 are reserved from 50 to 150: 5 processors for 60 s fit only before it or behind it
    keys = PROMPT + ",reservations=0:50:150:6"
    assert replayed(of((0, 5, 50, 50), (10, 5, 60, 60)), keys).starts == {1: 0, 2: 150}
    assert replayed(of((0, 5, 50, 50), (10, 4, 60, 60)), keys).starts == {1: 0, 2: 10}


def test_processors_can_be_given_away_after_the_turnaround() -> None:
    seen = replayed(of((0, 10, 20, 20), (1, 10, 20, 20)), PROMPT + ",turnaround=5")
    assert seen.starts == {1: 0, 2: 25}


def test_a_fraction_of_the_turnaround_is_a_second_more_for_that_share_of_jobs() -> None:
    jobs = of(*((0, 10, 20, 20) for _ in range(200)))
    starts = replayed(jobs, PROMPT + ",turnaround=0.25").starts
    assert max(starts.values()) - 199 * 20 == pytest.approx(50, abs=20)


def test_higher_tiers_go_first_then_priorities() -> None:
    jobs = of((0, 10, 50, 50), (1, 10, 5, 5), (2, 10, 5, 5), (3, 10, 5, 5), queue_number=[1, 1, 2, 3])
    tables = "partitions=1:1:1;2:4:1;3:1:2,weight_partition=100"
    starts = replayed(jobs, f"{PROMPT},{tables}").starts
    assert sorted(starts, key=starts.__getitem__) == [1, 4, 3, 2]


def test_shares_of_other_pools_and_places_in_their_queues_count() -> None:
    # user 1 uses the first pool; in the second user 2, who came later, goes before him
    pools = (Pool(name="a", processors=10), Pool(name="b", processors=10))
    jobs = of(
        (0, 10, 1000, 1000),
        (1, 10, 600, 600),
        (2, 10, 50, 50),
        (3, 10, 50, 50),
        user_id=[1, 3, 1, 2],
        group_id=[1, 1, 1, 1],
        pool=[0, 1, 1, 1],
        pools=pools,
    )
    starts = replayed(jobs, f"{PROMPT},weight_fairshare=1000,calc_period=60", 20).starts
    assert starts[4] < starts[3]
    assert replayed(jobs, PROMPT, 20).starts[3] < replayed(jobs, PROMPT, 20).starts[4]


def beside_alone(policy: Slurm, event: Event) -> None:
    """Note an event of another pool in priorities of one's own, as a textbook would."""
    policy.priorities.notice(event)
    if not isinstance(event, JobStarted):
        policy.times.note()


KEYS = "weight_age=1000,weight_fairshare=5000,weight_size=500,calc_period=300,max_age=5000,half_life=20000"


@pytest.mark.parametrize("seed", range(6))
def test_pools_that_share_priorities_decide_as_those_that_keep_their_own(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(seed)
    jobs = [
        (int(submitted), int(size), int(seconds), int(seconds * rng.integers(1, 5)))
        for submitted, size, seconds in zip(
            np.sort(rng.integers(0, 9_000, 150)), rng.integers(1, 9, 150), rng.integers(10, 900, 150), strict=True
        )
    ]
    pools = tuple(Pool(name=f"p{at}", processors=10) for at in range(4))
    placed, users = rng.integers(0, 4, 150).tolist(), rng.integers(1, 6, 150).tolist()
    workload = of(*jobs, pool=placed, queue_number=placed, user_id=users, pools=pools)
    shared = replayed(workload, f"{KEYS},processors=40,nodes=40", 40)
    with monkeypatch.context() as patched:
        patched.setattr(Slurm, "share", lambda self, first: None)
        patched.setattr(Slurm, "beside", beside_alone)
        assert replayed(workload, f"{KEYS},processors=40,nodes=40", 40).starts == shared.starts
    assert replayed(workload, KEYS, 40).starts == shared.starts  # the site is all pools together


def test_the_state_of_the_whole_machine_is_stored_once_and_restored_for_all_pools() -> None:
    pools = tuple(Pool(name=f"p{at}", processors=10) for at in range(3))
    jobs = [(at, 6, 50, 100) for at in range(60)]
    workload = of(*jobs, pool=[at % 3 for at in range(60)], user_id=[at % 5 for at in range(60)], pools=pools)
    opened = ClusterOpened(
        time=0, cluster="c", processors=30, policy=canonical("policy", f"slurm:{KEYS}"), pools=workload.pools
    )
    whole, again = Seen(), Seen()
    first = EmbeddedReplay(opened, Machine(workload), [whole])
    for _ in range(150):
        first.step()
    saved = first.snapshot()
    then = EmbeddedReplay(opened, Machine(workload), [again])
    then.restore(saved)
    (scheduler,) = [run.handler for run in then.stages if run.stage.name == "scheduler"]
    assert isinstance(scheduler, Scheduler)
    kept = [pool["policy"] for pool in scheduler.snapshot()["pools"]]
    assert [set(state) - set(kept[1]) for state in kept] == [{"priorities"}, set(), set()]
    before = dict(whole.starts)
    first.run_to_end()
    then.run_to_end()
    assert before | again.starts == whole.starts
    assert len(whole.starts) == 60


def test_the_rhythm_goes_on_while_nobody_is_asked() -> None:
    times = Times(SlurmSettings())
    times.begin(0)
    assert times.due(95) == (False, False, False)  # nothing fitted: passes at 30, 60 and 90 found nobody
    assert times.next(95) == 120
    times.pass_requested = True
    assert times.due(130) == (True, True, True)  # it was asked for, and comes late in a recorded log


@pytest.mark.parametrize(
    ("keys", "wrong"),
    [
        ("qos=1:2", "number:priority:usage"),
        ("accounts=1:2:1:1", "account 1 is not below the root"),
        ("accounts=1:2:1:1;2:1:1:1", "account 1 is not below the root"),
        ("accounts=1:0:1:1;1:0:1:1", "account 1 occurs twice"),
        ("partitions=1:x:1", "whole numbers"),
        ("site=/nowhere", "site /nowhere: cannot be read: No such file"),
        ("site=(wait=1)", "unknown key 'wait'"),
        ("site=(weight_age)", "policy 'slurm': 'weight_age' in 'site(weight_age)' is not of the form key=value"),
        ("bf_interval=0", "bf_interval=0"),
    ],
)
def test_wrong_settings_are_named(keys: str, wrong: str) -> None:
    with pytest.raises(SettingsError, match=r"slurm|site") as raised:
        canonical("policy", f"slurm:{keys}")
    assert wrong in str(raised.value)


def test_a_site_in_a_file_is_spelled_out_and_keys_beside_it_count_first(tmp_path: Any) -> None:
    site = tmp_path / "site.toml"
    site.write_text("weight_age = 1000\nbf_interval = 60\nqos = [[1, 0, 1000], [2, 10, 500]]\nfavor_small = true\n")
    spec = canonical("policy", f"slurm:site={site},bf_interval=10")
    policy = POLICIES.build(parse(spec))
    assert "site" not in parse(spec).keys
    assert isinstance(policy.settings, SlurmSettings)
    assert policy.settings.model_dump(include={"weight_age", "bf_interval", "qos", "favor_small"}) == {
        "weight_age": 1000,
        "bf_interval": 10,
        "qos": "1:0:1000;2:10:500",
        "favor_small": True,
    }


def test_a_site_may_have_all_defaults(tmp_path: Any) -> None:
    (site := tmp_path / "site.toml").write_text("# not modelled: licences\n")
    assert canonical("policy", f"slurm:site={site}") == canonical("policy", "slurm")


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("weight_age = [1]", "weight_age: expected a list of rows"),
        ("weight_age = 2025-01-01", "weight_age: expected a number"),
        ("fairshare = 'a,b'", "a parenthesis, comma, equals sign or space"),
        ("weight_age", "site.toml"),
        ("'weight age' = 1", "'weight age': expected a key such as weight_age"),
    ],
)
def test_a_file_that_is_no_site_is_named(tmp_path: Any, text: str, wrong: str) -> None:
    site = tmp_path / "site.toml"
    site.write_text(text)
    with pytest.raises(SettingsError) as raised:
        canonical("policy", f"slurm:site={site}")
    assert "site.toml" in str(raised.value)
    assert wrong in str(raised.value)
