"""Systemd units: what is in them, and what is refused."""

import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from shadowtime.shared.stages import WRITTEN_BY
from shadowtime.stack.local.plan import StackPlan
from shadowtime.stack.servers import ServerError
from shadowtime.stack.units.launch import _report
from shadowtime.stack.units.unit_files import STATE, Units

PLAN = StackPlan(str(STATE), tuple(WRITTEN_BY), secure=True)
PREFIX = Path("/opt/shadowtime")


def test_every_process_of_the_stack_has_a_unit() -> None:
    texts = Units(
        PLAN, "o1", PREFIX, follows=["slurm --cluster mine"], shadows=["--cluster=mine --policy best"]
    ).texts()
    names = {name.removeprefix("shadowtime-").removesuffix(".service") for name in texts}
    stages = {stage.replace("_", "-") for stage in WRITTEN_BY}
    others = {"secrets", "kafka", "redis", "victoria-metrics", "metrics", "live", "ask", "follow-mine", "shadow-mine"}
    assert names == {"shadowtime.target"} | stages | others
    for name in set(texts) - {"shadowtime.target"}:
        assert "User=o1\n" in texts[name]
        assert "WorkingDirectory=/var/lib/shadowtime\n" in texts[name]
        assert name in texts["shadowtime.target"]


def test_a_server_of_the_site_gets_no_unit_and_its_address_is_set() -> None:
    outside = {"kafka": ("SHADOWTIME_KAFKA_BOOTSTRAP", "k1:9092,k2:9092")}
    texts = Units(PLAN, "o1", PREFIX, outside).texts()
    assert "shadowtime-kafka.service" not in texts
    assert "Environment=SHADOWTIME_KAFKA_BOOTSTRAP=k1:9092,k2:9092\n" in texts["shadowtime-scheduler.service"]
    assert texts["shadowtime-secrets.service"].count("prepare kafka\n") == 1
    assert not any("shadowtime-kafka" in text for text in texts.values())


def test_two_clusters_have_ports_of_their_own() -> None:
    follows = ["slurm --cluster a", "slurm --cluster b/c --via 'ssh login 50%'"]
    texts = Units(PLAN, "o1", PREFIX, follows=follows).texts()
    assert "--web-port=6065\n" in texts["shadowtime-follow-a.service"]
    assert '--via "ssh login 50%%" ' in texts["shadowtime-follow-b-c.service"]
    assert "--web-port=6064\n" in texts["shadowtime-follow-b-c.service"]


def test_no_two_units_have_the_same_port() -> None:
    many = replace(PLAN, workers=8)
    follows, shadows = ["slurm --cluster a", "slurm --cluster b"], ["--cluster a --policy best"]
    texts = Units(many, "o1", PREFIX, follows=follows, shadows=shadows).texts()
    ports = re.findall(r"--(?:web-)?port=(\d+)", "".join(texts.values()))
    assert "ask --serve --port=6090\n" in texts["shadowtime-ask.service"]
    assert len(set(ports)) == len(ports)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"redis_port": 6090}, "redis and ask cannot both listen on 127.0.0.1:6090; change a port"),
        ({"live_port": 6065}, "live and follow-a cannot both listen on 127.0.0.1:6065; change a port"),
        ({"web_port": 6060}, "metrics and follow-a cannot both listen on 127.0.0.1:6065; change a port"),
    ],
)
def test_the_port_of_a_process_beside_the_stack_is_refused(changed: dict[str, Any], message: str) -> None:
    plan = replace(PLAN, **changed)
    units = Units(plan, "o1", PREFIX, follows=["slurm --cluster a"], shadows=["--cluster a --policy best"])
    with pytest.raises(ServerError, match=message):
        units.texts()


@pytest.mark.parametrize(
    ("follows", "message"),
    [
        (["--cluster mine"], "expected one of slurm, pbs, lines first"),
        (["slurm"], "expected --cluster NAME once, found it 0 times"),
        (["slurm --cluster a --cluster b"], "found it 2 times"),
        (["slurm --cluster 'a"], "No closing quotation"),
        (["slurm --cluster a", "pbs --cluster a"], "two --follow have the same cluster"),
        (["slurm --cluster a --run 'x\ny'"], "cannot contain a line break"),
        ([f"slurm --cluster {name}" for name in "abcde"], "expected at most 4"),
    ],
)
def test_arguments_of_a_follower_that_cannot_be_right_are_refused(follows: list[str], message: str) -> None:
    with pytest.raises(ServerError, match=message):
        Units(PLAN, "o1", PREFIX, follows=follows).texts()


def test_the_end_of_a_server_before_it_is_ready_is_told_without_a_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    nobody = 2**22 + 1  # no process has this number
    server = SimpleNamespace(name="redis", address="127.0.0.1:6379")
    assert _report(PLAN, cast("Any", server), nobody) == 1
    assert capsys.readouterr().err == "redis at 127.0.0.1:6379 is not ready: it has ended\n"
