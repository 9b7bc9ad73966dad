"""The report: one page that needs nothing else."""

import hashlib
import re
import time
from dataclasses import replace
from html.parser import HTMLParser
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from shadowtime.replayer.comparison.document import as_json
from shadowtime.replayer.comparison.plan import carry_out
from shadowtime.replayer.comparison.records import DecisionLog
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.report.figures import frontier
from shadowtime.replayer.report.prediction_figures import calibration
from shadowtime.replayer.report.report import page
from shadowtime.replayer.report.statistics import months, slowdowns
from shadowtime.replayer.report.tables import COLUMNS, WASTE, at_a_glance
from shadowtime.replayer.report.tables import comparison as scores_table
from shadowtime.services.catalogue import canonical
from shadowtime.shared.bounds import MAX_TIME
from shadowtime.shared.formatting import DAY, percent
from tests.support.recorded_runs import POLICIES, compared, recorded, replayed
from tests.support.report_page import tables
from tests.support.small_logs import generated, job, plan_of, trace_of, workload_of

VOID = {"meta", "wbr", "br", "img", "link", "input", "hr"}


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def document(cluster: str = "kth") -> dict[str, Any]:
    workload = generated()
    plans = [plan_of(workload, policy)._replace(cluster=cluster) for policy in ("fcfs", "best")]
    return as_json([carry_out(plan) for plan in plans])


def parsed(html: str) -> Balanced:
    parser = Balanced()
    parser.feed(html)
    parser.close()
    assert parser.open == []
    assert len(set(parser.ids)) == len(parser.ids)
    return parser


@pytest.fixture(scope="module")
def comparison() -> tuple[dict[str, Any], str]:
    told, records = compared()
    return told, page([told], "shadowtime replay --policy fcfs", [records])


@pytest.fixture(scope="module")
def recording() -> tuple[dict[str, Any], str]:
    workload = prepare(read_swf(BUNDLED), limit=800)
    told, records = recorded(workload)
    return told, page([told], "shadowtime replay --mode recorded", [records])


def test_page_is_whole_and_needs_no_network(comparison: tuple[dict[str, Any], str]) -> None:
    _, html = comparison
    parser = parsed(html)
    assert [link for link in parser.links if not link.startswith("#")] == []
    assert {link.removeprefix("#") for link in parser.links} <= set(parser.ids)
    assert not re.search(r"https?://|@import|url\(|<script", html)
    assert "300 jobs on 16 processors" in parser.text
    assert "shadowtime replay --policy fcfs" in parser.text


def test_the_table_agrees_with_json(comparison: tuple[dict[str, Any], str]) -> None:
    told, html = comparison
    rows = tables(html)["Scores of each policy"]
    for row in told["policies"]:
        assert [float(value) for value in rows[row["policy"]]] == [row[key] for key in COLUMNS]


def test_waits_that_differ_look_different() -> None:
    rows = [
        {
            "policy": name,
            "configuration": name,
            "runtime": "requested",
            "adjustment": "none",
            "killed": 0,
            **dict.fromkeys(COLUMNS, value),
        }
        for name, value in (("a", 5760.0), ("b", 5725.0))
    ]
    shown = scores_table(rows)
    assert "mean wait, h" in shown
    assert ">1.60<" in shown
    assert '<strong><data value="5725.0">1.59</data></strong>' in shown


def test_the_price_of_trials_has_columns_where_there_is_one(comparison: tuple[dict[str, Any], str]) -> None:
    told, records = replayed([plan_of(generated(60), policy) for policy in ("easy", "conservative:speculate=0.2")])
    html = page([told], None, [records])
    rows = list(tables(html)["Scores of each policy"].values())
    assert told["policies"][1]["killed"] > 0
    for row, values in zip(told["policies"], rows, strict=True):
        assert [float(value) for value in values] == [row[key] for key in (*COLUMNS, *WASTE)]
    assert all(name in html and name not in comparison[1] for name in ("runs in vain", "work wasted"))


