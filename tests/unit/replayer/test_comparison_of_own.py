"""Policies of a notebook are compared over logs and copies."""

import re
import sys
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest

import shadowtime
from shadowtime.replayer.api.frames import DECISION_COLUMNS, JOB_COLUMNS
from shadowtime.replayer.commands.replay_options import Options
from shadowtime.replayer.commands.replay_run import compare_logs
from shadowtime.replayer.logs import perturbed
from shadowtime.replayer.report.affected_classes import groups
from shadowtime.shared.distributions import HOUR_AND_EIGHT, SHAPES, shape_of
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages import Kill, Reason, Start
from shadowtime.shared.spec import SpecSettings
from shadowtime.shared.statistics import half_width

LOG = shadowtime.read_log(jobs=200)


def in_order(now: int, queue: Any, running: Any, free: int) -> Any:
    return np.cumsum(queue.processors) <= free


class Half:
    """Predict half of the request."""

    def predict_one(self, x: Any) -> Any:
        from shadowtime.shared.messages import RunTimePrediction

        return RunTimePrediction(point=max(1.0, (x.requested_time or 2) / 2), observations=1)

    def learn_one(self, x: Any, y: int) -> None:
        pass


def test_a_grid_has_each_policy_with_each_predictor() -> None:
    compared = shadowtime.compare(LOG, ["easy:runtime=requested", "easy", in_order], runtime=["last-two", Half])
    rows = {draw.policy: draw.result for draw in compared.draws}
    of_predictors = [f"{policy}, {predictor}" for policy in ("easy", "in-order") for predictor in ("last-two", "half")]
    assert [*rows] == ["easy:runtime=requested", *of_predictors]
    alone = shadowtime.replay(LOG, "easy", runtime=Half)
    assert rows["easy, half"].decisions_sha256 == alone.decisions_sha256
    assert rows["easy:runtime=requested"].configuration.runtime == "requested"
    assert compared.relative().index.tolist() == [*rows]
    with pytest.raises(SettingsError, match=r"^runtime: expected at least one predictor$"):
        shadowtime.compare(LOG, ["easy"], runtime=[])
    with pytest.raises(SettingsError, match=r"^policy 'easy, half' occurs twice; give each policy a unique name$"):
        shadowtime.compare(LOG, ["easy"], runtime=[Half, Half])
    with pytest.raises(SettingsError, match=r"^expected one policy and one predictor .*; found 2 rows; replay each"):
        shadowtime.compare(LOG, ["easy"], runtime=["last-two", Half], mode="recorded")


def test_a_row_never_names_a_predictor_that_it_does_not_use() -> None:
    compared = shadowtime.compare(LOG, ["best", "tuned"], runtime=["requested", "last-two"])
    used = {draw.policy: draw.result.configuration.runtime for draw in compared.draws}
    assert [*used] == ["best", "tuned, requested", "tuned, last-two"]
    assert used["best"].startswith("empirical(")
    assert (used["tuned, requested"], used["tuned, last-two"]) == ("requested", "last-two")


def test_rows_of_two_predictors_of_one_class_have_their_settings() -> None:
    class Share(Half):
        class Settings(SpecSettings):
            share: float = 0.5

        def __init__(self, share: float) -> None:
            self.settings = self.Settings(share=share)

    compared = shadowtime.compare(LOG, ["easy"], runtime=[Share(0.25), Share(0.75)])
    assert [draw.policy for draw in compared.draws] == ["easy, share(share=0.25)", "easy, share(share=0.75)"]


def test_rows_are_those_of_single_replays() -> None:
    compared = shadowtime.compare(LOG, ["easy", in_order], copies=2, runtime=Half)
    assert [(draw.copy, draw.policy) for draw in compared.draws] == [
        (copy, name) for copy in range(3) for name in ("easy", "in-order")
    ]
    alone = shadowtime.replay(perturbed(LOG, 2), in_order, runtime=Half())
    assert compared.draws[-1].result.decisions_sha256 == alone.decisions_sha256
    rows, table, ratios = compared.rows, compared.table, compared.relative()
    assert len(rows) == 6
    assert table.loc[("bundled", "easy"), "mean_wait"] == pytest.approx(
        rows[rows["policy"] == "easy"]["mean_wait"].mean()
    )
    assert (ratios.loc["easy"] == 1).all()
    by_hand = [rows["mean_wait"][2 * copy + 1] / rows["mean_wait"][2 * copy] for copy in range(3)]
    assert ratios.loc["in-order", "mean_wait"] == pytest.approx(np.exp(np.log(by_hand).mean()))
    assert compared.relative("in-order").loc["in-order", "max_wait"] == 1
    bounds: Any = compared.relative(interval=True)
    mean, low, high = bounds.loc["in-order", "mean_wait"]
    half = half_width(np.log(by_hand).tolist())
    assert (mean, np.log(high / mean), np.log(mean / low)) == pytest.approx(
        (ratios.loc["in-order", "mean_wait"], half, half)
    )


