"""Shadows as they are kept: looked at seldom, read once, laid beside their cluster for the live page."""

import asyncio
from collections.abc import Awaitable, Callable

import orjson
import pytest

from shadowtime.services.shadows.comparison import stored as module
from shadowtime.services.shadows.comparison.live_page import LiveShadows
from shadowtime.services.shadows.comparison.stored import StoredShadowCache
from shadowtime.services.shadows.comparison.text import MAX_USERS_SHOWN
from shadowtime.shared.errors import StoreError, Unanswerable
from tests.support.memory_reader import MemoryReader
from tests.support.stored_shadows import BEST, FCFS, keeping, stored


def asking(ask: Callable[[MemoryReader, StoredShadowCache], Awaitable[None]]) -> None:
    async def go() -> None:
        reader = MemoryReader()
        await keeping(reader, BEST, stored(20))
        await ask(reader, StoredShadowCache(reader))

    asyncio.run(go())


def test_however_many_ask_it_is_looked_once() -> None:
    async def ask(reader: MemoryReader, kept: StoredShadowCache) -> None:
        found = await asyncio.gather(*(kept.shadows() for _ in range(50)))
        assert {each.run for shadows in found for each in shadows} == {BEST}
        await keeping(reader, FCFS, stored(20))
        assert len(await kept.shadows()) == 1  # until the rest is over
        assert reader.asked["load"] == 1

    asking(ask)


def test_what_has_not_moved_on_is_not_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "REST_SECONDS", 0.0)

    async def ask(reader: MemoryReader, kept: StoredShadowCache) -> None:
        (first,) = await kept.shadows()
        assert list(await kept.shadows()) == [first]
        assert reader.asked["load"] == 1
        await keeping(reader, BEST, stored(30), 0)
        (later,) = await kept.shadows()
        assert later.compared.days > first.compared.days
        assert reader.asked["load"] == 2

    asking(ask)


def test_what_is_damaged_is_passed_over() -> None:
    async def ask(reader: MemoryReader, kept: StoredShadowCache) -> None:
        await keeping(reader, FCFS, b"{}")
        assert [each.run for each in await kept.shadows()] == [BEST]

    asking(ask)


def test_an_error_counts_for_all_who_ask_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask(reader: MemoryReader, kept: StoredShadowCache) -> None:
        looked = 0

        async def away() -> list[str]:
            nonlocal looked
            looked += 1
            raise StoreError("Redis cannot be used: refused")

        monkeypatch.setattr(reader, "names", away)
        for _ in range(3):
            with pytest.raises(StoreError, match="refused"):
                await kept.shadows()
        assert looked == 1

    asking(ask)


def test_a_cluster_beside_its_shadows() -> None:
    async def ask(reader: MemoryReader, kept: StoredShadowCache) -> None:
        other = orjson.loads(stored(20))
        other["opened"] |= {"name": "new", "cluster": "ctc"}
        other["source"]["side_by_side"] = orjson.loads(stored(0))["source"]["side_by_side"]
        await keeping(reader, "ctc/shadow/new", orjson.dumps(other))
        shadows = LiveShadows(kept)
        assert await shadows.counts() == {"kth": 1, "ctc": 1}
        (best,) = (await shadows.twin("kth")).shadows
        assert (best.run, best.real, best.name) == (BEST, "kth/live", "best")
        assert best.verdict is not None
        assert best.verdict.startswith("waits 50 % shorter (-50 to -50 %)")
        assert any("start sooner, by 10.0 min" in note for note in best.notes)
        assert (len(best.compared.users), best.more_users) == (MAX_USERS_SHOWN, 30 - MAX_USERS_SHOWN)
        (new,) = (await shadows.twin("ctc")).shadows
        assert (new.verdict, new.compared.all) == (None, None)
        with pytest.raises(Unanswerable, match="'none' has no shadow; clusters with shadows: ctc, kth") as caught:
            await shadows.twin("none")
        assert caught.value.status == 404

    asking(ask)
