"""Tests of what Slurm's commands print: read as it is meant, or refused with the job and the field."""

from dataclasses import replace
from pathlib import Path

import pytest

from shadowtime.services.follower.cluster.observation import LifeKey
from shadowtime.services.follower.slurm.load import load_of
from shadowtime.services.follower.slurm.squeue import node_rows, nodes_of, observations_of, rows_of, tiers_of
from shadowtime.shared.accounting.machine_parts import gpus_of
from shadowtime.shared.errors import FollowError
from shadowtime.shared.messages.envelope import JobChanged
from tests.unit.services.follower.looks import look, mirror
from tests.unit.services.follower.slurm_texts import END, NODES, OVER, RUNS, WAITS, printed, read


def test_a_job_that_waits_runs_and_is_over() -> None:
    waits, runs, over = read(WAITS), read(RUNS), read(OVER)
    assert waits.key == LifeKey(286, -1, 1795541140)
    assert (waits.state, waits.start, waits.end, waits.expected) == ("waiting", None, None, 1795541220)
    assert (runs.state, runs.start, runs.end, runs.expected) == ("running", 1795541220, None, None)
    assert (over.state, over.start, over.end, over.run_time) == ("over", 1795541220, 1795541580, 360)
    assert (waits.limit, waits.processors, waits.memory, waits.gpus) == (360, 8, 7200, 2)
    assert waits.priority == 2**32 + 10009


def test_a_task_is_of_its_array_under_whatever_number() -> None:
    assert read(RUNS, JobID="141", ArrayJobID="85", ArrayTaskID="4").key == LifeKey(85, 4, 1795541140)


@pytest.mark.parametrize("text", ["N/A", "NONE", "Unknown"])
def test_a_job_that_is_not_eligible(text: str) -> None:
    assert read(WAITS, EligibleTime=text, StartTime=text).eligible is None


HIGHER = "Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions"
"""The text of slurmctld for `Resources` if another partition with the same nodes has jobs that wait."""


@pytest.mark.parametrize(
    ("reason", "blocked"),
    [
        *(("Priority", False), ("Resources", False), ("(Resources)", False), ("QOSMaxJobsPerUserLimit", True)),
        *((HIGHER, False), (f"({HIGHER})", False), (HIGHER.replace(" ", "_"), False)),
        ("ReqNodeNotAvail, UnavailableNodes:n01", True),
    ],
)
def test_a_job_that_may_not_start_is_blocked(reason: str, blocked: bool) -> None:
    assert read(WAITS, Reason=reason).blocked is blocked


def test_a_job_that_never_started_has_no_start() -> None:
    assert read(OVER, State="CANCELLED", NodeList="").start is None


@pytest.mark.parametrize(
    ("code", "used", "outcome"),
    [("0", "1:00", "completed"), ("768", "1:00", "failed"), ("15", "1:00", "cancelled"), ("15", "6:01", "limit")],
)
def test_how_a_job_ended_that_is_completing_its_exit_code_tells(code: str, used: str, outcome: str) -> None:
    assert read(OVER, State="COMPLETING", exit_code=code, TimeUsed=used).outcome == outcome


def test_a_job_that_is_completing_keeps_the_size_that_it_had() -> None:
    """squeue counts only the nodes whose Epilog still runs: the job seemed to shrink just before its end."""
    held = "cpu=8,mem=7200M,node=2,billing=8,gres/gpu=2"
    some_left = {"State": "COMPLETING", "NumCPUs": "4", "NumNodes": "1", "NodeList": "n02"}
    completing = read(OVER, **some_left, **{"tres-alloc": held})
    assert (completing.processors, completing.nodes, completing.memory) == (8, 2, 7200)
    unlisted = read(OVER, **some_left, **{"tres-alloc": "N/A"})
    assert (unlisted.processors, unlisted.nodes) == (4, 1)


def test_of_what_is_being_requeued_nothing_is_sure() -> None:
    assert observations_of(rows_of(printed(RUNS | {"State": "REQUEUED"}), END), {}) == []


def test_delimiters_and_line_breaks_in_a_name_are_part_of_it() -> None:
    assert read(WAITS, Name="a|b|c").job_name == "a|b|c"
    first, second = observations_of(rows_of(printed(WAITS | {"Name": "two\nlines"}, RUNS | {"JobID": "287"}), END), {})
    assert (first.job_name, second.key.job) == ("two", 287)
    forged = printed(RUNS | {"JobID": "99", "UserName": "root"}).replace(END, "|")
    (only,) = observations_of(rows_of(printed(WAITS | {"Name": f"x\n{forged}"}), END), {})
    assert only.key.job == 286


def test_a_user_whom_the_machine_does_not_know_is_no_user() -> None:
    """While sssd or LDAP was away, all jobs changed to one user, nobody, and back."""
    assert read(WAITS, UserName="nobody").user == ""
    seen = mirror()
    jobs = [replace(read(WAITS, UserName=name), processors=4, gpus=None, memory=None) for name in ("eve", "nobody")]
    told = [event for at in range(3) for event in look(seen, 1795541150 + 10 * at, jobs[at % 2])]
    assert not [event for event in told if isinstance(event, JobChanged)]


