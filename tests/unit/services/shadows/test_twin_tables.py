"""`shadowtime twin`: what is stored of shadows, as tables and sentences."""

import asyncio
import io

import pytest
from rich.console import Console

from shadowtime.services.shadows.comparison.schema import ConfidenceInterval
from shadowtime.services.shadows.comparison.side_by_side import SideBySide
from shadowtime.services.shadows.comparison.stored import StoredShadowCache, read, shadows_beside
from shadowtime.services.shadows.comparison.text import notes_of, tables, verdict
from shadowtime.shared.errors import SnapshotMismatch, StateAltered
from shadowtime.shared.formatting import clock
from shadowtime.shared.streaming.protocols import RunState
from tests.support.memory_reader import MemoryReader
from tests.support.stored_shadows import BEST, FCFS, keeping, stored


def test_it_says_what_is_better_by_how_much_and_since_when() -> None:
    shadow = read("kth/live/shadow/best", stored(100))
    written = io.StringIO()
    console = Console(file=written, width=80, highlight=False, markup=False, emoji=False)
    for table in tables(
        shadow.cluster, {shadow.name: shadow.compared}, shadow.unix_start, name_of="user {}".format, classes=True
    ):
        console.print(table)
    text = written.getvalue()
    assert all(len(line) <= 80 for line in text.splitlines())
    assert "best: waits 50 % shorter (-50 to -50 %); real since 12 Dec" in text
    assert "100.0 % start sooner, by 10.0 min on average" in text
    assert "long wide" in text
    assert [shadow.of(each) for each in ("kth", "kth/live", "ctc")] == [True, True, False]


def test_shadows_of_one_policy_and_of_two_real_runs_are_told_apart() -> None:
    """Of two shadows under `easy`, one exact, `twin` showed one. Users of one run had the names of another's."""
    by_run = [
        read(run, stored(2).replace(b'"kth/live"', f'"{real}"'.encode()))
        for run, real in (
            ("kth/shadow/best", "kth/live"),
            ("kth/exact/best", "kth/live"),
            ("kth/new/best", "kth/second"),
        )
    ]
    assert [shadow.name for shadow in shadows_beside("kth", by_run)] == ["best", "exact/best"]
    assert [shadow.name for shadow in shadows_beside("kth", by_run[1:])] == ["best"]
    assert [shadow.run for shadow in shadows_beside("kth/second", by_run)] == ["kth/new/best"]
    later = by_run[2]._replace(unix_start=by_run[2].unix_start + 86_400)
    assert shadows_beside("kth", [*by_run[:2], later]) == [later]
    assert shadows_beside("ctc", by_run) == []


def test_what_is_real_may_not_be_what_the_mean_says_now() -> None:
    """The evidence was of shorter waits, and remains. Since then, a few long waits have made the mean longer."""
    shadow = read(BEST, stored(100))
    result = shadow.compared.all
    assert result is not None

    def said(mean: float, low: float, high: float) -> str | None:
        change = {"wait_change": ConfidenceInterval(mean=mean, low=low, high=high)}
        compared = shadow.compared.model_copy(update={"all": result.model_copy(update=change)})
        return verdict(compared, shadow.unix_start)

    assert said(0.02, -0.05, 0.09) == "waits 2 % longer (-5 to +9 %); real since 12 Dec that they are shorter"
    assert said(-0.002, -0.05, 0.09) == "waits about as long (-5 to +9 %); real since 12 Dec"


def test_it_says_up_to_when_a_shadow_of_a_followed_cluster_is_known() -> None:
    shadow = read("kth/live/shadow/best", stored(100))
    shown, horizon = {shadow.name: shadow.compared}, shadow.compared.horizon
    assert horizon is not None
    now = shadow.unix_start + horizon + 4_188.0
    for moment, expected in ((now, True), (None, False)):
        written = io.StringIO()
        for table in tables("kth", shown, shadow.unix_start, now=moment):
            Console(file=written, width=80).print(table)
        assert (f"known up to {clock(horizon, shadow.unix_start)}, 1.2 h ago" in written.getvalue()) is expected


def test_before_the_first_day_is_over_it_says_so() -> None:
    both = SideBySide()
    both.at(100)
    found = list(tables("kth", {"best": both.report(100)}, 0, name_of=str, classes=True))
    written = io.StringIO()
    Console(file=written, width=80).print(*found)
    assert "no day is compared yet" in written.getvalue()


@pytest.mark.parametrize("damage", [b"", b"{}", b"[1]", b'{"opened":{"cluster":"a","policy":"b"},"source":{}}'])
def test_what_is_damaged_is_named(damage: bytes) -> None:
    with pytest.raises(SnapshotMismatch, match="shadow 'kth/live/shadow/best' is damaged"):
        read("kth/live/shadow/best", damage)


def test_an_altered_shadow_hides_no_other() -> None:
    class Altered(MemoryReader):
        async def load(self, run: str) -> RunState | None:
            if run == FCFS:
                raise StateAltered("its state is not what this stage has stored")
            return await super().load(run)

    async def shown() -> list[str]:
        reader = Altered()
        for run in (BEST, FCFS):
            await keeping(reader, run, stored(2))
        return [shadow.run for shadow in await StoredShadowCache(reader).shadows()]

    assert asyncio.run(shown()) == [BEST]


def test_a_shadow_by_predictions_is_said_to_be_inexact() -> None:
    exact = stored(30)
    predicted = exact.replace(b'"real":"kth/live"', b'"exact":false,"real":"kth/live"')
    assert predicted != exact
    said = [[*notes_of("best", read(BEST, snapshot).compared)] for snapshot in (exact, predicted)]
    assert ["half or double" in " ".join(notes) for notes in said] == [False, True]