def test_what_is_worked_out_from_the_schedule_agrees_with_json(comparison: tuple[dict[str, Any], str]) -> None:
    told, html = comparison
    found = tables(html)
    by_policy = {row["policy"]: row for row in told["policies"]}
    for policy, values in found["Quantiles of the waits"].items():
        assert int(values[-1]) == by_policy[policy]["max_wait"]
    for name, key in (("wait", "mean_wait"), ("slowdown", "mean_bounded_slowdown")):
        counts = [
            int(count)
            for count in re.findall(
                r"<th scope=\"row\">[^<]*</th><td>([\d,]+)</td>", section(html, f"Mean {name} by month")
            )
        ]
        assert sum(counts) == told["jobs"]
        for place, policy in enumerate(POLICIES):
            means = [float(values[place]) for values in found[f"Mean {name} by month"].values()]
            assert np.dot(means, counts) / told["jobs"] == pytest.approx(by_policy[policy][key])
    counts = [int(count) for count in re.findall(r"\((\d+) jobs\)", section(html, "Slowdown by shape"))]
    assert sum(counts) == told["jobs"]
    for policy, values in found["Slowdown by shape"].items():
        mean = np.dot([float(value) for value in values], [count for count in counts if count]) / told["jobs"]
        assert mean == pytest.approx(by_policy[policy]["mean_bounded_slowdown"])
    pairs = found["Differences, job by job"]
    baseline_first = sorted(POLICIES, key=lambda each: each != "easy")
    assert "The baseline is easy. " in html
    assert list(pairs) == [f"{b} against {a}" for a, b in combinations(baseline_first, 2)]
    for (a, b), values in zip(combinations(baseline_first, 2), pairs.values(), strict=True):
        wait, slowdown, sooner, later, users_worse, worst_user = map(float, values)
        assert wait == pytest.approx(by_policy[b]["mean_wait"] - by_policy[a]["mean_wait"])
        key = "mean_bounded_slowdown"
        assert slowdown == pytest.approx(by_policy[b][key] - by_policy[a][key])
        assert 0 <= sooner + later <= 1
        assert 0 <= users_worse <= 1
        assert worst_user >= wait


def section(html: str, label: str) -> str:
    return html.partition(f'aria-label="{label}"')[2].partition("</table>")[0]


def test_a_recorded_log_has_sections_of_its_own(recording: tuple[dict[str, Any], str]) -> None:
    told, html = recording
    found = tables(html)
    parsed(html)
    assert list(found["Scores of each policy"]) == ["recorded"]
    assert "Each job against itself" not in html
    assert len(found["Run-time predictions"]) == 2 + 1
    assert float(found["Run-time predictions"]["requests"][0]) == told["requests_as_run_times"]["mean_absolute_error"]
    assert "Calibration of run times" in html
    (row,) = {tuple(values) for values in found["Walltime adjustments"].values()}
    assert float(row[1]) == told["walltime_adjustments"][0]["mean_accuracy"]
    covered = [row["coverage"] for row in told["wait_bounds"]]
    assert [float(values[0]) for values in found["All bounds on waits"].values() if values] == [
        each for each in covered if each is not None
    ]
    drawn = re.findall(r"Waits and their bounds over time, grouping (\w+);", html)
    groupings = [row["grouping"] for row in told["wait_bounds"] if row["queue"] == "all"]
    assert drawn == sorted(groupings, key=lambda name: name != "ensemble")
    (shown,) = found["Bounds on waits"]
    assert "ensemble" in shown


def test_the_bounds_that_are_drawn_are_those_that_are_scored() -> None:
    told, records = recorded(prepare(read_swf(BUNDLED), limit=800))
    scored = {row["grouping"]: row for row in told["wait_bounds"] if row["queue"] == "all"}
    drawn = records[0].bounded_waits.by_grouping()
    assert set(drawn) == set(scored)
    for grouping, rows in drawn.items():
        assert len(rows) == scored[grouping]["predictions"] > 0
        assert (rows[:, 1] <= rows[:, 2]).mean() == pytest.approx(scored[grouping]["coverage"])


