"""Expected starts of the site: as data, in the terminal and in the report, and nowhere where the site says nothing."""

import io
from collections.abc import Sequence

import orjson
import pytest
from rich.console import Console

from shadowtime.replayer.commands.outputs import print_tables
from shadowtime.replayer.comparison.document import as_json
from shadowtime.replayer.comparison.plan import RunPlan, RunResult
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.replayer.logs.trace import BUNDLED
from shadowtime.replayer.logs.workload import prepare
from shadowtime.replayer.presentation.site_expectations import expectations_of, expected_table
from shadowtime.replayer.report.report import page
from shadowtime.replayer.simulation.embedded import EmbeddedReplay
from shadowtime.replayer.simulation.recorded import Recorded
from shadowtime.replayer.simulation.source import ReplaySource
from shadowtime.services.catalogue import canonical, configure
from shadowtime.shared.formatting import duration
from shadowtime.shared.messages.scores import ExpectedStartScores
from tests.support.eventful import Eventful

SECTION = "xpected starts, the site's and ours"


def result(
    kind: type[ReplaySource], runtime: str = "empirical", forecast: str = "yes", bound: str = "bmbp:publish=plain"
) -> RunResult:
    """Return what comes of the bundled log as it ran, told by a source."""
    workload = prepare(read_swf(BUNDLED), limit=300)
    configuration = configure(f"easy:forecast={forecast}", runtime)
    plan = RunPlan("recorded", "kth", workload, configuration, "recorded", canonical("wait-bound", bound))
    replay = EmbeddedReplay(plan.opened(), kind(workload), [], "r")
    replay.run_to_end()
    assert replay.last is not None
    assert replay.last.scores is not None
    return RunResult(plan, replay.last.scores, 1.0, 1.0)


@pytest.fixture(scope="module")
def told() -> list[RunResult]:
    return [result(Eventful), result(Eventful, "last-two")]


def rendered(results: Sequence[RunResult], width: int = 120) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(expected_table(results))
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_rows_are_the_scores_of_each_queue_under_the_name_of_the_policy(told: list[RunResult]) -> None:
    document = as_json(told)
    rows = document["expected_starts"]
    scores = [each for one in told for each in one.scores.expected_starts or ()]
    assert len(rows) == len(scores) > 4
    for row, score in zip(rows, scores, strict=True):
        assert list(row) == ["policy", "runtime", *ExpectedStartScores.model_fields]
        assert (row["queue"], row["first"]) == (
            "all" if score.queue is None else score.queue,
            score.first.model_dump(),
        )
    assert [row["runtime"] for row in rows if row["queue"] == "all"] == [
        each.plan.configuration.runtime for each in told
    ]
    orjson.dumps(document)


def test_the_table_has_the_site_the_forecast_and_the_bound_side_by_side(told: list[RunResult]) -> None:
    scores = (told[0].scores.expected_starts or ())[0]
    assert scores.paired is not None
    assert scores.first.jobs >= scores.paired.forecast.jobs > scores.bounded > 50  # there is none of blocked jobs
    text = rendered(told[:1])
    assert "kth, expected starts: the site's and ours" in text
    lines = [line.split("  ")[0] for line in text.splitlines()]
    assert "policy" not in text
    first = next(line for line in text.splitlines() if line.startswith("all") and "site, first " in line)
    assert f"{scores.first.jobs:,}" in first
    assert "bound, 95 %" in text
    assert lines.count("all") == len(list(expectations_of(as_json(told[:1])["expected_starts"][0])))
    assert "easy, by last-two" in rendered(told)


def test_the_sites_words_of_what_was_forecast_come_again_only_where_these_are_fewer() -> None:
    score = {"jobs": 4, "mean_absolute_error": 1.0}
    paired = dict.fromkeys(("first", "last", "forecast", "at_once", "last_waits"), score)
    row = {"first": score, "last": score, "paired": paired, "bounded": 0}
    naive = ["starts at once", "last 100 waits"]
    assert [shown.source for shown in expectations_of(row)] == ["site, first", "site, last", "forecast", *naive]
    before = {name: paired[name] for name in ("first", "last", "forecast")} | {"at_once": None}
    assert [shown.source for shown in expectations_of(row | {"paired": before})][2:] == ["forecast"]
    fewer = row | {"first": score | {"jobs": 5}}
    assert [shown.source for shown in expectations_of(fewer)][2:4] == [
        "site, first, if forecast",
        "site, last, if forecast",
    ]
    silent = row | {"paired": None, "bounded": 3, "bound_coverage": 0.5, "bound_quantile": 0.95}
    assert [(shown.source, shown.jobs, shown.held) for shown in expectations_of(silent)][2:] == [
        ("bound, 95 %", 3, 0.5)
    ]


def test_the_report_has_a_section_of_it(told: list[RunResult]) -> None:
    document = as_json(told)
    html = page([document], None)
    assert html.count(f">E{SECTION.replace(chr(39), '&#x27;')}</h3>") == 1
    for row in document["expected_starts"]:
        if row["queue"] == "all":
            assert duration(row["paired"]["forecast"]["mean_absolute_error"]) in html


def test_of_a_silent_site_nothing_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    silent = [result(Recorded)]
    document = as_json(silent)
    assert "expected_starts" not in document
    assert SECTION not in page([document], None).replace("&#x27;", "'")
    print_tables([silent], "recorded")
    assert SECTION not in capsys.readouterr().out


def test_the_terminal_has_it_after_the_forecasts(told: list[RunResult], capsys: pytest.CaptureFixture[str]) -> None:
    print_tables([told[:1]], "recorded")
    text = capsys.readouterr().out
    assert text.index("as forecast at submission") < text.index("expected starts: the site's and ours")
