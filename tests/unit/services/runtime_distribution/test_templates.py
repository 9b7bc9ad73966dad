"""Templates against a plain recomputation from the whole log at every prefix; sets of them, in SPECs and files."""

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import linregress
from scipy.stats import t as student

from shadowtime.services.catalogue import canonical, configure
from shadowtime.services.runtime_distribution.handler import PREDICTORS
from shadowtime.services.runtime_distribution.templates.category_sums import UNIT, estimate
from shadowtime.services.runtime_distribution.templates.predictor import Templates, TemplatesSettings
from shadowtime.services.runtime_distribution.templates.template import (
    CHARACTERISTICS,
    DEFAULT,
    DEFAULT_SET,
    PREDICTIONS,
    Template,
    spelled_out,
    template_of,
)
from shadowtime.shared.distributions.histogram import bin_of
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.messages.envelope import JobSubmitted
from shadowtime.shared.messages.predictions import RunTimePrediction
from shadowtime.shared.spec import parse
from tests.unit.services.runtime_distribution.ended_jobs import ENDED, WorkCancelled

TEMPLATES = st.builds(
    Template,
    prediction=st.sampled_from(PREDICTIONS),
    key=st.lists(st.sampled_from(["user", "executable", "request"]), unique=True).map("+".join),
    relative=st.booleans(),
    processors=st.none() | st.sampled_from([1, 2, 8]),
    running=st.none() | st.sampled_from([64, 512]),
    history=st.none() | st.sampled_from([2, 4, 8]),
)
SETS = st.lists(TEMPLATES, min_size=1, max_size=4).map(lambda templates: ";".join(map(str, templates)))


