"""The report: one page that needs nothing else."""

import re
from html.parser import HTMLParser
from typing import Any

from dashboards.report import page
from replayer.comparison import as_json, carry_out
from services.catalogue import configure
from tests.replayer.small_logs import generated, plan_of

VOID = {"meta", "br", "img", "link", "input", "hr"}


class Balanced(HTMLParser):
    """Fails where a tag is closed that is not open; collects the text."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.links += [value or "" for name, value in attrs if name in ("src", "href")]
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
    return parser


def test_page_is_whole_and_needs_no_network() -> None:
    html = page([document()], ["--policy", "fcfs", "--policy", "best"])
    parser = parsed(html)
    assert parser.links == []
    assert not re.search(r"https?://|@import|url\(", html)
    assert "60 jobs on 16 processors" in parser.text
    assert "python -m replayer --policy fcfs --policy best" in parser.text


def test_a_section_per_trace_and_a_row_per_policy() -> None:
    html = page([document("one"), document("two")], [])
    assert re.findall("<h2>(one|two)</h2>", html) == ["one", "two"]
    assert html.count("<tr><td>fcfs<br><small>run times: requested</small></td>") == 2
    assert html.count(f"<tr><td>best<br><small>run times: {configure('best').runtime}</small></td>") == 2


def test_names_are_escaped() -> None:
    html = page([document("<script>alert(1)</script>")], ["--json", "<b>.json"])
    assert "<script" not in html
    parser = parsed(html)
    assert "<script>alert(1)</script>" in parser.text
    assert "'<b>.json'" in parser.text


def test_the_worst_bar_is_full_and_none_is_wider() -> None:
    widths = [float(each) for each in re.findall(r"width: ([\d.]+)%", page([document()], []))]
    assert len(widths) == 6
    assert [max(pair) for pair in zip(widths[::2], widths[1::2], strict=True)] == [100, 100, 100]
    assert all(0 <= width <= 100 for width in widths)


def test_figures_that_do_not_exist_are_dashes() -> None:
    empty = document()
    for row in empty["policies"]:
        row |= dict.fromkeys(("mean_wait", "mean_bounded_slowdown", "max_wait", "utilization"), None)
    assert "<td>-</td>" in page([empty], [])