def test_95_percent_of_the_jobs_of_a_month_waited_at_most_what_its_row_says() -> None:
    """Of 64 waits, four of which are long, that is a long wait, and no value between two waits."""
    waits = [5] * 20 + [1_000] * 4
    jobs = (job(number, 100 * number, wait_time=wait) for number, wait in enumerate([7] * 60 + waits, 1))
    plan = plan_of(workload_of(*jobs))._replace(mode="recorded", wait_bound=canonical("wait-bound", "bmbp"))
    document, records = replayed([plan])
    (row,) = tables(page([document], None, [records]))["Bounds by month"].values()
    drawn = records[0].bounded_waits.by_grouping()
    last = drawn[[*drawn][-1]]
    assert float(row[0]) in last[:, 1]
    assert (last[:, 1] <= float(row[0])).mean() >= 0.95


def test_slowdowns_are_over_the_run_times_of_the_sizes_that_were_requested() -> None:
    document, (record,) = replayed([plan_of(generated(200), "conservative:shape=half,widen=yes")])
    assert (record.jobs.processors != record.jobs.requested_processors).any()
    assert slowdowns(record.jobs).mean() == pytest.approx(document["policies"][0]["mean_bounded_slowdown"])


def test_the_digests_are_those_of_the_decision_logs() -> None:
    _, records = compared()
    for record in records:
        hashed = hashlib.sha256()
        carry_out(record.plan, [DecisionLog(Hashing(hashed))])
        assert record.decisions_sha256 == hashed.hexdigest()


class Hashing:
    def __init__(self, into: Any) -> None:
        self.write = into.update


@pytest.mark.nightly
def test_it_is_small_and_soon_made() -> None:
    told, records = compared(prepare(read_swf(BUNDLED)))
    began = time.process_time()
    html = page([told], None, [records])
    assert time.process_time() - began < 10
    assert len(html) < 1_000_000


@pytest.mark.parametrize("size", [1, 2, 5])
def test_a_log_of_few_jobs_has_a_report_too(size: int) -> None:
    told, records = compared(generated(size))
    parsed(page([told], None, [records]))
    assert "nan" not in page([told], None, [records])
    assert not re.search(r"\b1 (jobs|users|processors)\b", page([told], None, [records]))


@pytest.mark.parametrize("spec", ["bmbp:side=lower", "bmbp:side=both", "bmbp", "bmbp:publish=ensemble"])
@pytest.mark.parametrize("size", [3, 120])
def test_bounds_from_below_or_of_no_job_have_a_report_too(size: int, spec: str) -> None:
    """Three waits have no upper bound. Bounds of each side have an aim of their own."""
    workload = workload_of(*(job(number, 100 * number, wait_time=number % 7) for number in range(1, size + 1)))
    plan = plan_of(workload)._replace(mode="recorded", wait_bound=canonical("wait-bound", spec))
    document, records = replayed([plan])
    text = re.sub(r"<[^>]+>", " ", page([document], None, [records]))
    aims = {float(aim) for aim in re.findall(r"covered the ([\d.]+) % that they aim at", text)}
    covered = [row for row in document["wait_bounds"] if row["coverage"] is not None and row["queue"] == "all"]
    assert aims == {100 * row["quantile"] for row in covered}
    assert ("no shorter" in text) == ("side" in spec)


@pytest.mark.parametrize("unix_start_time", [None, 10**9])
@pytest.mark.parametrize("leap", [10**9, 10**12, MAX_TIME - 10_000])
def test_a_log_whose_clock_leaps_has_a_report_of_a_size(unix_start_time: int | None, leap: int) -> None:
    jobs = [job(number, at, run_time=900, processors=4) for number, at in enumerate((0, 1, 2, leap, leap + 1), 1)]
    trace = trace_of(*jobs, processors=4)
    told = {} if unix_start_time is None else {"UnixStartTime": str(unix_start_time)}
    workload = prepare(replace(trace, header=dict(trace.header) | told))
    document, runs = replayed([plan_of(workload, policy) for policy in ("fcfs", "easy")])
    assert len(page([document], None, [runs])) < 200_000


def test_months_end_where_the_next_begin() -> None:
    for last, unix, count in ((0, None, 1), (29 * DAY, None, 1), (30 * DAY, None, 2), (10**12, None, 600), (0, 0, 1)):
        found = months(0, last, unix)
        assert len(found) in (count, count - 1)
        assert [each.end for each in found] == sorted({each.end for each in found})
        assert found[-1].end > last


