"""Priorities of the policy `slurm` are those that a real Slurm 22.05 printed: 260 s of it, six associations."""

import gzip
import random
from pathlib import Path
from time import process_time
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shadowtime.services.scheduler.slurm.fairshare import Shares
from shadowtime.services.scheduler.slurm.priority import WAITING, KnownJob, Priorities
from shadowtime.services.scheduler.slurm.settings import SlurmSettings
from shadowtime.shared.messages.envelope import Event, JobEnded, JobResumed, JobStarted, JobSubmitted, JobSuspended

RECORDED: dict[str, Any] = orjson.loads(
    gzip.decompress(Path(__file__).with_name("recorded_slurm.json.gz").read_bytes())
)
"""What `sacct` told of its jobs, and what `sprio` and `sshare` printed now and then; seconds since the first job."""


def events() -> list[tuple[int, int, Event]]:
    """Return what happened, in order: ends, submissions, starts of a second."""
    found: list[tuple[int, int, Event]] = []
    for number, since, start, end, limit, processors, user, account, partition, qos in RECORDED["jobs"]:
        job = JobSubmitted(
            time=since,
            job_number=number,
            requested_processors=processors,
            requested_time=limit,
            user_id=user,
            group_id=account,
            queue_number=partition,
            qos_number=qos,
        )
        found.append((since, 1, job))
        if start is not None:
            found.append((start, 2, JobStarted(time=start, job_number=number, processors=processors, limit=limit)))
            if end is not None:
                found.append((end, 0, JobEnded(time=end, job_number=number, run_time=end - start)))
    return sorted(found, key=lambda each: each[:2])


def at(time: int) -> Priorities:
    """Return the priorities as they were told by the end of a second."""
    settings = SlurmSettings.model_validate({"site": RECORDED["site"]})
    priorities = Priorities(settings, 64, RECORDED["unix_start"])
    for when, _, event in events():
        if when <= time:
            priorities.notice(event)
    priorities.advance(time)
    return priorities


@pytest.mark.parametrize("poll", RECORDED["sprio"], ids=lambda poll: f"after {poll[0]} s")
def test_every_priority_is_the_one_that_sprio_printed(poll: Any) -> None:
    time, printed = poll
    priorities = at(time)
    compared = 0
    for number, total, age, fairshare, size, partition, qos, nice in printed:
        job = priorities.jobs.get(number)
        if job is None or job.state != WAITING:  # it began in this second
            continue
        compared += 1
        assert abs(job.priority - nice - total) <= 1
        factors = priorities.factors(job, max(priorities.calculated or 0, job.since))
        told = (age, fairshare, size, partition, qos)
        for ours, theirs in zip(factors, told, strict=True):
            assert ours == pytest.approx(theirs, abs=0.6)
    assert compared > 100


@pytest.mark.parametrize("poll", RECORDED["sshare"], ids=lambda poll: f"after {poll[0]} s")
def test_every_factor_is_the_one_that_sshare_printed(poll: Any) -> None:
    time, printed = poll
    priorities = at(time)
    for user, account, _, factor in printed:
        if (user, account) in priorities.fair:
            assert priorities.fair[user, account] == pytest.approx(factor, abs=1e-6)


def job(**changes: Any) -> KnownJob:
    told = {"user": 1, "account": 1, "partition": 1, "qos": 1, "processors": 16, "nodes": 4, "limit": 3600, "since": 0}
    return KnownJob(**(told | changes))


def factor(name: str, at: KnownJob, now: int = 0, **keys: Any) -> float:
    settings = SlurmSettings.model_validate({"processors": 64, "nodes": 8} | keys)
    return float(getattr(Priorities(settings, 64, 0).factors(at, now), name))


def test_age_grows_to_its_largest_and_no_further() -> None:
    keys = {"weight_age": 1000, "max_age": 600}
    assert [factor("age", job(), now, **keys) for now in (0, 300, 600, 900)] == [0, 500, 1000, 1000]


