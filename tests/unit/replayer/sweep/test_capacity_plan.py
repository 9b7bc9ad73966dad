"""The smallest machine and the largest load, against a search by hand through the pipeline."""

import io
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console
from typer.testing import CliRunner

import shadowtime
from shadowtime.replayer.logs import read_trace
from shadowtime.replayer.logs.swf import write_swf
from shadowtime.replayer.sweep.capacity_plan import (
    CapacityAnswer,
    CapacityQuestion,
    Target,
    answers,
    parse_target,
    plan_table,
    sentence,
)
from shadowtime.replayer.sweep.plan_command import app
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.errors import SettingsError

JOBS = 300


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plan") / "log.swf"
    write_swf(path, *generate(jobs=JOBS, processors=64, seed=1))
    return path


def question(path: Path, *, of_load: bool = False, copies: int = 0) -> CapacityQuestion:
    trace = read_trace(path)
    return CapacityQuestion(trace, shadowtime.read_log(path).processors, of_load, copies, None, "drop", "as-logged")


def by_hand(path: Path, target: Target, processors: int, load: float = 1.0) -> bool:
    jobs = shadowtime.replay(shadowtime.read_log(path, processors, load=load), "easy").jobs
    return target.kept(jobs["wait"].to_numpy(float), jobs["run_time"].to_numpy(float))


@pytest.mark.parametrize("text", ["p90 wait <= 2h", "mean slowdown <= 10"])
def test_the_smallest_machine_keeps_the_target_and_one_less_does_not(path: Path, text: str) -> None:
    target = parse_target(text)
    (answer,) = answers(question(path), target, ["easy"])
    (size,) = answer.values
    assert size is not None
    assert by_hand(path, target, size)
    widest = int(shadowtime.read_log(path).columns["processors"].max())
    assert size == widest or not by_hand(path, target, size - 1)


def test_the_largest_load_keeps_the_target_and_a_hundredth_more_does_not(path: Path) -> None:
    target = parse_target("p90 wait <= 2h")
    (answer,) = answers(question(path, of_load=True), target, ["easy"])
    (load,) = answer.values
    assert load is not None
    processors = shadowtime.read_log(path).processors
    assert by_hand(path, target, processors, load / 100)
    assert not by_hand(path, target, processors, (load + 1) / 100)


def test_what_cannot_be_kept_and_what_always_is(path: Path) -> None:
    lost, held = parse_target("mean slowdown <= 0.5"), parse_target("longest wait <= 9999d")
    assert "no value that was tried keeps" in sentence(
        question(path), lost, list(answers(question(path), lost, ["easy"]))
    )
    free = question(path, of_load=True)
    assert "at least 64.00 times the load" in sentence(free, held, list(answers(free, held, ["fcfs"])))


def test_an_interval_needs_draws_and_is_possible(path: Path) -> None:
    assert CapacityAnswer("easy", (116,)).interval == (116, None, None)
    assert CapacityAnswer("easy", (1, 400)).interval == pytest.approx((200.5, 0.0, 200.5 + 12.7062 * 199.5), rel=1e-4)
    once, target = question(path), parse_target("p90 wait <= 2h")
    answer = CapacityAnswer("easy", (116,))
    assert sentence(once, target, [answer]) == "p90 wait <= 2h is kept by easy at 116 processors."
    written = io.StringIO()
    Console(file=written, width=80).print(plan_table(once, target, [answer], "log"))
    assert "116 to" not in written.getvalue()


def test_a_target_that_some_draws_keep_is_not_said_to_be_kept_in_none(path: Path) -> None:
    three, target = question(path, copies=2), parse_target("p90 wait <= 2h")
    results = [CapacityAnswer("easy", (90, None, 99)), CapacityAnswer("fcfs", (None, None, None))]
    assert sentence(three, target, results) == (
        "fcfs: no value that was tried keeps p90 wait <= 2h. "
        "easy: no value that was tried keeps p90 wait <= 2h in 1 of 3 draws."
    )


def test_percentiles_count_jobs() -> None:
    waits, ran = np.array([0.0, 10, 20, 30]), np.full(4, 60.0)
    assert parse_target("p75 wait <= 20s").kept(waits, ran)
    assert not parse_target("p76 wait <= 20s").kept(waits, ran)
    assert parse_target("longest wait <= 30s").kept(waits, ran)
    assert parse_target("mean slowdown <= 1.25").kept(waits, ran)