def test_a_hostile_name_is_text_everywhere() -> None:
    name = "<script>alert(1)</script>\"'><img src=x onerror=alert(1)>\n"
    told, records = compared(cluster=name)
    for row, record in zip(told["policies"], records, strict=True):
        row["policy"] = name + row["policy"]
        record.plan = record.plan._replace(label=row["policy"])
    told["settings"]["baseline"] = name + told["settings"]["baseline"]
    html = page([told], name, [records])
    assert not re.search(r"<script|<img", html)
    assert name.strip() in parsed(html).text


def test_finding_18_what_nobody_sees_of_a_name_is_written_out() -> None:
    unseen = [
        *map(chr, (*range(32), *range(127, 160))),
        "\u00ad",
        "\u200b",
        "\u202e",
        "\u2028",
        "\u2066",
        "\udc9b",
        "\ufeff",
    ]
    name = f"kth{''.join(unseen)}\U000e0041 95\u00a0%"
    told, records = compared(
        cluster=name.replace("\udc9b", "")
    )  # half a pair is no cluster's name, but may be a file's
    for row, record in zip(told["policies"], records, strict=True):
        row["policy"] = name + row["policy"]
        record.plan = record.plan._replace(label=row["policy"])
    told["settings"]["baseline"] = name + told["settings"]["baseline"]
    html = page([told], name, [records])
    assert not set(unseen) - {"\n"} & set(html)
    assert html.count("\n") == page([told | {"cluster": "kth"}], None, []).count("\n")
    assert r"kth\x00\x01" in parsed(html).text
    assert r"\u202e" in parsed(html).text
    assert html.encode()


def test_forecasts_have_a_table_where_there_are_any() -> None:
    plans = [plan_of(generated(), policy) for policy in ("fcfs", "easy:forecast=yes")]
    made = as_json([carry_out(plan) for plan in plans])
    (row,) = made["wait_forecasts"]
    found = page([made], None)
    assert f"{row['forecasts']:,} of {row['forecasts']:,}" in found
    assert percent(row["error_share"]) in found
    assert "Forecasts of waits" not in page([made | {"wait_forecasts": []}], None)


def test_a_section_per_trace_and_a_row_per_policy() -> None:
    html = page([document("one"), document("two")], None)
    assert re.findall(r'<h2 id="cluster-\d">(one|two)</h2>', html) == ["one", "two"]
    scores = re.findall(r'aria-label="Scores of each policy">(.*?)</table>', html)
    assert [re.findall('<th scope="row">(.*?)</th>', each) for each in scores] == [["fcfs", "best"]] * 2


def test_names_are_escaped() -> None:
    html = page([document("<script>alert(1)</script>")], "shadowtime replay --json '<b>.json'")
    assert "<script" not in html
    parser = parsed(html)
    assert "<script>alert(1)</script>" in parser.text
    assert "'<b>.json'" in parser.text


def test_the_worst_bar_is_full_and_none_is_wider() -> None:
    widths = [float(each) for each in re.findall(r'style="width: ([\d.]+)%', page([document()], None))]
    assert len(widths) == 6
    assert [max(pair) for pair in zip(widths[::2], widths[1::2], strict=True)] == [100, 100, 100]
    assert all(0 <= width <= 100 for width in widths)


def test_figures_of_different_policies_have_different_titles() -> None:
    """Also where their names begin alike."""
    policies = [f"probabilistic:criterion=exact,tau={tau}" for tau in ("0.05", "0.5")]
    bound = canonical("wait-bound", "bmbp:publish=plain")
    plans = [plan_of(generated(300), policy)._replace(wait_bound=bound, label=policy) for policy in policies]
    told, records = replayed(plans)
    titles = re.findall(r"<figcaption><h4>(.*?)</h4>", page([told], None, [records]))
    assert len(set(titles)) == len(titles)
    assert {f"Calibration of probabilistic {tau}" for tau in ("0.05", "0.5")} <= set(titles)


