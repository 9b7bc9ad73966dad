"""Tests of what slurmrestd answers: both dialects are read as what the commands print."""

from collections.abc import Callable
from typing import Any

import pytest

from shadowtime.services.follower.cluster.observation import JobObservation, LifeKey
from shadowtime.services.follower.slurm.json import load_of, memory_of_daemons, sinfo_rows, squeue_rows
from shadowtime.services.follower.slurm.load import Load
from shadowtime.services.follower.slurm.squeue import node_rows, nodes_of, observations_of, tiers_of
from shadowtime.shared.errors import FollowError
from tests.unit.services.follower.slurm_texts import NODES as PRINTED_NODES
from tests.unit.services.follower.slurm_texts import OVER as PRINTED_OVER
from tests.unit.services.follower.slurm_texts import RUNS as PRINTED_RUNS
from tests.unit.services.follower.slurm_texts import WAITS as PRINTED
from tests.unit.services.follower.slurm_texts import read as read_text
from tests.unit.services.follower.slurmrestd_answers import DIAG, JOB, NODES, OVER, PARTITIONS, RUNS, newer

Dialect = Callable[[Any], Any]


@pytest.fixture(params=[lambda told: told, newer], ids=["22.05", "25.11"])
def dialect(request: pytest.FixtureRequest) -> Dialect:
    found: Dialect = request.param
    return found


def read(job: dict[str, Any]) -> JobObservation:
    (observation,) = observations_of(squeue_rows([job]), {"batch": 1, "low": 0})
    return observation


@pytest.mark.parametrize(("job", "printed"), [(JOB, PRINTED), (RUNS, PRINTED_RUNS), (OVER, PRINTED_OVER)])
def test_a_job_is_what_squeue_prints(dialect: Dialect, job: dict[str, Any], printed: dict[str, str]) -> None:
    assert read(dialect(job)) == read_text(printed)


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({"time_limit": None}, {"TimeLimit": "UNLIMITED"}),
        ({"time_limit": 1500}, {"TimeLimit": "1-01:00:00"}),
        ({"eligible_time": 0, "start_time": 0}, {"EligibleTime": "N/A", "StartTime": "N/A"}),
        ({"state_reason": "JobHeldUser", "priority": 0}, {"Reason": "JobHeldUser", "PriorityLong": "0"}),
        ({"state_description": "Nodes required for job are DOWN"}, {"Reason": "Nodes required for job are DOWN"}),
        ({"shared": "none"}, {"OverSubscribe": "NO"}),
        ({"cpus": None}, {}),  # as 22.05 tells of one that was cancelled
        ({"name": "a|b|"}, {"Name": "a|b|"}),
        ({"name": "two\nlines"}, {"Name": "two"}),
        ({"name": "\udcff\x1b[2J\u202e"}, {"Name": "\udcff\x1b[2J\u202e"}),
        ({"user_name": ""}, {"UserName": "1002"}),
    ],
)
def test_what_may_differ_of_a_job_that_waits(
    dialect: Dialect, changes: dict[str, Any], printed: dict[str, str]
) -> None:
    assert read(dialect(JOB | changes)) == read_text(PRINTED, **printed)


@pytest.mark.parametrize(
    ("changes", "printed"),
    [
        ({"job_state": "FAILED", "exit_code": 768}, {"State": "FAILED", "exit_code": "768"}),
        ({"job_state": "CANCELLED", "nodes": "", "end_time": 1795541220}, {"State": "CANCELLED", "NodeList": ""}),
        ({"job_state": "COMPLETING", "exit_code": 15, "end_time": 1795541230}, {"State": "COMPLETING"}),
        ({"suspend_time": 1795541400, "pre_sus_time": 20}, {"TimeUsed": "3:20"}),
    ],
)
def test_what_may_differ_of_a_job_that_is_over(
    dialect: Dialect, changes: dict[str, Any], printed: dict[str, str]
) -> None:
    if "end_time" in changes:
        used = changes["end_time"] - 1795541220
        printed = {"exit_code": "15", "TimeUsed": f"0:{used}", "EndTime": str(changes["end_time"])} | printed
    assert read(dialect(OVER | changes)) == read_text(PRINTED_OVER, **printed)


