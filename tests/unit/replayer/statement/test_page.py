"""The page of a statement: what it says, also of nothing, and that no name is markup."""

import html
import re

from shadowtime.replayer.statement.month import MonthOfStarts
from shadowtime.replayer.statement.page import statement_page
from shadowtime.shared.formatting import DAY
from tests.support.statement_facts import facts

HOSTILE = "<img src=x onerror=alert(1)>\x1b[2J"


def text(page: str) -> str:
    body = re.sub(r"<style>.*?</style>", "", page)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def test_it_says_what_is_in_its_tables() -> None:
    shown = text(statement_page(facts(shadows=1)))
    assert "21 Sep 2026 to 21 Oct 2026, 14:13 UTC: 100 jobs submitted." in shown
    assert "Of 100 jobs with a stated time by which each starts with a probability of 95 %, 95.0 % started" in shown
    assert "by then. Partition part0 had the lowest share, 90.0 %." in shown
    assert (
        "The median error of expected starts was 5.0 min; of the first expectation of the site's scheduler, 60.0 min; "
        "of a guess of no wait, 15.0 min."
    ) in shown
    assert "Under best: waits 50 % shorter (-50 to -50 %); real since 12 Dec." in shown
    assert "part0 50 90.0 % 5 0" in shown
    assert "best (recommended) 990" in shown


def test_it_says_if_nothing_is_known() -> None:
    empty = facts()._replace(month=MonthOfStarts(0))
    shown = text(statement_page(empty))
    for part in ("0 jobs submitted", "No job had a stated time", "No such time was stated", "No job had an expected"):
        assert part in shown
    assert "No policy is followed in a shadow of this cluster" in shown


def test_times_that_were_computed_later_are_counted() -> None:
    """Of a follower that has read three months of history, they were said to have been stated at the submission."""
    known = facts()
    assert "before they were followed" not in text(statement_page(known))
    known.month.afterwards = 40
    told = "100 jobs submitted. Of these, 40 were submitted before they were followed: their times were computed later."
    assert told in text(statement_page(known))


def test_a_shorter_log_is_no_month() -> None:
    known = facts()
    shown = text(statement_page(known._replace(now=10 * DAY)))
    assert "21 Sep 2026 to 01 Oct 2026" not in shown
    assert "21 Sep 2026 to 1 Oct 2026" in shown
    assert "this covers 10.0 days" in shown
    assert "stored log" not in text(statement_page(known))


def test_a_log_without_a_date_has_days() -> None:
    assert "mine , day 1 to day 31" in text(statement_page(facts()._replace(unix_start=0)))


def test_names_are_no_markup() -> None:
    hostile = facts()._replace(cluster=HOSTILE, run=HOSTILE, partition=lambda queue: HOSTILE)
    page = statement_page(hostile)
    assert "<img" not in page
    assert "\x1b" not in page


def test_what_does_not_fit_on_a_sheet_is_counted() -> None:
    shown = text(statement_page(facts(partitions=30, jobs=120, shadows=5)))
    assert "Left out: 20 partitions with the fewest jobs." in shown
    assert "Further policies that are followed: 2; see shadowtime twin." in shown
