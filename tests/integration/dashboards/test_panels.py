"""Panels asked of a real VictoriaMetrics that was filled without a stack: what a person reads off them is true."""

import re
import statistics
from typing import Any

import pytest

from shadowtime.shared.messages import describe_drift
from tests.support.dashboard_queries import (
    Asked,
    answered,
    asked,
    at_first,
    boards,
    seen_at_once,
    values,
    variables,
)
from tests.support.dashboard_store import BEST, EASY, EVERY, FOLLOWED, REPLAYED, RESULTS, Filled, choice
from tests.support.metric_store import write
from tests.support.server_control import flush

NEEDS_MORE = {
    "Who decides",
    "Hidden state",
    "Candidates by probability of a delay",
    "Probability of a delay: stated and observed",
    "Calibration error",
    "Brier score",
    "Risk of the starts that were risked (over $window)",
}
"""Panels of `tuned` or `hmm`, or of more candidates than so few jobs have."""


def drawn(filled: Filled, name: str, chosen: dict[str, str], at: tuple[int, int]) -> dict[str, list[Any]]:
    """Return the series of each panel, by its title."""
    found: dict[str, list[Any]] = {}
    for query in asked():
        if query.board == name:
            found.setdefault(query.panel, []).extend(answered(filled.store, query, chosen, *at))
    return found


def query_of(name: str, panel: str, legend: str | None = None) -> Asked:
    (query,) = [each for each in asked() if (each.board, each.panel) == (name, panel) and legend in (None, each.legend)]
    return query


def said_by(legend: str, labels: dict[str, str]) -> str:
    """Return a series' name, as Grafana writes it."""
    return re.sub(r"\{\{(\w+)\}\}", lambda name: labels[name[1]], legend)


@pytest.mark.parametrize("name", boards())
def test_no_panel_outside_collapsed_rows_is_empty(filled: Filled, name: str) -> None:
    at = filled.log if name in RESULTS else filled.today
    wanted = {"policy": BEST} if name in RESULTS else {}
    chosen = choice(filled, name, at, **wanted) if name != "policies" else choice(filled, name, at)
    series = drawn(filled, name, chosen, at)
    empty = [panel["title"] for panel in seen_at_once(boards()[name]) if not series.get(panel["title"])]
    assert set(empty) <= NEEDS_MORE


@pytest.mark.parametrize("name", RESULTS)
def test_a_dashboard_opened_from_the_menu_offers_every_experiment_whatever_its_time_range(
    filled: Filled, name: str
) -> None:
    """Before, `label_values` offered only what had samples in the range, which was in January 2024."""
    board = boards()[name]
    for at in (filled.today, filled.log, (0, 86_400)):
        offered = values(filled.store, variables(board)["experiment"], {}, *at)
        assert offered[:2] == [REPLAYED, FOLLOWED]
        chosen = choice(filled, name, at, experiment=FOLLOWED)
        assert (chosen["cluster"], chosen["end"]) == ("today", "now")


def test_easy_with_keys_is_compared_with_where_there_is_no_plain_easy(filled: Filled) -> None:
    """Before, `easy:forecast=yes` was not taken for the baseline, and a table was "Against wfp"."""
    variable = variables(boards()["policies"])["baseline"]
    made = 'experiment="2019 keys",cluster="keys"'
    for policy in ("best", "easy-sjbf", "easy:forecast=yes", "wfp"):
        write(filled.store, f'shadowtime_run_info{{{made},policy="{policy}"}} 1 1570000000000')
    flush(filled.store)
    offered = values(filled.store, variable, {"experiment": "2019 keys", "cluster": "keys"}, *filled.today)
    assert sorted(offered[1:]) == ["best", "easy-sjbf", "wfp"]
    assert at_first(variable, offered) == offered[0] == "easy:forecast=yes"


def test_every_way_to_a_screen_leads_to_the_same_time_range(filled: Filled) -> None:
    """The range is that of all runs of the experiment. Before, a row's link cut the runs that lasted longer."""
    ends = {choice(filled, name, filled.today, policy=policy)["end"] for name in RESULTS for policy in (EASY, BEST)}
    home = choice(filled, "home", filled.today)
    ends |= {home["end"]}
    rows = answered(filled.store, query_of("home", "What was run, newest first", "range"), {}, *filled.today)
    ends |= {row["metric"]["end"] for row in rows if row["metric"]["experiment"] == REPLAYED}
    (end,) = ends
    assert filled.log[1] - 3_600 <= int(end) / 1_000
    assert {row["metric"]["end"] for row in rows if row["metric"]["experiment"] == FOLLOWED} == {"now"}
    assert (home["experiment"], home["cluster"]) == (REPLAYED, "bundled")