@pytest.mark.parametrize(
    "text", ["p95 wait < 4h", "p95 wait <= 4", "mean slowdown <= 4h", "p0 wait <= 1h", "wait <= 1h"]
)
def test_what_is_no_target_is_refused(text: str) -> None:
    with pytest.raises(SettingsError, match=r"expected|percentile"):
        parse_target(text)


def test_the_command_prints_a_table_and_a_sentence(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = CliRunner().invoke(app, [str(path), "--target", "p90 wait <= 2h", "--policy", "easy", "--copies", "2"])
    assert done.exit_code == 0
    assert "p90 wait <= 2h is kept by easy at" in done.output
    assert all(len(line) <= 80 for line in done.output.splitlines())
    as_json = CliRunner().invoke(
        app, [str(path), "--target", "p90 wait <= 2h", "--policy", "easy", "--copies", "0", "--json"]
    )
    assert '"of": "processors"' in as_json.output


def test_what_is_left_out_and_assumed_is_reported(path: Path, tmp_path: Path) -> None:
    lines = [line for line in path.read_text().splitlines() if not line.startswith("; Max")]
    (log := tmp_path / "odd.swf").write_text("\n".join([*lines, "a b c", ""]))
    shown = CliRunner().invoke(app, [str(log), "--target", "p90 wait <= 2h", "--copies", "0", "--policy", "easy"])
    assert "odd: 1 of 301 rows cannot be read and is left out" in shown.stderr
    assert "processors are assumed, the most that were held at one time" in shown.stderr
    assert "the log states no size; " in shown.output


def test_large_machines_are_tried_up_to_the_largest(tmp_path: Path) -> None:
    rows = [f"{job} 0 -1 60 4 -1 -1 4 60 -1 1 1 1 1 1 1 -1 -1" for job in range(1, 201)]
    (log := tmp_path / "at-once.swf").write_text("\n".join(["; MaxProcs: 8", *rows, ""]))
    (answer,) = answers(question(log), parse_target("longest wait <= 60s"), ["easy"])  # 2 waves of 100 jobs
    assert answer.values == (400,)


def test_a_larger_machine_has_the_same_jobs(tmp_path: Path) -> None:
    sizes = {job: 64 if job % 20 == 0 else 4 for job in range(1, 201)}
    rows = [f"{job} {10 * job} -1 60 {size} -1 -1 {size} 600 -1 1 1 1 1 1 1 -1 -1" for job, size in sizes.items()]
    (log := tmp_path / "wide.swf").write_text("\n".join(["; MaxProcs: 8", *rows, ""]))
    assert [len(question(log).workload(size, copy=0)) for size in (8, 24, 64)] == [190, 190, 190]
    cut = question(log)._replace(oversized="align")
    assert [max(job.processors for job in cut.workload(size, copy=0)) for size in (8, 24, 100)] == [8, 24, 64]


def test_a_machine_with_pools_has_a_largest_load_alone(tmp_path: Path) -> None:
    (pools := tmp_path / "pools.toml").write_text('[[pool]]\nname = "a"\nprocessors = 8\npartitions = ["a"]\n')
    jobs = [f"{job},{60 * job},{60 * job},{60 * job + 90},4,100,u,a" for job in range(1, 40)]
    (log := tmp_path / "pool.csv").write_text(
        "\n".join(["job,submit,start,end,processors,limit,user,partition", *jobs])
    )
    options = [str(log), "--pools", str(pools), "--target", "mean wait <= 60s", "--policy", "easy", "--copies", "0"]
    size, load = (CliRunner().invoke(app, [*options, *more]) for more in ([], ["--load"]))
    assert isinstance(size.exception, SettingsError)
    assert "expected a machine without pools" in str(size.exception)
    assert load.exit_code == 0
    assert "mean wait <= 60s is kept by easy at" in load.output


def test_a_policy_is_not_searched_twice(path: Path) -> None:
    with pytest.raises(SettingsError, match="is given twice"):
        list(answers(question(path), parse_target("p90 wait <= 2h"), ["easy", "easy"]))


def test_an_interval_is_rounded_outwards(path: Path) -> None:
    target, answer = parse_target("p95 wait <= 4h"), CapacityAnswer("easy", (116, 116, 115, 115, 116))  # 114.9 to 116.3
    assert "at 116 processors (95 %: 114 to 117)" in sentence(question(path), target, [answer])
    assert "at 1.15 times the load (95 %: 1.14 to 1.17)" in sentence(question(path, of_load=True), target, [answer])
