"""Studies: clusters of the artificial trace, the figures of a log that has them, names of queues."""

import re
from pathlib import Path

import pytest

from shadowtime.replayer.campaign.logs import queue_names
from shadowtime.replayer.campaign.reproduce import reproduce
from shadowtime.replayer.campaign.studies import STUDIES, artificial_trace, carry_out_study
from shadowtime.replayer.logs.swf import FIELDS
from shadowtime.replayer.synthetic.waits_by_interval import interval_waits, recovered
from shadowtime.services.wait_bound.groups.clustering import cut


def written(path: Path, jobs: int) -> None:
    """Write a log of one-processor jobs that wait in turn, in the queue `high`."""
    known = {"run_time": 60, "requested_processors": 1, "requested_time": 600, "queue_number": 2, "user_id": 1}
    rows = [
        dict.fromkeys(FIELDS, -1) | known | {"job_number": n + 1, "submit_time": 1_000 * n, "wait_time": n % 50}
        for n in range(jobs)
    ]
    lines = [" ".join(map(str, row.values())) for row in rows]
    header = "; MaxProcs: 8\n; Queue:  1  express  \n; Queue:  2  high\n; Queue:  3  [fque:3]\n; Note: Queue: 4 x\n"
    path.write_text(header + "\n".join(lines) + "\n")


def test_clusters_recover_the_intervals_of_the_artificial_trace() -> None:
    """The paper recovers all four ends within 3 s, with as many as nine clusters (Brevik 2006, section 3.5)."""
    of_seeds = [recovered(cut(*interval_waits(seed))) for seed in range(10)]
    assert of_seeds.count(4) >= 9
    assert min(of_seeds) >= 3
    (paper, *own) = artificial_trace().rows
    assert paper[1:3] == ["9", "4 of 4"]
    assert len(own) == 10


def test_queues_are_named_by_the_header(tmp_path: Path) -> None:
    written(tmp_path / "log.swf", 3)
    assert queue_names(tmp_path / "log.swf") == {1: "express", 2: "high"}


def test_figures_are_drawn_for_the_logs_that_are_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    written(tmp_path / "SDSC-SP2-1998-4.2-cln.swf", 150)
    page = tmp_path / "page.html"
    carry_out_study(STUDIES["P2-figures-1-to-4"], tmp_path, None, page)
    told = capsys.readouterr()
    assert "left out" in told.err
    assert len(re.findall("SDSC-SP2", told.out)) >= 2
    html = page.read_text()
    assert html.count("<figure") == 2
    assert "Figure 2: SDSC-SP2@128, queue high, rtime" in html


def test_studies_are_listed_beside_campaigns(capsys: pytest.CaptureFixture[str]) -> None:
    reproduce()
    listed = capsys.readouterr().out
    assert all(name in listed for name in (*STUDIES, "P2-table-1"))
