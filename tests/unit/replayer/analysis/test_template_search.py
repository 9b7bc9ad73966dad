"""The searches for templates: which predictions a policy makes, and for which searches a command asks."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from shadowtime.replayer.analysis import template_search
from shadowtime.replayer.analysis.template_search import (
    Happening,
    Search,
    SearchOptions,
    errors_on,
    predictions_made,
    searches_of,
    write_templates,
)
from shadowtime.replayer.options import Purpose
from shadowtime.replayer.simulation.source import submission
from shadowtime.services.runtime_distribution.history import remembered
from shadowtime.services.runtime_distribution.templates.predictor import Templates, TemplatesSettings
from shadowtime.services.runtime_distribution.templates.search_errors import ENDED, PREDICTED, TemplateErrors
from shadowtime.services.runtime_distribution.templates.template import templates_of
from shadowtime.shared.errors import SettingsError, TraceError
from tests.support.small_logs import generated, job, workload_of, write_log

WORKLOAD = workload_of(job(1, 0, processors=4), job(2, 10, processors=4), job(3, 20, processors=4))
"""Three jobs that run one after another: from 0 to 60, 120 and 180."""


AT_SUBMISSIONS = [(0, 0), (0, 10), (1, 0), (0, 20), (1, 0), (2, 0)]
"""The predictions of running and waiting jobs when the three are submitted: row of the job, seconds run."""


@pytest.mark.parametrize(
    ("policy", "purpose", "predictions"),
    [
        ("fcfs", "waits", [AT_SUBMISSIONS, [], [], []]),
        ("lwf", "schedule", [[(0, 0), (1, 0), (1, 0), (2, 0)], [(1, 0), (2, 0)], [(2, 0)], []]),
        ("all-reserve", "schedule", [AT_SUBMISSIONS, [(1, 0), (2, 0)], [(2, 0)], []]),
    ],
)
def test_predictions_that_a_policy_makes(
    policy: str, purpose: Purpose, predictions: list[list[tuple[int, int]]]
) -> None:
    """Each list of predictions is followed by the end of a job that ran for a minute."""
    first, *later = predictions
    expected: list[Happening] = [(PREDICTED, *each) for each in first]
    for row, after in enumerate(later):
        expected += [(ENDED, row, 60), *((PREDICTED, *each) for each in after)]
    assert predictions_made(WORKLOAD, policy, purpose) == expected


@pytest.mark.parametrize("text", ["mean(key=user,running=64);mean", "mean(key=user,relative=yes,running=256)"])
def test_errors_are_those_of_the_predictor_given_the_time_run(text: str) -> None:
    workload, keys = generated(120), TemplatesSettings(set=text, history=50)
    made = predictions_made(workload, "all-reserve", "schedule")
    jobs = [submission(each) for each in workload]
    run_times = {row: run_time for kind, row, run_time in made if kind == ENDED}
    predictor, expected = Templates(keys), list[float]()
    for kind, row, elapsed in made:
        if kind == ENDED:
            predictor.learn_one(jobs[row], elapsed)
        else:
            prediction = predictor.predict_one(jobs[row], elapsed)
            expected.append(float(jobs[row].requested_time or 0) if prediction is None else prediction.point)
    errors = TemplateErrors([remembered(each, run_times[row]) for row, each in enumerate(jobs)], made, keys)
    templates = templates_of(text)
    assert errors.points([errors.estimates(each) for each in templates]).tolist() == expected
    off = [abs(point - run_times[row]) for point, (_, row, _) in zip(expected, _predicted(made), strict=True)]
    mean = sum(run_times.values()) / len(run_times)
    assert errors([templates]) == [pytest.approx(sum(off) / len(off) / mean)]
    assert any(elapsed > 64 for _, _, elapsed in _predicted(made))


@pytest.mark.parametrize(
    ("policy", "purpose", "running"),
    [("all-reserve", "waits", True), ("lwf", "waits", True), ("lwf", "schedule", False)],
)
def test_whether_running_jobs_are_predicted(policy: str, purpose: Purpose, running: bool) -> None:
    workload = generated(120)
    with ThreadPoolExecutor(1) as pool:
        made = predictions_made(workload, policy, purpose)
        assert errors_on(workload, pool, TemplatesSettings(), made).of_running == running


def _predicted(made: Sequence[Happening]) -> list[Happening]:
    return [each for each in made if each[0] == PREDICTED]


def test_of_many_predictions_an_even_share_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    workload = generated(120)
    whole = predictions_made(workload, "lwf", "waits")
    monkeypatch.setattr(template_search, "MAX_PREDICTIONS", 50)
    some = predictions_made(workload, "lwf", "waits")
    assert [each for each in some if each[0] == ENDED] == [each for each in whole if each[0] == ENDED]
    assert 25 <= len(_predicted(some)) <= 240
    assert any(_predicted(some) == _predicted(whole)[:: 2**power] for power in range(1, 12))


def test_many_predictions_before_the_first_end_are_something_to_learn_from() -> None:
    """A log was refused if its first hundred predictions, of which a submission makes many, came before an end."""
    workload = generated(120)
    early: list[Happening] = [(PREDICTED, row, 0) for row in range(15) for _ in range(10)]
    later: list[Happening] = [(ENDED, 0, 60), (PREDICTED, 20, 0)]
    with ThreadPoolExecutor(1) as pool:
        errors_on(workload, pool, TemplatesSettings(), [*early, *later])
        for nothing in (early, [*early, later[0]]):
            with pytest.raises(TraceError, match="nothing to learn from"):
                errors_on(workload, pool, TemplatesSettings(), nothing)


def test_searches() -> None:
    assert [each.file for each in searches_of(["a/x.swf.gz@8", "y.swf"], ["fcfs", "lwf"], [])] == [
        f"{log}-{which}.templates" for log in "xy" for which in ("fcfs-waits", "lwf-waits", "lwf-schedule")
    ]
    assert searches_of(["x.swf"], [], []) == [Search("x.swf")]
    assert searches_of(["x"], ["lwf"], ["schedule"]) == [Search("x", "lwf", "schedule")]


@pytest.mark.parametrize(
    ("policies", "purposes", "words"),
    [
        (["lwf"], ["nap"], "^--for nap: expected waits or schedule$"),
        ([], ["waits"], "^--for needs --policy"),
        (["fcfs"], ["schedule"], "^--policy fcfs --for schedule: fcfs decides without predictions"),
        (["lwff"], [], "unknown policy 'lwff'"),
        (["lwf:plan=requested"], [], "^--policy lwf:plan=requested: expected a name without keys$"),
    ],
)
def test_a_search_that_there_is_not_is_named(policies: list[str], purposes: list[str], words: str) -> None:
    with pytest.raises(SettingsError, match=words):
        searches_of(["x.swf"], policies, purposes)


def test_no_set_is_written_over_its_log(tmp_path: Path) -> None:
    log = write_log(tmp_path, job(1))
    with pytest.raises(SettingsError, match="is an input; write the result to another file"):
        write_templates(searches_of([str(log)], [], []), log, SearchOptions())


def test_several_searches_need_a_folder_and_different_names(tmp_path: Path) -> None:
    (file := tmp_path / "file").write_text("")
    several = searches_of([str(write_log(tmp_path, job(1)))], ["lwf"], [])
    with pytest.raises(SettingsError, match=r"2 searches need a folder, but this is a file$"):
        write_templates(several, file, SearchOptions())
    with pytest.raises(SettingsError, match=r"^two results have the same path: "):
        write_templates([*several, *several], tmp_path, SearchOptions())