def test_sizes_count_by_nodes_and_processors() -> None:
    assert factor("size", job(), weight_size=1000) == 1000 * (4 / 8 + 16 / 64) / 2
    assert factor("size", job(), weight_size=1000, favor_small="yes") == 1000 * (1 - (4 / 8 + 16 / 64) / 2)
    assert factor("size", job(), weight_size=1000, size_relative="yes") == 1000 * (4 / 8) / 60
    larger = job(processors=128, nodes=16)  # than the site that the settings state
    assert factor("size", larger, weight_size=1000) == 1000
    assert factor("size", larger, weight_size=1000, favor_small="yes") == 0


def test_partitions_and_qos_count_as_parts_of_the_largest() -> None:
    keys: dict[str, Any] = {
        "weight_partition": 100,
        "partitions": "1:3:1;2:12:1",
        "weight_qos": 10,
        "qos": "1:5:1000;2:20:1000",
    }
    assert factor("partition", job(), **keys) == 25
    assert factor("qos", job(), **keys) == 2.5
    assert factor("partition", job(partition=9), **keys) == 0


def test_usage_fades_by_half_in_a_half_life() -> None:
    shares = Shares([(1, 0, 1, 1), (2, 0, 1, 1)], [(1, 1, 1, 1000.0), (2, 2, 1, 900.0)], half_life=600)
    shares.decay(600)
    assert shares.snapshot()["users"][0][3] == pytest.approx(500, rel=1e-3)


def test_the_classic_formula_halves_at_an_equal_share() -> None:
    # two accounts of equal shares, of which one has used all: 2^-(1 / 0.5) and 2^0
    shares = Shares([(1, 0, 1, 1), (2, 0, 1, 1)], [(1, 1, 1, 1000.0), (2, 2, 1, 0.0)], half_life=0, classic=True)
    assert shares.factors() == {(1, 1): 0.25, (2, 2): 1.0}
    # sites of sshare's manual: sub-account of half its parent's shares pays half of what its siblings use
    shares = Shares(
        [(1, 0, 1, 0), (2, 1, 1, 1), (3, 1, 1, 1)], [(1, 2, 1, 1000.0), (2, 3, 1, 0.0)], half_life=0, classic=True
    )
    assert shares.factors() == {(1, 2): 0.25, (2, 3): 0.5}


def test_equals_in_fair_tree_have_the_same_place() -> None:
    shares = Shares([(1, 0, 1, 2), (2, 0, 1, 2)], [(user, account, 1, 10.0) for user in (1, 2) for account in (1, 2)])
    assert set(shares.factors().values()) == {1.0}


def test_who_has_not_come_counts_before_who_has_used() -> None:
    # account 1 is worse off; of its three users two are idle, and go before the one who is not
    shares = Shares([(1, 0, 1, 3), (2, 0, 1, 1)], [(1, 1, 1, 300.0), (9, 2, 1, 100.0)], half_life=0)
    assert shares.factors() == {(1, 1): 0.25, (9, 2): 1.0}


@pytest.mark.parametrize("classic", [False, True])
def test_shares_go_on_as_they_were(classic: bool) -> None:
    def made() -> Shares:
        return Shares([(1, 0, 60, 2), (2, 1, 40, 1)], [(7, 1, 3, 50.0)], half_life=100, classic=classic)

    shares, other = made(), made()
    shares.join((8, 2))
    shares.charge((8, 2), 12.5)
    shares.decay(30)
    other.restore(orjson.loads(orjson.dumps(shares.snapshot())))
    assert other.factors() == shares.factors()
    assert other.snapshot() == shares.snapshot()


def test_a_suspended_job_is_not_charged_for_its_pause() -> None:
    priorities = Priorities(SlurmSettings.model_validate({"processors": 64, "half_life": 0}), 64, 0)
    told = JobSubmitted(time=0, job_number=1, requested_processors=16, requested_time=3600, user_id=7, group_id=1)
    priorities.notice(told)
    priorities.notice(JobStarted(time=0, job_number=1, processors=16, limit=3600))
    priorities.notice(JobSuspended(time=100, job_number=1))
    priorities.notice(JobResumed(time=1100, job_number=1))
    priorities.notice(JobEnded(time=1150, job_number=1, run_time=150))
    assert priorities.snapshot()["shares"]["users"] == [[7, 1, 1, 16 * 150]]