def test_one_draw_has_no_interval() -> None:
    bounds: Any = shadowtime.compare(LOG, ["easy", "fcfs"]).relative(interval=True)
    mean, low, high = bounds.loc["fcfs", "mean_wait"]
    assert mean > 1
    assert np.isnan([low, high]).all()


def test_an_unknown_figure_has_no_ratio_and_no_interval() -> None:
    """Of 40 jobs, no user has twenty, so no user is the worst. The other figures have their intervals."""
    bounds: Any = shadowtime.compare(shadowtime.read_log(jobs=40), ["easy", "fcfs"], copies=2).relative(interval=True)
    assert np.isnan(bounds.loc["fcfs", "worst_user"].to_numpy()).all()
    assert np.isfinite(bounds.loc["fcfs", "max_wait"].to_numpy()).all()


def test_the_page_compares_the_log_as_it_is(tmp_path: Path) -> None:
    compared = shadowtime.compare([LOG], ["easy", in_order])
    compared.report(tmp_path / "page.html")
    assert "in-order" in (tmp_path / "page.html").read_text()
    with pytest.raises(SettingsError, match="unknown log 'kth'; known: bundled"):
        compared.report(tmp_path / "page.html", "kth")
    with pytest.raises(SettingsError, match="unknown policy 'best'; known: easy, in-order"):
        compared.relative("best")


def test_the_page_has_the_intervals_over_the_copies(tmp_path: Path) -> None:
    """It said "one draw of chance" although several had been replayed, and cut the names of rows."""
    compared = shadowtime.compare(LOG, ["easy:runtime=requested", "easy-sjbf"], runtime=["last-two", Half], copies=2)
    compared.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    (part,) = re.findall("On copies of the log</h3>(.*?)</table>", page, flags=re.S)
    ratios: Any = compared.relative(interval=True)
    for row in ("easy-sjbf, last-two", "easy-sjbf, half"):
        assert row in part
        for bound in ("low", "high"):
            assert f"{100 * ratios.loc[row, ('mean_wait', bound)]:.1f} %" in part
    shadowtime.compare(LOG, ["easy", "fcfs"]).report(tmp_path / "one.html")
    assert "On copies of the log" not in (tmp_path / "one.html").read_text()


def test_the_baseline_of_a_page_is_easy_with_requests(tmp_path: Path) -> None:
    easy, two, mine = (shadowtime.replay(LOG, "easy", runtime=runtime) for runtime in (None, "last-two", Half))
    mine.report(tmp_path / "page.html", two, easy)
    assert "than the same jobs under easy, requested" in (tmp_path / "page.html").read_text()
    mine.report(tmp_path / "page.html", shadowtime.replay(LOG, "fcfs"))
    assert "than the same jobs under easy," in (tmp_path / "page.html").read_text()


def test_a_page_does_not_say_what_a_policy_of_ones_own_plans_with(tmp_path: Path) -> None:
    compared = shadowtime.compare(LOG, ["easy", in_order], runtime=["last-two"])
    assert [draw.policy for draw in compared.draws] == ["easy, last-two", "in-order, last-two"]
    compared.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert "Easy, last-two plans with predictions (last-two)" in page
    assert "in-order, last-two is given predictions (last-two)" in page


def test_an_interval_of_a_difference_is_possible() -> None:
    """Jobs that had waited for an hour waited 18 hours less, at the lower end of an interval."""
    easy, other = (shadowtime.replay(shadowtime.read_log(jobs=1000), policy).record for policy in ("easy", "wfp"))
    shapes = shape_of(easy.jobs.requested_time, easy.jobs.requested_processors, HOUR_AND_EIGHT)
    for group in groups(easy, other):
        of_shape = shapes == SHAPES.index(group.shape)
        if group.longer.low is not None and group.longer.high is not None:
            assert group.longer.low >= -easy.jobs.wait[of_shape].mean() - 1e-9
            assert group.longer.high <= other.jobs.wait[of_shape].mean() + 1e-9


def test_results_of_one_policy_have_different_names_on_the_page(tmp_path: Path) -> None:
    """A result was compared with another predictor, another seed, or another size of the machine."""
    page = tmp_path / "page.html"
    easy = shadowtime.replay(LOG, "easy")
    for others, names in (
        ([shadowtime.replay(LOG, "easy", runtime="last-two")], ["easy, requested", "easy, last-two"]),
        ([shadowtime.replay(LOG, "easy", seed=3), shadowtime.replay(LOG, "fcfs")], ["easy, seed 0", "easy, seed 3"]),
        ([shadowtime.replay(LOG, "easy", capacity={5_000: 120})], ["easy 1", "easy 2"]),
    ):
        easy.report(page, *others)
        text = page.read_text()
        for name in names:
            assert f"{name} had the lowest" in text or f"{name} (" in text or f"than {name}" in text
        assert "jobs under easy waited" not in text
    orders = [shadowtime.replay(LOG, "easy:queue=R", seed=seed) for seed in (1, 2)]
    orders[0].report(page, orders[1])
    assert "easy…, seed 1" in page.read_text()


