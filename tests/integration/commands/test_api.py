"""The Python interface: the same replays as the command line, as objects and frames."""

import doctest
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import shadowtime
from shadowtime.replayer.report.statistics import FEW, NOTICED
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import OutputError, SettingsError
from shadowtime.shared.statistics.slowdown import bounded_slowdown
from tests.support.small_logs import generated

JOBS = 400


@pytest.fixture(scope="module")
def log() -> shadowtime.Workload:
    return shadowtime.read_log(jobs=JOBS)


@pytest.fixture(scope="module")
def easy(log: shadowtime.Workload) -> shadowtime.Result:
    return shadowtime.replay(log, "easy:runtime=last-two,forecast=yes", adjustment="percentile", wait_bound="bmbp")


@pytest.fixture(scope="module")
def best(log: shadowtime.Workload) -> shadowtime.Result:
    return shadowtime.replay(log, "cautious")


def test_what_the_docs_show_is_so() -> None:
    path = ROOT / "docs" / "api.md"
    failed, tried = doctest.testfile(str(path), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert (failed, tried > 10) == (0, True)


def test_every_name_is_there_and_documented() -> None:
    told = (ROOT / "docs" / "api.md").read_text()
    for name in shadowtime.__all__:
        assert getattr(shadowtime, name).__doc__
        assert f"`{name}`" in told
    with pytest.raises(AttributeError, match="no attribute 'replays'"):
        _ = shadowtime.replays


def test_it_decides_what_the_command_line_does(best: shadowtime.Result, tmp_path: Path) -> None:
    report = tmp_path / "report.html"
    command = ["-m", "shadowtime", "replay", "--policy", "cautious", "--jobs", str(JOBS), "--report", str(report)]
    subprocess.run([sys.executable, *command], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    assert best.decisions_sha256 in report.read_text()


def test_jobs_are_those_of_the_log(log: shadowtime.Workload, easy: shadowtime.Result) -> None:
    jobs = easy.jobs
    assert jobs.index.tolist() == sorted(job.job_number for job in log)
    assert jobs["wait"].mean() == pytest.approx(easy.scores.policy.mean_wait)
    assert jobs["bounded_slowdown"].mean() == pytest.approx(easy.scores.policy.mean_bounded_slowdown)
    job = next(iter(log))
    row = jobs.loc[job.job_number]
    assert (row["user_id"], row["requested_time"]) == (job.user_id, job.requested_time)
    wait, run_time = jobs["wait"].tolist()[0], jobs["run_time"].tolist()[0]
    assert jobs["bounded_slowdown"].tolist()[0] == bounded_slowdown(wait, run_time)


def test_jobs_have_what_was_predicted_of_them(easy: shadowtime.Result) -> None:
    jobs, scores = easy.jobs, easy.scores
    predicted = jobs["predicted_run_time"].dropna()
    assert len(predicted) == scores.run_time.predictions
    assert (jobs["adjusted_request"].dropna() <= jobs["requested_time"]).all()
    assert "forecast_wait" in jobs
    bounded = jobs.dropna(subset="wait_bound_plain")
    (plain,) = [each for each in scores.wait_bounds if each.grouping == "plain" and each.queue is None]
    assert len(bounded) == plain.predictions
    assert (bounded["wait"] <= bounded["wait_bound_plain"]).mean() == pytest.approx(plain.coverage)


def test_decisions_are_those_that_started_the_jobs(best: shadowtime.Result) -> None:
    starts = best.decisions
    assert (starts["decision"] == "start").all()
    assert starts.set_index("job_number")["time"].sort_index().tolist() == best.jobs["start_time"].tolist()
    assert set(starts["reason"]) == {"fits-now", "backfilled", "probably-harmless"}
    assert starts.loc[starts["reason"] == "probably-harmless", "probability"].notna().all()


def test_two_replays_are_compared_job_by_job(easy: shadowtime.Result, best: shadowtime.Result) -> None:
    difference = easy.compare(best)
    assert difference.wait.mean == pytest.approx((best.jobs["wait"] - easy.jobs["wait"]).mean())
    assert difference.sooner == pytest.approx((best.jobs["wait"] < easy.jobs["wait"]).mean())
    assert best.compare(easy).wait.mean == pytest.approx(-difference.wait.mean)
    of_users = (best.jobs["wait"] - easy.jobs["wait"]).groupby(best.jobs["user_id"]).agg(["mean", "count"])
    means = of_users[of_users["count"] >= FEW]["mean"]
    assert difference.users_worse == pytest.approx((means > NOTICED).mean())
    assert difference.largest_growth == pytest.approx(means.max())


def test_the_report_shows_all_that_it_is_given(
    easy: shadowtime.Result, best: shadowtime.Result, tmp_path: Path
) -> None:
    easy.report(tmp_path / "report.html", best)
    written = (tmp_path / "report.html").read_text()
    assert easy.decisions_sha256 in written
    assert best.decisions_sha256 in written


def test_what_was_done_to_the_log_is_done(log: shadowtime.Workload) -> None:
    recorded = shadowtime.replay(log, mode="recorded", runtime="last-two")
    assert recorded.jobs["wait"].tolist() == [job.wait_time for job in sorted(log, key=lambda job: job.job_number)]
    shrunk = shadowtime.replay(log, "fcfs", capacity={0: log.processors, 1: 2 * log.processors}, seed=3)
    assert shrunk.scores.policy.mean_wait is not None
    asked = shadowtime.read_log(jobs=50, requests="actual")
    assert all(job.requested_time == job.run_time for job in asked)


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        ({"policy": "esay"}, "unknown policy 'esay'"),
        ({"mode": "shut"}, "mode 'shut' is not one of closed, recorded"),
        ({"seed": -1}, "seed -1"),
        ({"speedup": "amdahl"}, "--speedup 'amdahl'"),
        ({"seed": 1.5}, "seed 1.5: expected a whole number"),
        ({"capacity": {0: 10**30}}, "^capacity: processors: expected a number less than or equal to 2147483647"),
        ({"capacity": {0: 8, "noon": 4}}, "^capacity: time: expected a whole number"),
        ({"capacity": [(0, 8)]}, "^capacity: expected a mapping of times to numbers of processors, found"),
    ],
)
def test_errors_name_the_culprit(log: shadowtime.Workload, arguments: dict[str, str], reason: str) -> None:
    with pytest.raises(SettingsError, match=reason):
        shadowtime.replay(log, **arguments)  # type: ignore[arg-type]