def accounts_below(chance: random.Random) -> list[tuple[int, int, int, int]]:
    return [(number, chance.randrange(number), 1 + number, 3) for number in range(1, chance.randrange(2, 9))]


@given(st.randoms(use_true_random=False), st.integers(0, 40), st.sampled_from([0, 50, 604_800]))
def test_periods_at_once_are_periods_one_by_one(chance: random.Random, periods: int, half_life: int) -> None:
    accounts = accounts_below(chance)
    users = [(user, chance.randrange(len(accounts) + 1), 1, chance.random() * 1e6) for user in range(5)]
    these, those = (Shares(accounts, users, half_life) for _ in range(2))
    charges = [(chance.choice(users)[:2], chance.random() * 64) for _ in range(chance.randrange(6))]
    assert these.charge_periods(periods, 30, charges) == periods
    for _ in range(periods):
        those.decay(30)
        for owner, weight in charges:
            those.charge(owner, 30 * those.used(30) * weight)
    assert these.snapshot() == those.snapshot()


def priorities_with_jobs(running: int) -> Priorities:
    settings = SlurmSettings.model_validate({"calc_period": 1, "weight_fairshare": 1000, "weight_age": 10})
    priorities = Priorities(settings, 10**6, 0)
    for number in range(running):
        priorities.notice(JobSubmitted(time=0, job_number=number, requested_processors=1, user_id=number % 7))
        priorities.notice(JobStarted(time=0, job_number=number, processors=1, limit=10**9))
    priorities.notice(JobSubmitted(time=1, job_number=running, requested_processors=2, user_id=1))
    return priorities


def test_a_gap_is_its_periods() -> None:
    one_by_one, at_once = priorities_with_jobs(20), priorities_with_jobs(20)
    for time in range(2, 3_000):
        one_by_one.advance(time)
    at_once.advance(2_999)
    assert at_once.snapshot() == one_by_one.snapshot()


def test_a_gap_of_many_periods_costs_a_bounded_number_of_additions() -> None:
    """A gap of 10,000 s with a period of 1 s and 1,000 running jobs took seconds, for each message."""
    priorities = priorities_with_jobs(1_000)
    priorities.advance(10)
    for jobs, first in ((1_000, 10), (9_000, 20_000)):
        for number in range(10_000, 10_000 + jobs - 1_000):
            priorities.notice(JobSubmitted(time=first, job_number=number, requested_processors=1, user_id=3))
            priorities.notice(JobStarted(time=first, job_number=number, processors=1, limit=10**9))
        began = process_time()
        priorities.advance(first + 10_000)
        assert process_time() - began < 2  # a fifth of a second on an idle machine


def test_usage_that_has_decayed_to_almost_nothing_counts_as_none() -> None:
    """With a half-life of a day, the usage of a user who left 2.8 years ago is below the smallest share."""
    shares = Shares([(1, 0, 1, 2)], [(7, 1, 1, 100.0), (8, 1, 1, 0.0)], half_life=86_400)
    for _ in range(1_200):
        shares.decay(86_400)
        shares.charge((8, 1), 1e7)
    assert shares.factors() == {(7, 1): 1.0, (8, 1): 0.5}


@pytest.mark.parametrize("classic", [False, True])
def test_users_of_an_account_without_any_shares_come_last(classic: bool) -> None:
    shares = Shares([(1, 0, 1, 2), (2, 0, 1, 1)], [(7, 1, 0, 5.0), (8, 1, 0, 0.0), (9, 2, 1, 0.0)], classic=classic)
    factors = shares.factors()
    assert factors[7, 1] == factors[8, 1] < factors[9, 2] == 1.0


def test_users_below_an_account_without_shares_have_the_factor_0() -> None:
    shares = Shares([(1, 0, 0, 1), (2, 0, 1, 1)], [(7, 1, 1, 5000.0), (8, 2, 1, 100.0)], classic=True)
    assert shares.factors()[7, 1] == 0.0