def test_a_report_has_one_mode(tmp_path: Path) -> None:
    """A recorded schedule was not made by the policy under whose name it would be shown."""
    recorded = shadowtime.replay(shadowtime.read_log(jobs=200, recorded=True), "easy", mode="recorded")
    for first, other in ((recorded, shadowtime.replay(LOG, "easy")), (shadowtime.replay(LOG, "easy"), recorded)):
        with pytest.raises(SettingsError, match=r"a report compares replays in one mode, found (closed|recorded) and"):
            first.report(tmp_path / "page.html", other)


def test_the_size_of_a_machine_of_several_pools_does_not_change(tmp_path: Path) -> None:
    """The first pool alone would get the size that was stated for the machine."""
    pools, jobs = tmp_path / "pools.toml", tmp_path / "jobs.csv"
    pools.write_text("".join(f'[[pool]]\nname = "{name}"\nprocessors = 8\npartitions = ["{name}"]\n' for name in "ab"))
    jobs.write_text("submit,start,end,processors,limit,partition\n0,0,60,8,90,a\n1,1,61,8,90,b\n")
    log = shadowtime.read_log(jobs, pools=pools)
    with pytest.raises(SettingsError, match=r"capacity: expected a machine of one pool, .* jobs has 2 pools"):
        shadowtime.replay(log, "easy", capacity={30: 12})
    with pytest.raises(SettingsError, match="capacity: expected a machine of one pool"):
        compare_logs(Options([str(jobs)], pools=pools, capacity=["30:12"]))


def test_a_recorded_log_is_read_as_for_a_replay_of_it(tmp_path: Path) -> None:
    """A job that never started is in a recorded replay, not in a closed one."""
    file = tmp_path / "jobs.txt"
    file.write_text(
        "JobIDRaw|State|Submit|Start|End|ElapsedRaw|TimelimitRaw|ReqCPUS|AllocCPUS|NNodes|User|Account|Partition\n"
        "101|COMPLETED|1795325473|1795325480|1795325540|60|2|4|4|1|u1|acc|batch\n"
        "103|CANCELLED by 7|1795325510|None|1795325530|0|60|8|0|1|u2|acc|batch\n"
    )
    for mode, jobs in (("closed", 1), ("recorded", 2)):
        (draw,) = shadowtime.compare(file, ["easy"], mode=mode).draws
        assert len(draw.result.record.plan.workload) == jobs


