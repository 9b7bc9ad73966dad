"""A source that is listened to as a follower does, killed at any moment, and what it tells."""

import asyncio
import json
from collections.abc import Callable
from random import Random
from typing import Any, Self

from shadowtime.services.follower.cluster.live_source import LiveSource
from shadowtime.shared.messages.envelope import ClusterOpened, Event


class Driven:
    """Listens, and keeps what was told where its state was stored with it; what was not is told again."""

    def __init__(self, make: Callable[[], LiveSource], random: Random, kills: float) -> None:
        self.events: list[Event] = []
        self._make, self._random, self._kills = make, random, kills
        self._saved: Any = None
        self._names: dict[str, bytes] = {}
        self._loop = asyncio.Runner()
        self.source = make()

    def __enter__(self) -> Self:
        opening = self._loop.run(self.source.meet())
        self.opened = ClusterOpened(
            cluster="imagined",
            mode="recorded",
            policy="easy",
            runtime="requested",
            adjustment="none",
            wait_bound="none",
            seed=0,
            **opening._asdict(),
        )
        self._store([])
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run(self.source.close())
        self._loop.close()

    def listen(self, times: int = 1) -> None:
        """Listen so many times, and tell what is complete."""
        for _ in range(times):
            if self._random.random() < self._kills:
                self._start_again()
            self._loop.run(self.source.listen())
            told: list[Event] = []
            while self.source.next_time() is not None:
                told += self.source.next_instant()
                if self._random.random() < 0.5:
                    self._store(told)
                    told = []
            if told:
                self._store(told)

    def _start_again(self) -> None:
        self._loop.run(self.source.close())
        self.source = self._make()
        self.source.restore(json.loads(self._saved))
        self.source.names.restore(self._names)

    def _store(self, told: list[Event]) -> None:
        if self._random.random() < self._kills and self.events:
            self._start_again()  # what was told was not stored
            return
        self.events += told
        self._names |= self.source.names.take_fresh()
        self._saved = json.dumps(self.source.snapshot())