def test_captions_say_what_the_figures_are(comparison: tuple[dict[str, Any], str]) -> None:
    told, html = comparison
    assert "Geometric mean: of waits, each counted as at least 10 s." in html
    (shapes,) = re.findall(r"<h4>Slowdown by shape of job</h4><p>(.*?)</p>", html)
    assert "Bars begin at 1 and are logarithmic" in shapes
    beaten = {
        row["policy"]: "yes" if any(is_beaten(row, by) for by in told["policies"]) else "no" for row in told["policies"]
    }
    table = section(html, "Slowdown against the longest wait")
    assert '<th scope="col">beaten</th>' in table
    assert dict(re.findall(r'<th scope="row">(.*?)</th>.*?<td>(yes|no)</td></tr>', table)) == beaten


def test_a_dozen_policies_are_told_apart() -> None:
    rows = [
        {"policy": f"p{number}", "max_wait": 600 * number, "mean_bounded_slowdown": 30 - number}
        for number in range(1, 13)
    ]
    html = frontier(rows)
    legend = re.findall(r'<path class="dot (s\d+)" [^>]*d="([^"]*)"></path></svg>p\d+</li>', html)
    drawn = re.findall(r'<path class="dot (s\d+)" [^>]*d="([^"]*)"><title>p\d+:', html)
    assert legend == drawn
    assert len(set(drawn)) == 12


def is_beaten(row: dict[str, Any], by: dict[str, Any]) -> bool:
    """Return whether another policy is better in one figure and no worse in the other."""
    here, there = ((each["max_wait"], each["mean_bounded_slowdown"]) for each in (row, by))
    return here != there and all(a >= b for a, b in zip(here, there, strict=True))


def test_figures_that_do_not_exist_are_dashes() -> None:
    empty = document()
    for row in empty["policies"]:
        row |= dict.fromkeys(("mean_wait", "mean_bounded_slowdown", "max_wait", "utilization"), None)
    assert "<td>-</td>" in page([empty], None)


def test_the_contents_list_every_part(
    comparison: tuple[dict[str, Any], str], recording: tuple[dict[str, Any], str]
) -> None:
    for _, html in (comparison, recording):
        contents, _, main = html.partition("</nav>")
        listed = re.findall(r'<a href="#(part-\d+-\d+)">(.*?)</a>', contents)
        assert listed == re.findall(r'<h3 id="(.*?)">(.*?)</h3>', main)
        assert len(listed) > 4
        assert "<h3>" not in main


def test_findings_come_before_specs(comparison: tuple[dict[str, Any], str]) -> None:
    titles = re.findall(r"<h3 [^>]*>(.*?)</h3>", comparison[1])
    assert titles[0] == "Scores"
    assert titles[-1] == "What the names stand for"


def test_one_bound_of_each_policy_is_shown_and_all_others_are_folded(recording: tuple[dict[str, Any], str]) -> None:
    told, html = recording
    shown, _, folded = html.partition("<details class=more>")
    assert len(tables(shown)["Bounds on waits"]) == 1
    assert "grouping ensemble;" in shown
    assert "grouping plain;" not in shown
    assert len(tables(folded)["All bounds on waits"]) == len(told["wait_bounds"])


def test_a_policy_that_hides_the_others_gets_a_logarithmic_axis() -> None:
    def drawn(*waits: float) -> list[float]:
        names = ("mean_wait", "mean_bounded_slowdown", "max_wait")
        rows = [{"policy": f"p{at}", **dict.fromkeys(names, wait)} for at, wait in enumerate(waits)]
        html = at_a_glance(rows)
        assert html.count("(logarithmic)") == (3 if max(waits) > 10 * sorted(waits)[1] else 0)
        return [float(width) for width in re.findall(r"width: ([\d.]+)%", html)[: len(waits)]]

    assert drawn(100, 50, 25) == [100, 50, 25]
    fcfs, easy, best = drawn(80_000, 900, 600)
    assert (fcfs, easy > best > 5) == (100, True)


def test_a_larger_dot_is_of_more_candidates() -> None:
    parts = [
        {"mean_probability": place / 10, "delayed": 0.1, "candidates": count, "from_probability": place / 10}
        for place, count in enumerate((400, 100, 4))
    ]
    scores = {"recalibrated": None, **{key: {"bins": parts, "calibration_error": 0.1} for key in ("exact", "bound")}}
    scales = re.findall(r"scale\(([\d.]+)\)", calibration({"policy": "best", "calibration": scores}))
    assert [float(each) for each in scales[:2]] == [1.6, 0.52]  # a dot of scale 1 needs none