def test_names_may_be_anything() -> None:
    assert read(WAITS, UserName="\x1b[2J\u202e").user == "\x1b[2J\u202e"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            printed(WAITS | {"SubmitTime": "24.11.26 17:20"}),
            "job '286': SubmitTime is '24.11.26 17:20', which is not a time",
        ),
        (printed(WAITS | {"NumCPUs": "8K"}), "job '286': NumCPUs is '8K', not a whole number"),
        (printed(WAITS)[:-5], "fields for each job, then a line break; found "),
        ("286|plain2\n", "found 0 fields, then '286|plain2\\n'; its output is cut off, or has other fields"),
    ],
)
def test_what_is_not_understood_is_named(text: str, told: str) -> None:
    with pytest.raises(FollowError, match="squeue") as raised:
        observations_of(rows_of(text, END), {})
    assert told in str(raised.value)


def test_of_nodes_on_which_no_job_may_start_counts_what_is_held() -> None:
    nodes = {node.name: node for node in nodes_of(node_rows(NODES), {})}
    assert {name: node.usable for name, node in nodes.items()} == {"n01": 4, "n02": 1, "n03": 0, "n04": 4}
    usable_memory = {name: node.usable_memory for name, node in nodes.items()}
    assert usable_memory == {"n01": 4000, "n02": 900, "n03": 0, "n04": 4000}
    assert (nodes["n01"].partitions, nodes["n02"].gpus) == (("debug", "batch"), 2)
    assert tiers_of(node_rows(NODES)) == {"debug": 1, "batch": 0}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n01|batch\n", "expected 9 fields, found 2"),
        (NODES[:-3], "expected a line break at the end, found 'n04|"),
        (NODES.replace("2/2/0/4", "few"), "n01"),
    ],
)
def test_nodes_that_are_not_understood_are_named(text: str, told: str) -> None:
    with pytest.raises(FollowError, match="sinfo") as raised:
        nodes_of(node_rows(text), {})
    assert told in str(raised.value)


def test_memory_of_daemons_is_not_of_a_node() -> None:
    nodes = {node.name: node for node in nodes_of(node_rows(NODES), {"n01": 500, "n02": 500, "n03": 9_000})}
    assert {name: node.memory for name, node in nodes.items()} == {"n01": 3500, "n02": 3500, "n03": 0, "n04": 4000}
    assert {name: node.usable_memory for name, node in nodes.items()} == {
        "n01": 3500,
        "n02": 900,
        "n03": 0,
        "n04": 4000,
    }


def test_the_clock_and_the_load_of_slurmctld() -> None:
    text = (
        "sdiag output at Tue Nov 24 17:26:41 2026 (1795541201)\nData since      Tue Nov 24 (1795541136)\n"
        "DBD Agent queue size: 3\n\nRemote Procedure Call statistics by user\n"
        "\troot            (       0) count:408    ave_time:762    total_time:311154\n"
    )
    load = load_of(text, 0)
    assert load == (1795541201, 1795541136, 408, 0.311154, 3)
    assert load_of("denied", 0) is None


SDIAG = (Path(__file__).parents[3] / "support/samples/slurm-22.05-sdiag.txt").read_text()


def test_the_load_is_that_of_the_user_by_number() -> None:
    """The brake on the load was off: the name of the user was empty, and found an empty line."""
    loads = {user: load_of(SDIAG, user) for user in (0, 5, 8, 1234)}
    spent = {user: (load.requests, load.seconds) for user, load in loads.items() if load is not None}
    assert spent == {0: (303, 0.192171), 5: (6, 0.013084), 8: (1, 0.003941), 1234: (0, None)}


USABLE = (
    *("idle", "mixed", "mix", "allocated", "alloc", "allocated+", "completing", "comp", "idle+completing", "planned"),
    *("plnd", "idle+planned", "mixed-", "mixed+cloud", "idle+dynamic_norm"),
    *("idle+powered_down", "idle~", "idle+cloud+powered_down", "idle+not_responding+powered_down"),
    *("mixed+not_responding+powering_up", "mixed#", "mix#", "idle+powering_up", "pow_up"),
    *("mixed+reboot_requested", "mixed@", "mixed+power_down", "mixed!", "IDLE+UNDRAIN"),
)
ONLY_HELD = (
    *("down", "down*", "down+not_responding", "drained", "drain", "idle+drain", "draining", "drng", "mixed+drain"),
    *("allocated+drain+reboot_requested", "drng@", "fail", "idle+fail", "failing", "failg", "error", "future", "futr"),
    *("inval", "idle+invalid_reg", "idle+maintenance+reserved", "maint", "idle$", "idle+reserved", "reserved", "resv"),
    *("idle*", "idle+not_responding", "idle+no_respond", "unknown", "unk", "idle+reboot_issued", "idle^"),
    *("idle+powering_down", "idle%", "pow_dn", "idle+power_drain", "power_drain", "idle+blocked", "blocked"),
    *("perfctrs", "npc", "DOWN+POWERED_DOWN", "MIXED+DRAIN", "mixed+completing+not_responding", "completing*"),
)


@pytest.mark.parametrize(("state", "usable"), [(each, 4) for each in USABLE] + [(each, 1) for each in ONLY_HELD])
def test_what_a_node_in_a_state_is_good_for(state: str, usable: int) -> None:
    (node,) = nodes_of(node_rows(f"n01|batch|1|{state}|1/3/0/4|4000|900|(null)|\n"), {})
    assert (node.usable, node.held, node.processors) == (usable, 1, 4)


def test_generic_resources_of_a_node() -> None:
    assert gpus_of("gpu:2080ti:4(S:0-1),gpu:1g.5gb:7,craynetwork:1") == 11
