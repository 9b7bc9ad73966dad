"""Worked examples of run times predicted from similar jobs."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from shadowtime.services.runtime_distribution.downey import (
    DowneyMean,
    conditional_mean,
    conditional_median,
    domain,
    fit,
)
from shadowtime.services.runtime_distribution.gibbons import Gibbons, GibbonsSettings, RangeSums, range_of, weighted_fit
from shadowtime.services.runtime_distribution.history import RememberedJob, remembered
from shadowtime.services.runtime_distribution.templates.category_sums import t_quantiles
from shadowtime.services.runtime_distribution.templates.predictor import Templates, TemplatesSettings, key_of
from shadowtime.services.runtime_distribution.templates.template import template_of
from shadowtime.shared.messages.envelope import JobSubmitted
from tests.conformance.vectors.vector import vector


def job(user_id: int, executable_number: int, processors: int = 1, requested_time: int = 10_000) -> JobSubmitted:
    return JobSubmitted(
        time=0,
        job_number=1,
        requested_processors=processors,
        requested_time=requested_time,
        user_id=user_id,
        executable_number=executable_number,
    )


def test_the_narrowest_interval_wins() -> None:
    example = vector("p3_template_prediction")
    predictor = Templates(TemplatesSettings(set="mean(key=executable);mean(key=user)", confidence=example["conf"]))
    for run_time in example["catA"]:
        predictor.learn_one(job(7, 1), run_time)
    for run_time in example["catB"]:
        predictor.learn_one(job(8, 2), run_time)
    by_user, by_executable = predictor.predict_one(job(7, 2)), predictor.predict_one(job(9, 2))
    assert by_user is not None
    assert by_executable is not None
    assert by_user.point == example["meanA"]
    assert by_user.interval == pytest.approx(
        (example["meanA"] - example["pi_halfwidth"], example["meanA"] + example["pi_halfwidth"])
    )
    assert by_executable.point == example["meanB"]
    assert by_executable.interval == pytest.approx((0, example["meanB"] + example["pi_halfwidth_B"]))
    deviation, quantile = np.std(example["catA"], ddof=1), t_quantiles(example["conf"], 3)[3]
    assert (deviation, quantile) == pytest.approx((example["sA"], example["t"]))
    assert deviation * quantile / 2 == pytest.approx(example["ci_mean_halfwidth"])


def test_relative_run_times() -> None:
    example = vector("p3_template_prediction")["relative_example"]
    predictor = Templates(TemplatesSettings(set="mean(relative=yes)"))
    for ratio in example["ratios"]:
        predictor.learn_one(job(7, 1, requested_time=1000), round(1000 * ratio))
    prediction = predictor.predict_one(job(7, 1, requested_time=example["estimate"]))
    assert prediction is not None
    assert prediction.point == pytest.approx(example["prediction"], abs=0.01)


def test_ranges_of_processors() -> None:
    example = vector("p3_node_range")
    size = example["n"]
    key = key_of(template_of(f"mean(processors={size})"))
    for processors, named in example["map"].items():
        (number,) = key(remembered(job(1, 1, int(processors)))) or ()
        assert named == f"{number * size + 1}-{(number + 1) * size}"
    for processors, named in example["gibbons"].items():
        number = range_of(int(processors))
        assert named == f"{2 ** (number - 1)}-{2**number - 1}"


def test_conditional_lifetimes() -> None:
    example = vector("p3_downey")
    model, age = (example["beta0"], example["beta1"]), example["age"]
    assert domain(*model, 0.0) == pytest.approx((example["tmin"], example["tmax"]))
    median, mean = conditional_median(*model, age), conditional_mean(*model, age)
    assert (median, mean) == pytest.approx((example["median"], example["average"]))
    assert median is not None
    assert math.log(median / age) / math.log(example["tmax"] / age) == pytest.approx(example["median_check_condCDF"])
    # The density of what is left is 1 / t; mean and median are of the whole run time.
    numeric = quad(lambda t: t / (t * math.log(example["tmax"] / age)), age, example["tmax"])[0]
    assert numeric == pytest.approx(example["average_numeric"])
    assert conditional_median(*model, 0.0) == pytest.approx(example["age0_median"])
    assert conditional_mean(*model, 0.0) == pytest.approx(example["age0_average"])
    assert conditional_median(*model, example["tmax"]) is conditional_mean(*model, example["tmax"]) is None


def test_fit_of_the_logarithmic_distribution() -> None:
    example = vector("p3_downey_fit")
    assert fit(np.log(np.array(example["runtimes"], float)), DowneyMean.omitted) == pytest.approx(
        (example["beta0"], example["beta1"])
    )


def test_weighted_regression() -> None:
    example = vector("p3_gibbons_wls")
    predictor = Gibbons(GibbonsSettings())
    points, weights = [], []
    for each in example["subcategories"]:
        sums = RangeSums()
        for run_time in each["runtimes"]:
            sums.add(RememberedJob(run_time, -1, each["mean_nodes"], 7, -1, 3, -1, -1), 1)
            predictor.learn_one(job(7, 3, each["mean_nodes"]), run_time)
        points.append((sums.processors / sums.count, sums.run_times / sums.count))
        weights.append(1 / sums.variance)
    assert weights == pytest.approx(example["weights"])
    x, y = np.array(points).T
    assert weighted_fit(x, y, np.array(weights), 1) == pytest.approx([example["slope"], example["intercept"]])
    prediction = predictor.predict_one(job(7, 3, processors=8))
    assert prediction is not None
    assert prediction.point == pytest.approx(example["pred_8_nodes"])