def test_of_several_words_for_a_state_the_one_that_squeue_prints_counts() -> None:
    completing = newer(OVER) | {"job_state": ["CANCELLED", "COMPLETING"]}
    configuring = newer(RUNS) | {"job_state": ["RUNNING", "CONFIGURING", "A_FLAG_OF_27_05"]}
    assert (read(completing).state, read(configuring).state) == ("over", "waiting")
    assert observations_of(squeue_rows([newer(RUNS) | {"job_state": ["PENDING", "REQUEUED"]}]), {}) == []


def test_tasks_that_wait_are_of_their_array_and_the_last_one_keeps_its_number(dialect: Dialect) -> None:
    waits = JOB | {"array_job_id": 286, "array_task_string": "0-2,7%2"}
    last = RUNS | {"array_job_id": 286, "array_task_id": 0}
    observations = observations_of(squeue_rows([dialect(waits), dialect(last)]), {})
    assert [observation.key for observation in observations] == [
        LifeKey(286, task, 1795541140) for task in (0, 1, 2, 7, 0)
    ]
    assert [observation.state for observation in observations] == ["waiting"] * 4 + ["running"]


def test_tasks_that_are_cut_off_are_refused_with_the_remedy(dialect: Dialect) -> None:
    cut = dialect(JOB | {"array_job_id": 286, "array_task_string": "2,5,12,14-16,33,4..."})
    with pytest.raises(FollowError, match=r"job '286': .* some of its tasks: '2,5,12.*SLURM_BITSTR_LEN=0"):
        list(squeue_rows([cut]))


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"cpus": "8K"}, "job '286': NumCPUs is '8K', not a whole number"),
        ({"priority": {"a": 1}}, "job '286': PriorityLong is"),
        ({"restart_cnt": None}, "job '286': RestartCnt is '', not a whole number"),
        ({"submit_time": "today"}, "job '286': SubmitTime is 'today', which is not a time"),
        ({"start_time": [1]}, "job '286': StartTime is '[1]', which is not a time"),
    ],
)
def test_what_is_not_understood_is_named(changes: dict[str, Any], told: str) -> None:
    with pytest.raises(FollowError) as raised:
        read(JOB | changes)
    assert told in str(raised.value)


def test_nodes_are_what_sinfo_prints(dialect: Dialect) -> None:
    rows = sinfo_rows(dialect(NODES), dialect(PARTITIONS))
    printed = [node for node in nodes_of(node_rows(PRINTED_NODES), {}) if node.name != "n04"]
    assert nodes_of(rows, memory_of_daemons(dialect(NODES))) == printed
    assert tiers_of(rows) == {"debug": 1, "batch": 0}


def test_memory_of_daemons_is_not_of_a_node(dialect: Dialect) -> None:
    nodes = dialect([node | {"specialized_memory": 512} for node in NODES])
    assert set(memory_of_daemons(nodes).values()) == {512}
    (first, *_) = nodes_of(sinfo_rows(nodes, dialect(PARTITIONS)), memory_of_daemons(nodes))
    (plain, *_) = nodes_of(sinfo_rows(nodes, dialect(PARTITIONS)), {})
    assert ((first.memory or 0) + 512, (first.usable_memory or 0) + 512) == (plain.memory, plain.usable_memory)


def test_the_clock_and_the_load_of_slurmctld(dialect: Dialect) -> None:
    assert load_of(dialect(DIAG), "shadowtime") == Load(1795541201, 1795541136, 408, 0.311154, 3)
    assert load_of(dialect(DIAG), "nobody") == Load(1795541201, 1795541136, 0, None, 3)
    assert load_of({}, "nobody") is None
    assert load_of(DIAG | {"rpcs_by_user": "none", "req_time_start": None}, "root") == (
        1795541201,
        1795541201,
        0,
        None,
        3,
    )
