"""The statement of a followed real Slurm, as a page and as a PDF."""

import html
import os
import re
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from shadowtime.shared.cli.paths import ROOT
from shadowtime.stack.servers.servers import Kafka, Redis
from tests.support.browser import require_browser
from tests.support.follower_process import following
from tests.support.real_servers import require_reason
from tests.support.slurm_cluster import USERS, SlurmCluster, unavailable
from tests.support.workers import Workers

pytestmark = pytest.mark.nightly

JOBS = 60
POLICY = "cautious:queue=priority,forecast=calibrated"


def state(file: Path, environment: Mapping[str, str], cluster: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "shadowtime", "scores", cluster, "--statement", str(file)]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_a_followed_slurm_has_a_statement(kafka: Kafka, redis_server: Redis, tmp_path: Path) -> None:
    require_reason(unavailable())
    require_browser()
    with (
        SlurmCluster(2) as cluster,
        Workers(kafka, redis_server, tmp_path) as workers,
        following(cluster, kafka, redis_server, tmp_path / "follower.log", POLICY) as follower,
    ):
        follower.wait_until_told(int(time.time()))
        for number in range(JOBS):
            options = (f"-n{1 + number % 3}", "-t2", "-p", "debug" if number % 4 == 0 else "batch")
            cluster.submit(USERS[number % 3], "job", *options, wrap=f"sleep {1 + number % 7}")
        cluster.wait_until_idle(300)
        workers.wait_for_answers(
            follower.settings, follower.run, follower.wait_until_told(int(time.time()))[-1].sequence
        )
        page, printed = tmp_path / "statement.html", tmp_path / "statement.pdf"
        for file in (page, printed):
            done = state(file, workers.environment, follower.cluster)
            assert done.returncode == 0, done.stderr
        unknown = state(page, workers.environment, "nowhere")
    assert unknown.returncode == 2
    assert "there is no followed cluster and no run 'nowhere'; known runs: " in unknown.stderr
    assert follower.run in unknown.stderr
    shown = html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", page.read_text())))
    assert f"UTC: {JOBS} jobs submitted. The stored log begins then" in shown
    for part in ("the site's scheduler, first expectation", "No policy is followed in a shadow"):
        assert part in shown, shown
    rows = re.findall(r" (all|batch|debug) ([0-9]+) (?:[0-9.]+ %|-) [0-9]+ ([0-9]+)", shown)
    jobs = {name: int(passed) + int(open_) for name, passed, open_ in rows}  # whose time has passed, or has not yet
    assert JOBS / 2 < jobs["all"] == jobs["batch"] + jobs["debug"] <= JOBS
    assert printed.read_bytes().startswith(b"%PDF-")
    assert printed.read_bytes().count(b"/Type /Page\n") == 1


def test_without_chromium_a_pdf_is_refused(tmp_path: Path) -> None:
    done = state(tmp_path / "statement.pdf", os.environ | {"PATH": str(tmp_path)}, "any")
    assert done.returncode == 2
    assert "a PDF is printed by chromium, and none of" in done.stderr
    assert "write an .html and print it" in done.stderr
    assert not (tmp_path / "statement.pdf").exists()
