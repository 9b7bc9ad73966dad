"""What a report says first."""

import re
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.comparison.document import as_json, baseline_of, is_worse
from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.replayer.comparison.run_record import EndedJobs, RunRecord
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.report.affected_classes import whom_table
from shadowtime.replayer.report.report import page
from shadowtime.replayer.report.statistics import paired
from shadowtime.replayer.report.verdict import limits, verdict
from shadowtime.services.catalogue import canonical, configure, spelled_out
from tests.support.recorded_runs import compared, recorded, replayed
from tests.support.small_logs import generated, job, plan_of, workload_of


def document(**figures: tuple[float, float, int]) -> dict[str, Any]:
    """Return mean bounded slowdown, mean wait and longest wait of policies, as `--json` has them."""
    keys = ("mean_bounded_slowdown", "mean_wait", "max_wait")
    rows = [{"policy": name, **dict(zip(keys, values, strict=True))} for name, values in figures.items()]
    return {"settings": {"obeyed": True, "seed": 0, "baseline": baseline_of(list(figures))}, "policies": rows}


def said(**figures: tuple[float, float, int]) -> str:
    """Return the verdict on one line."""
    return verdict(document(**figures), []).replace("\n", " ")


def test_two_sentences_name_the_best_and_what_it_costs() -> None:
    assert said(fcfs=(99, 9, 9), easy=(90.0, 7200.0, 36000), lwf=(47.0, 3600.0, 90000), wfp=(54.5, 1, 9)) == (
        "lwf had the lowest mean bounded slowdown, 47.00: 43.00 less than easy, and 7.50 less than wfp, which was "
        "next. Compared with easy, jobs under lwf waited 1.0 h less on average; the longest wait was 25.0 h, not "
        "10.0 h."
    )


def test_the_baseline_is_compared_with_the_next_where_nothing_beats_it() -> None:
    assert said(easy=(9.0, 90.0, 3600), fcfs=(9.0, 90.0, 3600)) == (
        "easy had the lowest mean bounded slowdown, 9.00, but fcfs (the same) cannot be told apart from it. "
        "Neither their mean waits nor their longest waits (easy 1.0 h, fcfs 1.0 h) tell them apart. "
        "Compared with fcfs, jobs under easy waited as long on average; the longest wait was 1.0 h, as under fcfs."
    )


def test_a_sentence_names_few_of_many_policies() -> None:
    told = said(**{f"p{number}": (9.0, 90.0, 3600 + number) for number in range(9)}, easy=(10.0, 90.0, 3600))
    assert told.startswith(
        "p0 had the lowest mean bounded slowdown, 9.00, but p1 (the same), p2 (the same), p3 (the same), p4 (the same) "
        "and 4 others cannot be told apart from it. The slowdown of p0 is 1.00 less than easy. The longest wait "
        "decides: it is the shortest under p0 (p0 1.0 h, p1 1.0 h, p2 1.0 h, p3 1.0 h, 5 others)."
    )


def test_one_policy_is_compared_with_nothing() -> None:
    assert "No other policy was replayed" in said(easy=(9.0, 90.0, 3600))


def test_how_sure_it_is_comes_from_the_same_jobs() -> None:
    told, records = compared()
    text = verdict(told, records)
    assert text.count("95 % interval") + text.count("too few independent jobs to say") >= 2
    by_slowdown = sorted(told["policies"], key=lambda row: row["mean_bounded_slowdown"])
    assert text.startswith(f"{by_slowdown[0]['policy']} had the lowest mean bounded slowdown, ")
    shown = page([told], None, [records]).replace("&#x27;", "'")
    assert all(f"<p>{line}</p>" in shown for line in text.splitlines())


def faring(shorts: int, longs: int) -> tuple[dict[str, Any], list[RunRecord]]:
    """Return a comparison of `easy`, under which all wait 1,000 s, with `other`, under which short jobs and long do."""
    jobs = [job(number, 600 * number, requested_time=100 + 9_000 * (number % 2)) for number in range(400)]
    workload = workload_of(*jobs, processors=4)
    records = []
    for policy, waits in (("easy", (1_000, 1_000)), ("other", (shorts, longs))):
        record = RunRecord(plan_of(workload)._replace(label=policy))
        numbers, submitted = (workload.columns[name] for name in ("job_number", "submit_time"))
        started = submitted + np.where(numbers % 2, waits[1], waits[0]) + numbers // 7 % 2  # no two blocks quite alike
        ones = np.ones_like(numbers)
        record.jobs = EndedJobs(record.plan, np.column_stack([numbers, submitted, started, started + 60, ones, ones]))
        records.append(record)
    means = [float(record.jobs.wait.mean()) for record in records]
    rows = {"easy": (9.0, means[0], 1_001), "other": (8.0, means[1], max(shorts, longs) + 1)}
    return document(**rows), records


