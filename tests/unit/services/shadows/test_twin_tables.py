"""`shadowtime twin`: what is stored of shadows, as tables and sentences."""

import io

import orjson
import pytest
from rich.console import Console

from shadowtime.services.shadows.comparison.side_by_side import REAL, SHADOW, SideBySide
from shadowtime.services.shadows.comparison.stored import read
from shadowtime.services.shadows.comparison.text import tables
from shadowtime.shared.errors import SnapshotMismatch
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages.job_events import JobSubmitted


def stored(days: int) -> bytes:
    """Return what a shadow keeps in which each job waits 10 minutes, and really 20."""
    both = SideBySide()
    both.capacity(0, 16)
    for number in range(days * 10):
        time = number * DAY // 10
        job = JobSubmitted(
            time=time, job_number=number, requested_processors=9, requested_time=7_200, user_id=number % 30
        )
        both.submitted(job)
        for which, wait in ((REAL, 1_200), (SHADOW, 600)):
            both.started(which, number, time + wait)
            both.ended(which, number, time + wait + 900, 900, 9)
        both.at(time)
    opened = {"cluster": "kth", "policy": "best", "name": "best", "unix_start": 843_436_800}
    return orjson.dumps({"opened": opened, "source": {"side_by_side": both.snapshot(), "real": "kth/live"}})


def test_it_says_what_is_better_by_how_much_and_since_when() -> None:
    shadow = read("kth/live/shadow/best", stored(100))
    written = io.StringIO()
    console = Console(file=written, width=80, highlight=False, markup=False, emoji=False)
    for table in tables(shadow.cluster, {shadow.name: shadow.compared}, shadow.unix_start, users=True, classes=True):
        console.print(table)
    text = written.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "best: waits 50 % shorter (50 to 50); real since 12 Dec" in text
    assert "100.0 % start sooner, by 10.0 min on average" in text
    assert "long wide" in text
    assert [shadow.of(each) for each in ("kth", "kth/live", "ctc")] == [True, True, False]


def test_before_the_first_day_is_over_it_says_so() -> None:
    both = SideBySide()
    both.at(100)
    found = list(tables("kth", {"best": both.report(100)}, 0, users=True, classes=True))
    written = io.StringIO()
    Console(file=written, width=80).print(*found)
    assert "no day yet" in written.getvalue()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"opened":{"cluster":"a","policy":"b"},"source":{}}'])
def test_what_is_damaged_is_named(damage: bytes) -> None:
    with pytest.raises(SnapshotMismatch, match="shadow 'kth/live/shadow/best' is damaged"):
        read("kth/live/shadow/best", damage)