def test_jobs_that_end_after_the_range_are_told_of(filled: Filled) -> None:
    start, end = filled.log
    query = query_of("policies", "Against $baseline", "end later")
    chosen = choice(filled, "policies", filled.log)
    assert answered(filled.store, query, chosen, start, end) == []
    cut = answered(filled.store, query, chosen, start, (start + end) // 2)
    ended = answered(
        filled.store, query_of("policies", "How jobs fared", "jobs ended"), chosen, start, (start + end) // 2
    )
    total = {row["metric"]["policy"]: float(row["value"][1]) for row in ended}
    for row in cut:
        total[row["metric"]["policy"]] += float(row["value"][1])
    assert set(total.values()) == {250}


def test_the_sentence_has_the_figures_of_the_scores(filled: Filled) -> None:
    query = query_of("policies", "In words")
    chosen = choice(filled, "policies", filled.log)
    series = answered(filled.store, query, chosen, *filled.log)
    assert [row["metric"]["policy"] for row in series] == sorted(
        set(filled.scores) - {EASY}, key=lambda name: filled.scores[name].policy.mean_wait
    ), "the best comes first"
    base = filled.scores[EASY].policy
    for row in series:
        labels, other = row["metric"], filled.scores[row["metric"]["policy"]].policy
        change = other.mean_wait / base.mean_wait - 1
        assert int(labels["percent"]) == pytest.approx(abs(100 * change), abs=0.501)
        assert labels["than"] == ("shorter" if change < 0 else "longer")
        assert (labels["interval"], labels["chance"]) == ("unknown", "too few batches to know chance")
        assert float(labels["hours"]) == pytest.approx(abs(other.max_wait - base.max_wait) / 3_600, abs=0.0501)
        assert set(re.findall(r"\{\{(\w+)\}\}", query.legend)) == set(labels)


def test_an_interval_is_that_of_students_t_and_is_left_out_for_less_than_three_batches(filled: Filled) -> None:
    """Waits per batch of 4, 9, 2, 7 and 8 h more than under the baseline, each of 10 jobs."""
    start, day = 1_700_006_400, 86_400
    runs = {"easy": (0, 0, 0, 0, 0), "other": (4, 9, 2, 7, 8)}
    lines, experiment = [], "2023 batches"
    for policy, more in runs.items():
        labels = f'experiment="{experiment}",cluster="made",policy="{policy}",run="made/{policy}"'
        waits = [0, *(sum(more[: at + 1]) * 3_600 for at in range(len(more)))]
        for at, wait in enumerate(waits):
            for metric, value in (
                ("run_info", 1),
                ("jobs_total", 10 * at),
                ("wait_seconds_total", 1e6 * at + wait),
                ("mean_wait_seconds", (1e6 * at + wait) / max(10 * at, 1)),
                ("max_wait_seconds", 7_200 if policy == "easy" else 3_600),
            ):
                lines.append(f"shadowtime_{metric}{{{labels}}} {value} {start + at * day}000")
            for metric, more_labels in (("waits_total", 'of="all jobs",le="+Inf"'), ("queued_jobs", 'queue="all"')):
                lines.append(f"shadowtime_{metric}{{{labels},{more_labels}}} {10 * at} {start + at * day}000")
    write(filled.store, "\n".join(lines))
    flush(filled.store)
    chosen = choice(filled, "policies", (start, start + 5 * day), experiment=experiment) | {"batch": "1d"}
    half = query_of("policies", "Against $baseline", "wait 95 % ±")
    spread = statistics.stdev([3_600 * more for more in runs["other"]]) * 5**0.5 / 50
    series = answered(filled.store, half, chosen, start, start + 5 * day)
    width = {row["metric"]["policy"]: 3_600 * float(row["value"][1]) for row in series}
    assert width["other"] == pytest.approx(2.776 * spread, rel=0.02)
    assert not answered(filled.store, half, chosen | {"batch": "7d"}, start, start + 5 * day)
    (row,) = answered(filled.store, query_of("policies", "In words"), chosen, start, start + 5 * day)
    change = 100 * (30 * 3_600 / 50) / (1e6 / 10)
    assert row["metric"]["percent"] == str(round(change))
    low, high = (round(abs(change + sign * 100 * width["other"] / 1e5)) for sign in (-1, 1))
    assert row["metric"]["interval"] == f"{low} % longer to {high} % longer"
    assert row["metric"]["chance"] == "more than chance"
    assert (row["metric"]["hours"], row["metric"]["longest"]) == ("1", "shorter")


def test_the_twin_says_in_words_which_shadow_is_better_and_whether_that_is_known(filled: Filled) -> None:
    query = query_of("twin", "In words")
    series = answered(filled.store, query, choice(filled, "twin", filled.today), *filled.today)
    said = [said_by(query.legend, row["metric"]) for row in series]
    assert said == [
        "today/shadow/best: mean wait 12 % shorter than really (95 %: 20 % shorter to 3 % longer); not known to "
        "be real yet; 1234 jobs compared.",
        "today/shadow/easy:forecast=yes: mean wait 30 % longer than really (95 %: 20 % longer to 40 % longer); "
        "the difference is real; 1234 jobs compared.",
    ]


def test_who_is_worse_off_comes_first(filled: Filled) -> None:
    series = answered(
        filled.store, query_of("policies", "Who is worse off?"), choice(filled, "policies", filled.log), *filled.log
    )
    changes = [float(row["value"][1]) for row in series]
    assert changes == sorted(changes, reverse=True)
    assert EASY not in {row["metric"]["policy"] for row in series}


def test_a_machine_that_never_changes_has_no_marks_however_long_its_log_is_silent(filled: Filled) -> None:
    """Before, each gap in the samples was a mark: over a hundred in a log of 128 processors throughout."""
    query = query_of("scoreboard", "Capacity")
    chosen = choice(filled, "scoreboard", filled.log)
    assert answered(filled.store, query, chosen, *filled.log) == []
    run = 'experiment="2020 gaps",cluster="gaps",policy="easy",run="gaps/easy"'
    start = 1_600_000_000 // EVERY * EVERY
    sizes = {0: 128, 1: 128, 60: 128, 61: 128, 130: 96, 131: 96, 200: 96}
    write(
        filled.store,
        "\n".join(
            f"{metric}{{{run}}} {value} {start + EVERY * at}000"
            for at, size in sizes.items()
            for metric, value in (("shadowtime_processors", size), ("shadowtime_run_info", 1))
        ),
    )
    flush(filled.store)
    chosen |= {"experiment": "2020 gaps", "cluster": "gaps"}
    series = answered(filled.store, query, chosen, start, start + 220 * EVERY)
    changed = start + 130 * EVERY
    ((at, _),) = series[0]["values"]
    assert changed <= at <= changed + 2 * EVERY


def test_only_predictions_that_failed_are_listed_with_their_times(filled: Filled) -> None:
    """Before, each watched prediction had a row: "lasts: No", and the first sample as the time since when it failed."""
    run = 'experiment="2021 drift",cluster="drift",policy="easy",run="drift/easy"'
    start = 1_610_000_000 // EVERY * EVERY
    states = {"twice": (0, 0, 0, 0), "shorter": (0, 1, 1, 0), "longer": (0, 0, 1, 1), "half": (1, 1, 1, 1)}
    write(
        filled.store,
        "\n".join(
            f'shadowtime_predictions_drifting{{{run},of="run_time",what="{what}",whose="cluster"}} {value} '
            f"{start + EVERY * at}000"
            for what, values in states.items()
            for at, value in enumerate(values)
        ),
    )
    flush(filled.store)
    chosen = {"experiment": "2021 drift", "cluster": "drift", "policy": "easy"}
    listed = {}
    for legend in ("lasts", "since", "until"):
        query = query_of("drift", "Predictions that do not hold, and since when", legend)
        for row in answered(filled.store, query, chosen, start - EVERY, start + 3 * EVERY):
            listed[row["metric"]["failure"], legend] = int(float(row["value"][1]))
    times = {name: (start + at * EVERY) * 1_000 for name, at in (("first", 0), ("then", 2), ("over", 3))}
    shorter, half, longer = (describe_drift("run_time", what) for what in ("shorter", "half", "longer"))
    assert listed == {
        (shorter, "lasts"): 0, (shorter, "until"): times["over"],
        (longer, "lasts"): 1, (longer, "since"): times["then"],
        (half, "lasts"): 1, (half, "since"): times["first"],
    }  # fmt: skip


def test_reasons_for_waits_are_means_over_all_policies(filled: Filled) -> None:
    """Runs that have ended, or have no sample at that moment, were left out of the divisor, not counted as 0."""
    chosen = choice(filled, "scoreboard", filled.log)
    reasons, waiting = (
        query_of("scoreboard", name) for name in ("Why jobs wait (mean of the policies)", "Jobs waiting")
    )
    of_policy = answered(filled.store, waiting, chosen, *filled.log)
    peak = sum(max(float(value) for _, value in series["values"]) for series in of_policy)
    summed: dict[float, float] = {}
    for series in answered(filled.store, reasons, chosen, *filled.log):
        for time, value in series["values"]:
            summed[time] = summed.get(time, 0.0) + float(value)
    assert len(of_policy) > 1
    assert 0 < max(summed.values()) <= peak / len(of_policy)


def test_a_cluster_runs_now_if_it_is_followed(filled: Filled) -> None:
    rows = answered(filled.store, query_of("home", "Running now", "busy"), {}, *filled.today)
    assert {row["metric"]["cluster"] for row in rows} == {"today"}


def test_shares_of_jobs_that_waited_at_most_rise_with_the_limit(filled: Filled) -> None:
    panel = next(each for each in asked() if each.panel.startswith("Share of $jobs"))
    series = answered(filled.store, panel, choice(filled, "policies", filled.log, policy=BEST), *filled.log)
    shares = {int(row["metric"]["le"]): float(row["value"][1]) for row in series}
    ordered = [shares[limit] for limit in sorted(shares)]
    assert len(ordered) == 8
    assert ordered == sorted(ordered)
    assert 0 <= ordered[0] <= ordered[-1] <= 1