def test_a_wait_that_is_not_a_number_bounds_nothing() -> None:
    with pytest.raises(ValueError, match="waits: expected numbers of at least 0, found nan"):
        shadowtime.wait_bound([5, float("nan"), 3, 1] * 25, 0.5)  # type: ignore[list-item]


def test_different_jobs_of_the_same_numbers_are_not_compared(easy: shadowtime.Result, tmp_path: Path) -> None:
    other = shadowtime.replay(generated(100), "easy")
    for compare in (easy.compare, lambda other: easy.report(tmp_path / "page.html", other)):
        with pytest.raises(
            SettingsError, match=r"the same jobs: job 1 was submitted at \d+ s and at \d+ s; expected replays"
        ):
            compare(other)


def test_a_report_that_cannot_be_written_is_one_line(easy: shadowtime.Result, tmp_path: Path) -> None:
    with pytest.raises(OutputError, match=r"page\.html: cannot be written: No such file or directory"):
        easy.report(tmp_path / "nowhere" / "page.html")


def test_logs_and_results_go_to_other_processes(log: shadowtime.Workload, best: shadowtime.Result) -> None:
    there, again = pickle.loads(pickle.dumps((log, best)))
    assert list(there) == list(log)
    assert shadowtime.replay(there, "cautious").decisions_sha256 == best.decisions_sha256 == again.decisions_sha256
    assert again.jobs.equals(best.jobs)
    assert again.decisions.equals(best.decisions)
    assert again.compare(best) == best.compare(again)
    with pytest.raises(ValueError, match="read-only"):
        there.columns["wait_time"][0] = 0


def test_what_cannot_be_made_or_compared_is_told(log: shadowtime.Workload) -> None:
    with pytest.raises(
        SettingsError,
        match=r"unknown kind 'policies'; did you mean 'policy'\? known: policy, runtime",
    ):
        shadowtime.make("policies", "easy")
    few = shadowtime.read_log(jobs=20)
    assert shadowtime.wait_bound([1, 2, 3]) is None
    assert shadowtime.replay(few).compare(shadowtime.replay(few, "fcfs")).wait.low is not None


def test_frames_name_the_extra_that_they_lack(easy: shadowtime.Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match=r"pip install 'shadowtime\[frames\]'"):
        _ = shadowtime.replay(shadowtime.read_log(jobs=5)).jobs