def category(template: Template, job: WorkCancelled) -> tuple[int, ...] | None:
    known = {"user": job.user_id, "executable": job.executable_number, "request": job.requested_time}
    key = [known[each] for each in template.characteristics]
    if template.relative:
        key.append(job.requested_time and 1)
    if template.processors:
        key.append((job.processors - 1) // template.processors)
    return None if None in key else tuple(each for each in key if each is not None)


def regressor(template: Template, processors: int) -> float:
    of = {"linear": float(processors), "inverse": 1 / processors, "logarithmic": math.log2(processors)}
    return of.get(template.prediction, 0.0)


def batch(
    template: Template, log: list[WorkCancelled], asked: WorkCancelled, elapsed: int, history: int
) -> tuple[float, float]:
    """Return estimate and reach of one template from the ended jobs, of which the last are remembered."""
    log = log[-history:]
    key = category(template, asked)
    like = [job for job in log if key is not None and category(template, job) == key]
    like = like[-(template.history or len(log)) :] if log else []
    if template.running and elapsed >= template.running:
        like = [job for job in like if job.run_time > elapsed // template.running * template.running]
    if len(like) < template.fewest:
        return 0.0, math.inf
    scale = (asked.requested_time or 1) if template.relative else 1
    y = np.array([job.run_time / (job.requested_time or 1 if template.relative else 1) for job in like])
    if template.relative:  # as large as can be summed
        y = np.minimum(y, math.isqrt(2**62 // min(template.history or history, history)) / UNIT)
    n = len(like)
    if template.prediction == "mean":
        deviation = max(np.std(y, ddof=1) * scale, 1.0)
        return y.mean() * scale, student.ppf(0.95, n - 1) * deviation * math.sqrt(1 + 1 / n)
    x = np.array([regressor(template, job.processors) for job in like])
    if len(set(x.tolist())) == 1:
        return 0.0, math.inf
    line, at = linregress(x, y), regressor(template, asked.processors)
    rest = y - line.intercept - line.slope * x
    deviation = max(math.sqrt((rest**2).sum() / (n - 2)) * scale, 1.0)
    off = (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum()
    reach = student.ppf(0.95, n - 2) * deviation * math.sqrt(1 + 1 / n + off)
    return (line.intercept + line.slope * at) * scale, reach


@given(st.lists(ENDED, min_size=1, max_size=40), SETS, st.sampled_from([5, 1000]), st.sampled_from([0, 70, 700]))
def test_online_is_batch_at_every_prefix(log: list[WorkCancelled], text: str, history: int, elapsed: int) -> None:
    predictor = Templates(TemplatesSettings(set=text, history=history))
    for prefix, asked in enumerate(log):
        found = predictor.predict_one(asked.submitted(), elapsed)
        estimates = [batch(template_of(each), log[:prefix], asked, elapsed, history) for each in text.split(";")]
        narrowest = min(reach for _, reach in estimates)
        if math.isinf(narrowest):
            assert found is None
        else:
            assert found is not None
            assert found.interval is not None
            near = [value for value, reach in estimates if reach <= narrowest * 1.001 + 0.2]
            high = [value + reach for value, reach in estimates if reach <= narrowest * 1.001 + 0.2]
            limit = math.inf if asked.requested_time is None else asked.requested_time
            points = [max(min(value, limit), elapsed + 1) for value in near]
            assert min(abs(found.point - each) for each in points) <= 0.2 + 1e-3 * abs(found.point)
            assert (
                min(abs(found.interval[1] - max(each, elapsed + 1)) for each in high) <= 0.4 + 2e-3 * found.interval[1]
            )
            assert sum(found.histogram) == pytest.approx(1, abs=1e-4)
        predictor.learn_one(asked.submitted(), asked.run_time)


def learned(text: str, *jobs: WorkCancelled) -> Templates:
    predictor = Templates(TemplatesSettings(set=text))
    for job in jobs:
        predictor.learn_one(job.submitted(), job.run_time)
    return predictor


def predicted(predictor: Templates, job: WorkCancelled, elapsed: int = 0) -> RunTimePrediction:
    prediction = predictor.predict_one(job.submitted(), elapsed)
    assert prediction is not None
    return prediction


def test_nothing_is_left_of_forgotten_jobs() -> None:
    """What a predictor knows does not depend on what it has seen before the jobs that it remembers."""
    jobs = [WorkCancelled(n % 3, 1000 * (1 + n % 4), 1 + n % 5, n % 2, n * 37 % 900) for n in range(60)]
    old, new = Templates(TemplatesSettings(history=20)), Templates(TemplatesSettings(history=20))
    for job in jobs:
        old.learn_one(job.submitted(), job.run_time)
    for job in jobs[-20:]:
        new.learn_one(job.submitted(), job.run_time)
    assert [predicted(old, job) for job in jobs] == [predicted(new, job) for job in jobs]
    assert old.snapshot() == new.snapshot()


def test_two_equal_run_times_do_not_win_by_themselves() -> None:
    """Their variance is zero; five jobs that differ by a few seconds are surer."""
    twice, often = [WorkCancelled(1, 900, 1, 1, 500)] * 2, [WorkCancelled(2, 900, 1, 2, 100 + n) for n in range(5)]
    found = predicted(learned("mean(key=user);mean(key=executable)", *twice, *often), WorkCancelled(1, 900, 1, 2, 0))
    assert found.point == 102
    alone = predicted(learned("mean", *twice), twice[0])
    assert alone.point == 500
    assert alone.interval is not None
    assert alone.interval[1] - 500 == pytest.approx(student.ppf(0.95, 1) * math.sqrt(1.5))


def test_a_category_of_zero_variance() -> None:
    for prediction in PREDICTIONS:
        jobs = [WorkCancelled(1, 900, processors, 1, 500) for processors in (1, 2, 4, 1, 2, 4)]
        found = predicted(learned(f"{prediction}(key=user)", *jobs), jobs[0])
        assert found.point == pytest.approx(500)
        assert found.histogram[bin_of(500)] > 0.7


@pytest.mark.parametrize("prediction", ["linear", "inverse", "logarithmic"])
@pytest.mark.parametrize("size", [4, 99])
def test_a_regression_needs_two_sizes(prediction: str, size: int) -> None:
    """Also where so many have been summed that floating-point numbers do not hold the sums."""
    predictor = learned(prediction, *[WorkCancelled(1, 900, size, 1, 500 + n % 9) for n in range(3000)])
    assert predictor.predict_one(WorkCancelled(1, 900, 8, 1, 0).submitted()) is None


def test_a_line_that_falls_below_zero_predicts_the_least_there_is() -> None:
    found = predicted(
        learned("linear", *[WorkCancelled(1, 900, size, 1, 600 - 100 * size) for size in range(1, 6)]),
        WorkCancelled(1, 900, 64, 1, 0),
    )
    assert (found.point, found.interval) == (1.0, (0.0, 1.0))


def test_relative_run_times_need_a_request_and_three_jobs() -> None:
    predictor = learned(
        "mean(relative=yes)", *[WorkCancelled(1, None, 1, 1, 60)] * 9, *[WorkCancelled(1, 100, 1, 1, 50)] * 2
    )
    assert predictor.predict_one(WorkCancelled(1, 100, 1, 1, 0).submitted()) is None
    predictor.learn_one(WorkCancelled(1, 100, 1, 1, 50).submitted(), 50)
    assert predicted(predictor, WorkCancelled(1, 1000, 1, 1, 0)).point == pytest.approx(500, abs=0.01)
    assert predictor.predict_one(WorkCancelled(1, None, 1, 1, 0).submitted()) is None


def test_users_and_executables_may_be_unknown() -> None:
    """Templates that ask for them say nothing then; the others do."""
    job = WorkCancelled(None, 3600, 4, None, 600)
    predictor = learned(DEFAULT, *[job] * 5)
    assert predicted(predictor, job).point == pytest.approx(600, abs=0.01)
    assert learned("mean(key=user)", *[job] * 5).predict_one(job.submitted()) is None


def test_a_running_job_is_compared_with_those_that_ran_longer() -> None:
    jobs = [WorkCancelled(1, None, 1, 1, run_time) for run_time in (10, 20, 30, 5000, 5010, 5020, 5030)]
    predictor = learned("mean(key=user,running=64)", *jobs)
    assert predicted(predictor, jobs[0]).observations == 7
    running = predicted(predictor, jobs[0], elapsed=70)
    assert (running.observations, running.point) == (4, 5015)
    beyond = predicted(learned("mean(key=user)", *jobs), jobs[0], elapsed=9000)
    assert (beyond.observations, beyond.point) == (7, 9001)


def test_huge_run_times_count_as_the_largest_that_can_be_summed() -> None:
    jobs = [WorkCancelled(1, 2**38, 1, 1, 2**38 + n) for n in range(20)]
    for text in ("mean", "linear", "mean(relative=yes)"):
        predictor = learned(text, *jobs, WorkCancelled(1, 1, 7, 1, 2**39))
        assert 1 <= predicted(predictor, jobs[0]).point <= 2**38


@given(SETS)
def test_a_set_spells_itself(text: str) -> None:
    assert spelled_out(text) == text
    spec = canonical("runtime", f"templates:set={text}")
    assert canonical("runtime", spec) == spec
    assert configure(f"easy-sjbf:runtime={spec}").runtime == spec


def test_keys_of_a_template_have_one_order() -> None:
    keys = list(CHARACTERISTICS)
    assert template_of(f"mean(key={'+'.join(reversed(keys))})").characteristics == tuple(keys)


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("mean(key=user+project)", ["'project'", "known: user, group, executable, queue, partition, request"]),
        ("median(key=user)", ["'median'", "known: mean, linear, inverse, logarithmic"]),
        ("mean(users=7)", ["'users'", "known keys: key, relative, processors, running, history"]),
        ("mean(processors=3)", ["processors=3", "expected a power of two"]),
        ("mean(processors=1024)", ["processors=1024", "512"]),
        ("mean(history=1)", ["history=1", "2"]),
        (";", ["0 templates", "1 to 10"]),
        (";".join(["mean"] * 11), ["11 templates", "1 to 10"]),
    ],
)
def test_a_wrong_set_is_named(text: str, names: list[str], tmp_path: Path) -> None:
    file = tmp_path / "wrong.templates"
    file.write_text("# remark\n" + text.replace(";", "\n"))
    for spec in (f"templates(set={file})", f"templates(set=mean;{text})" if names[0][0] not in "01" else ""):
        if spec:
            with pytest.raises(SettingsError) as error:
                canonical("runtime", spec)
            assert all(name in str(error.value) for name in names)
            assert str(file) in str(error.value) or "mean;" in spec


def test_a_file_is_spelled_out_in_the_log(tmp_path: Path) -> None:
    """So that a worker, which has no such file, needs nothing but the log."""
    file = tmp_path / "found.templates"
    file.write_text("# error 41 %\nmean(key=request+user, history=4)  # the same again\n\n  linear(key=queue)\n")
    spec = configure(f"easy:runtime=templates(set={file})").runtime
    file.unlink()
    assert "set=mean(key=user+request,history=4);linear(key=queue)," in spec
    assert isinstance(PREDICTORS.build(parse(spec)), Templates)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"# nothing\n"])
def test_a_file_that_is_none(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "set.templates"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(SettingsError, match=r"set\.templates"):
        canonical("runtime", f"templates:set={file}")


@pytest.mark.parametrize("content", ["mean(key=user)\n" * 200_000, "1 0 -1 30 4;" * 20_000, "x" * 100_000])
def test_what_is_no_set_is_told_in_a_line(tmp_path: Path, content: str) -> None:
    """As where a log is named in the place of the set that was found on it."""
    file = tmp_path / "log.swf"
    file.write_text(content)
    with pytest.raises(SettingsError, match=r"log\.swf: .*(200,000|240,000|100,000)") as error:
        canonical("runtime", f"templates:set={file}")
    assert len(str(error.value)) < 200 + len(str(file))


def test_a_file_from_another_editor(tmp_path: Path) -> None:
    file = tmp_path / "found.templates"
    file.write_bytes(b"\xef\xbb\xbfmean(key=user)\r\nmean\r\n")
    assert spelled_out(str(file)) == "mean(key=user);mean"


def test_a_worker_reads_no_file(tmp_path: Path) -> None:
    file = tmp_path / "set.templates"
    file.write_text("mean\n")
    with pytest.raises(SettingsError):
        PREDICTORS.build(parse(f"templates:set={file}"))


def test_the_default_set_spells_itself() -> None:
    assert spelled_out(DEFAULT_SET) == DEFAULT_SET
    assert "set=default," in canonical("runtime", "templates")


def test_a_log_without_any_owner() -> None:
    job = JobSubmitted(time=0, job_number=1, requested_processors=1)
    predictor = Templates(TemplatesSettings())
    for run_time in (5, 6, 7):
        predictor.learn_one(job, run_time)
    assert predictor.predict_one(job) is None  # without requests either, no template of the default set applies


def test_the_error_of_a_new_observation_is_that_of_the_text_book() -> None:
    # (1, 10), (2, 30), (3, 20), (4, 40): the line is 5 + 8 x, the residuals are -3, 9, -9 and 3, their variance is 90
    found = estimate(True, 4, 100.0, 3000.0, 10.0, 30.0, 290.0, 5.0, 1.0)
    assert found == pytest.approx((45, math.sqrt(90 * (1 + 1 / 4 + 2.5**2 / 5))))
    # their mean is 25, their variance 500 / 3
    found = estimate(False, 4, 100.0, 3000.0, 10.0, 30.0, 290.0, 5.0, 1.0)
    assert found == pytest.approx((25, math.sqrt(500 / 3 * (1 + 1 / 4))))


def test_a_category_keeps_the_last_jobs_of_its_history() -> None:
    jobs = [WorkCancelled(7, 3600, 1, None, run_time) for run_time in (100, 200, 600)]
    prediction = predicted(learned("mean(history=2)", *jobs), jobs[0])
    assert (prediction.point, prediction.observations) == (400, 2)