def test_it_says_for_whom_it_is_worse() -> None:
    told = verdict(*faring(100, 1_900))
    assert "it is worse for short narrow jobs, which waited 15.0 min longer (95 % interval" in told
    assert "long narrow jobs" not in told
    assert "50 % of all jobs started later" in told


def test_policies_that_cannot_be_told_apart_are_decided_by_the_next_column() -> None:
    """F13: the policy with 0.13 less slowdown, which may be chance, was named, though all else spoke for the other."""
    told = verdict(*faring(100, 1_900))
    assert told.startswith(
        "other had the lowest mean bounded slowdown, 8.00, but easy (1.00 more, which may be chance: "
    )
    assert (
        "cannot be told apart from it. The longest wait decides: it is the shortest under easy (easy 16.7 min, other "
        "31.7 min)." in told
    )
    assert "Compared with other, " in told


def test_the_mean_wait_decides_before_the_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "shadowtime.replayer.report.verdict._may_be_chance", lambda runs, first, other, figure: figure == "slowdown"
    )
    told = said(best=(9.0, 600.0, 36000), easy=(9.5, 300.0, 90000))
    assert (
        "The mean wait decides: it is the shortest under easy (easy 5.0 min, best 10.0 min). Compared with best" in told
    )


def test_the_worst_off_user_is_in_the_verdict() -> None:
    told, records = faring(100, 900)
    for record in records:
        record.jobs.user_id = np.arange(400) % 2 + 7
    assert "No user with 20 jobs or more waited longer by more than a minute on average" in verdict(told, records)
    told, records = faring(100, 1_500)
    for record in records:
        record.jobs.user_id = np.arange(400) % 2 + 7
    text = verdict(told, records)
    assert (
        "Of the users with 20 jobs or more, 50.0 % waited longer by more than a minute on average, user 8 most: 8.3"
        in text
    )
    for record in records:
        record.jobs.user_id = np.arange(400)  # one job each: nothing is said of all users
    assert "No user has 20 jobs" in verdict(told, records)


def test_a_small_share_of_later_jobs_is_not_0_percent() -> None:
    told, records = faring(100, 900)
    records[1].jobs.start_time[records[1].jobs.job_number == 7] += 200
    assert "and 0.25 % of all jobs started later" in verdict(told, records)


def test_a_predictor_that_is_worse_than_the_request_is_called_so() -> None:
    told = document(easy=(9.0, 90.0, 3600), fcfs=(19.0, 90.0, 3600))
    told["requests_as_run_times"] = {"jobs": 5, "mean_absolute_error": 4_680.0}
    told["run_time_predictions"] = [
        {"predictor": "empirical(window=60)", "predictions": 5, "jobs": 5, "mean_absolute_error": 5_760.0},
        {"predictor": "experts", "predictions": 5, "jobs": 5, "mean_absolute_error": 360.0},
    ]
    text = verdict(told, [])
    assert "\nPredictor empirical is worse than the requests: 1.6 h off on average, requests 1.3 h. A policy" in text
    assert "experts" not in text


@pytest.mark.parametrize(
    ("requests", "end"),
    [
        ({"jobs": 9, "mean_absolute_error": 60.0}, "No predictor beat the requests, 1.0 min off on average"),
        ({"jobs": 9, "mean_absolute_error": 99.0}, "1.5 min off on average, where requests are 1.6 min off."),
        ({"jobs": 2, "mean_absolute_error": 60.0}, "; only 2 of 9 jobs had requests, which are 1.0 min off."),
        ({"jobs": 0, "mean_absolute_error": None}, "; no job had a request."),
    ],
)
def test_errors_of_other_jobs_are_not_compared(requests: dict[str, Any], end: str) -> None:
    """A predictor is scored on jobs without a request, too. Requests of no jobs have no error, not one of 0 s."""
    row = {"predictor": "last-two", "predictions": 9, "jobs": 9, "mean_absolute_error": 90.0}
    told: dict[str, Any] = {"settings": {"obeyed": False}, "policies": [], "wait_bounds": []}
    told |= {"requests_as_run_times": requests, "run_time_predictions": [row]}
    assert end in verdict(told, [])
    assert is_worse(row, requests) == end.startswith("No predictor")