@pytest.mark.parametrize(
    ("logs", "policies", "options", "message"),
    [
        (LOG, [], {}, "policies: expected a list of policies, found \\[\\]"),
        (LOG, "easy", {}, "policies: expected a list of policies, found 'easy'"),
        (LOG, ["easy", "easy"], {}, "policy 'easy' occurs twice"),
        ([LOG, LOG], ["easy"], {}, "log 'bundled' occurs twice"),
        ([], ["easy"], {}, "logs: expected at least one log"),
        (LOG, ["easy"], {"copies": -1}, "copies: expected a whole number from 0 to 1,000, found -1"),
        (LOG, ["easy"], {"mode": "shut"}, "mode 'shut' is not one of closed, recorded"),
        (
            LOG,
            ["easy", "fcfs"],
            {"mode": "recorded"},
            "expected one policy and one predictor .*; found 2 rows",
        ),
    ],
)
def test_mistakes_are_named(logs: Any, policies: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        shadowtime.compare(logs, policies, **options)


@pytest.mark.parametrize(
    ("policies", "options", "message"),
    [
        ("easy", {}, "policies: expected a list of policies, found 'easy'"),
        (["easy"], {"jobs": 0}, "jobs: expected a number greater than or equal to 1"),
        (["easy"], {"copies": -1}, "copies: expected a number greater than or equal to 0"),
    ],
)
def test_mistakes_of_a_sweep_are_named(policies: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        shadowtime.sweep(None, policies, **options)


def test_a_sweep_names_no_folder_that_it_deletes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shadowtime.sweep(None, ["easy"], jobs=50)
    assert "results in" not in (told := capsys.readouterr().err)
    assert "rows in" not in told
    shadowtime.sweep(None, ["easy"], jobs=50, out=tmp_path / "kept")
    assert f"rows in {tmp_path / 'kept'}" in capsys.readouterr().err.replace("\n", "")


@pytest.mark.parametrize(("log", "named"), [(LOG, " bundled"), ({"submit": [0]}, " of type dict"), (5, " of type int")])
def test_a_sweep_of_no_path_says_what_it_needs(log: Any, named: str) -> None:
    with pytest.raises(SettingsError, match=rf"log{named}: a sweep reads its log .* give the path of the log"):
        shadowtime.sweep(log, ["easy"])


@pytest.mark.parametrize("trait", ["restartable", "moldable"])
def test_no_text_stands_for_yes(trait: str) -> None:
    with pytest.raises(SettingsError, match=f"{trait}: expected True or False, found 'no'"):
        shadowtime.replay(LOG, **{trait: "no"})  # type: ignore[arg-type]


def test_a_log_may_be_a_frame() -> None:
    """Also the frame of a result: its columns are those of a table of jobs."""
    jobs = shadowtime.replay(LOG, "easy").jobs
    for frame in (jobs, jobs.reset_index()):
        again = shadowtime.read_log(frame, LOG.processors)
        assert (len(again), again.name) == (len(LOG), "frame")
        assert shadowtime.replay(again, "easy").jobs["wait"].tolist() == jobs["wait"].tolist()
    renamed = jobs.rename(columns={"submit_time": "came"})
    assert len(shadowtime.read_log(renamed, 128, columns={"submit": "came"})) == len(LOG)
    import pyarrow

    assert len(shadowtime.read_log(pyarrow.table(jobs), 128)) == len(LOG)


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (
            {"a": [1]},
            "the data frame: no column for submit, .*; give columns={'submit': .*'end': 'COLUMN'.*}; .* it has a '1'",
        ),
        (5, "expected the path of a log, or a data frame of pandas, polars or pyarrow; found '5'"),
        (None, "expected the path of a log, or a data frame .*; found 'None'"),
        (["a", "b"], "expected the path of a log, or a data frame"),
    ],
)
def test_what_is_no_frame_of_jobs_is_named(frame: Any, message: str) -> None:
    from shadowtime.shared.errors import TraceError

    with pytest.raises(TraceError, match=message):
        shadowtime.read_log(frame)


def test_a_log_and_scores_are_printed_on_one_line() -> None:
    assert repr(LOG) == "<Workload bundled: 200 jobs on 128 processors>"
    scores = repr(shadowtime.replay(LOG, "easy").scores)
    assert scores.startswith("<Scores: 200 jobs, mean wait ")
    assert len(scores) < 200


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("processors", "100", "a whole number"),
        ("jobs", "5", "a whole number"),
        ("jobs", 1.5, "a whole number"),
        ("load", "x", "a number"),
    ],
)
def test_an_argument_of_another_type_is_named(name: str, value: Any, expected: str) -> None:
    with pytest.raises(SettingsError, match=f"{name}: expected {expected}, found {value!r}"):
        shadowtime.read_log(**{name: value})


@pytest.mark.parametrize("seed", [-1, "x", 0.5])
def test_a_seed_is_a_whole_number(seed: Any) -> None:
    with pytest.raises(SettingsError, match=f"seed {seed}: expected a whole number from 0 to"):
        shadowtime.replay(LOG, seed=seed)


def test_a_result_is_compared_with_a_result() -> None:
    with pytest.raises(SettingsError, match="expected a result of `replay` to compare with, found 'easy'"):
        shadowtime.replay(LOG, "easy").compare("easy")  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [-5, float("nan")])
def test_a_wait_is_a_number_of_at_least_0(wrong: float) -> None:
    with pytest.raises(ValueError, match=f"waits: expected numbers of at least 0, found {wrong}"):
        shadowtime.wait_bound([5, wrong] * 50)  # type: ignore[list-item]


def test_every_column_of_a_result_is_documented() -> None:
    """Of a replay with all that can be predicted; the page of the reference is generated from these tables."""
    result = shadowtime.replay(LOG, "cautious:forecast=yes", adjustment="percentile", wait_bound="bmbp")
    jobs = result.jobs.reset_index()
    assert {"wait_bound_GROUPING" if name.startswith("wait_bound_") else name for name in map(str, jobs)} == set(
        JOB_COLUMNS
    )
    fields = {name for model in (Start, Kill, *get_args(get_args(Reason)[0])) for name in model.model_fields}
    for policy in ("easy", "best", "conservative:speculate=0.2"):
        assert set(shadowtime.replay(LOG, policy).decisions) <= set(DECISION_COLUMNS) | fields


def test_without_pandas_each_frame_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    compared = shadowtime.compare(LOG, ["easy"])
    monkeypatch.setitem(sys.modules, "pandas", None)
    for name in ("rows", "table", "relative"):
        with pytest.raises(ImportError, match=r"pip install 'shadowtime\[frames\]'"):
            getattr(compared, name)()