def test_it_says_so_where_none_is_worse_for_sure() -> None:
    told = verdict(*faring(100, 900))
    assert "no shape of job surely waited longer" in told
    assert "started later" not in told


def test_shapes_are_compared_in_a_table() -> None:
    _, records = faring(100, 1_900)
    table = whom_table(records, 0)
    assert [float(value) for value in re.findall(r'<data value="(.*?)">', table)] == [-900.0, 900.0]
    assert "short narrow (200 jobs)" in table


def test_a_recorded_log_tells_of_predictors_and_bounds() -> None:
    told, records = recorded(prepare(read_swf(BUNDLED), limit=800))
    text = verdict(told, records)
    assert "requests" in text
    assert "bounds on waits" in text
    assert "following the decisions" in limits(told)


@pytest.mark.parametrize(("requests", "told"), [("as-logged", "waits."), ("actual", "nobody made (actual).")])
def test_what_it_does_not_show(requests: str, told: str) -> None:
    settings = {"obeyed": True, "seed": 3, "requests": requests, "load": "2"}
    text = limits({"settings": settings})
    assert "at 2 times the load" in text
    assert text.startswith("It does not show ")
    assert "(seed 3)" in text
    assert text.count(". ") == 0
    assert told.removesuffix("waits.") in text


def spelled(spec: str) -> str:
    return spec.replace(",", ", ").replace("(", "(<wbr>")


def test_the_report_spells_out_once_what_its_policies_were() -> None:
    typed = ["fcfs", "best", "conservative:queue=BF,speculate=0.2", "conservative:queue=BF,speculate=0.5"]
    told, records = replayed([plan_of(generated(60), policy)._replace(label=policy) for policy in typed])
    html = page([told], None, [records])
    table = html.partition('aria-label="What the names stand for"')[2].partition("</table>")[0]
    assert re.findall('<th scope="row">(.*?)</th>', table) == ["fcfs", "best", "conservative 0.2", "conservative 0.5"]
    (best,) = (row["configuration"] for row in told["policies"] if row["policy"] == "best")
    assert configure(best) == configure("best")
    assert spelled(best) in table
    for row in told["policies"]:
        assert html.count(spelled(row["configuration"])) == 1
    assert not any(policy in html for policy in typed[2:])
    assert "conservative 0.5 against conservative 0.2" in html


def test_what_predicted_beside_the_policies_is_spelled_out_too() -> None:
    plan = plan_of(generated(60), "easy:forecast=yes,plan=requested,runtime=last-two")
    plan = plan._replace(
        label="easy:forecast=yes,plan=requested,runtime=last-two",
        wait_bound=canonical("wait-bound", "bmbp:publish=plain"),
    )
    beside = carry_out(plan)
    html = page([as_json([carry_out(plan_of(generated(60)))], predicted=beside)], None)
    assert plan.label not in html
    assert html.count(spelled(str(spelled_out(plan.configuration)))) == 1
    assert html.count("easy…") >= 3


def test_a_recorded_log_spells_out_its_predictors_and_schemes() -> None:
    told, records = recorded(prepare(read_swf(BUNDLED), limit=300))
    html = page([told], None, [records])
    for spec in (told["run_time_predictions"][0]["predictor"], told["walltime_adjustments"][0]["scheme"]):
        assert "(" in spec
        assert spec not in html
        assert html.count(spelled(spec)) == 1


def test_an_interval_says_nothing_that_is_impossible() -> None:
    """The mean wait of easy was 2.7 h, and the interval of the difference began at -8.3 h."""
    workload = workload_of(*(job(number, 600 * number) for number in range(400)), processors=4)
    records = []
    for scale in (1, 0):
        record = RunRecord(plan_of(workload))
        numbers, submitted = (workload.columns[name] for name in ("job_number", "submit_time"))
        started = submitted + scale * (numbers % 3 + 9_000 * (numbers < 40) + 5_000 * (numbers > 350))
        ones = np.ones_like(numbers)
        record.jobs = EndedJobs(record.plan, np.column_stack([numbers, submitted, started, started + 60, ones, ones]))
        records.append(record)
    easy, none = (record.jobs for record in records)
    difference = paired(easy, none, 7)
    assert difference.wait.low == difference.wait.mean == -easy.wait.mean()
    assert difference.wait.high == 0
    assert difference.slowdown.low == pytest.approx(difference.slowdown.mean)
