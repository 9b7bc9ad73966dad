"""The facts of a statement from Kafka and Redis, and its page in a file, as HTML or as PDF."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from shadowtime.replayer.statement.month import DAYS, MonthOfStarts
from shadowtime.replayer.statement.page import StatementFacts, statement_page
from shadowtime.services.pipeline import STAGES
from shadowtime.services.processes import NAMES_OF, Answers, WordReader
from shadowtime.services.shadows import STORE, StoredShadow, read, shadows_beside
from shadowtime.shared.errors import OutputError, SettingsError
from shadowtime.shared.formatting import DAY
from shadowtime.shared.messages import Envelope
from shadowtime.shared.output import result_file
from shadowtime.shared.quoting import quote, truncate
from shadowtime.shared.stages import DECISIONS
from shadowtime.shared.streaming import RunFollower, Settings, clients, prepare_topics, read_log, reading

if TYPE_CHECKING:
    from shadowtime.shared.messages import ClusterOpened
    from shadowtime.shared.stages import StageRun

CHROMIUM = ("chromium", "chromium-browser", "google-chrome")
"""Commands that print a page; the first command on PATH is used."""

PRINT_SECONDS = 120.0
AFTERWARDS = 600.0
"""Seconds after an event from which on a prediction counts as made afterwards, as for the past before a follower."""

SCHEDULER = next(stage for stage in STAGES if stage.name == "scheduler")


async def gather(settings: Settings, name: str) -> StatementFacts:
    """Return the facts of the followed cluster of this name, or else of the run of this name.

    Raises
    ------
    SettingsError
        If there is neither.
    BusError, StoreError
        If Kafka or Redis cannot be used.
    """
    opened, now, run = await _opened(settings, name)
    async with reading(settings, NAMES_OF) as reader:
        words = await WordReader(reader).of(opened.cluster, run)
    month = MonthOfStarts(max(0, now - DAYS * DAY))
    partition, last = clients.partition_of(run, await prepare_topics(settings)), -1
    since = opened.unix_start + month.first
    async for record in read_log(settings, DECISIONS, partition, since=since):
        envelope = Envelope.read(record.value) if record.key == run.encode() else None
        if envelope is not None and envelope.sequence > last:  # a batch may be there twice
            last = envelope.sequence
            written, happened = record.timestamp / 1_000, opened.unix_start + envelope.event.time
            month.push(envelope, afterwards=opened.follows and written > happened + AFTERWARDS)
    shadows = await _shadows(settings, run)
    return StatementFacts(
        opened.cluster, run, opened.unix_start, now, month, lambda queue: words.name("partition", queue), shadows
    )


async def _opened(settings: Settings, name: str) -> "tuple[ClusterOpened, int, str]":
    """Return the opening of a run, the time of its last event, and its name; `name` is the run, or its cluster."""

    def standing(state: "StageRun") -> "tuple[ClusterOpened, int] | None":
        return None if state.handler is None else (state.handler.opened, state.handler.time)

    async with reading(settings, SCHEDULER.name) as reader, reading(settings, NAMES_OF) as names:
        followed = await Answers(SCHEDULER, reader, words=WordReader(names)).followed_run(name)
        for run in (followed or name, name):
            answer = await RunFollower(SCHEDULER, reader, run).ask(standing)
            if answer is not None:
                return *answer, run
        known = truncate(", ".join(await reader.names())) or "none"
    raise SettingsError(f"there is no followed cluster and no run {quote(name)}; known runs: {known}")


async def _shadows(settings: Settings, run: str) -> list[StoredShadow]:
    async with reading(settings, STORE) as reader:
        saved = [(name, await reader.load(name)) for name in await reader.names()]
        every = [read(name, state.snapshot) for name, state in saved if state is not None]
    return [shadow for shadow in shadows_beside(run, every) if shadow.real == run]


def require_printer(path: Path) -> None:
    """Raise `SettingsError` if a statement is to be a PDF and there is no program that prints it."""
    if path.suffix == ".pdf" and _printer() is None:
        raise SettingsError(
            f"--statement {path}: a PDF is printed by chromium, and none of {', '.join(CHROMIUM)} is on PATH; "
            "install chromium, or write an .html and print it"
        )


def _printer() -> str | None:
    return next((path for name in CHROMIUM if (path := shutil.which(name)) is not None), None)


def publish(facts: StatementFacts, path: Path) -> None:
    """Write the statement as HTML, or as PDF if the name of the file ends in `.pdf`.

    Raise `OutputError` if the file cannot be written, or the page cannot be printed.
    """
    page = statement_page(facts).encode()
    if path.suffix == ".pdf":
        page = _printed(page)
    with result_file(path) as file:
        file.write(page)


def _printed(page: bytes) -> bytes:
    with tempfile.TemporaryDirectory(prefix="shadowtime-") as name:
        folder = Path(name)
        source, target = folder / "statement.html", folder / "statement.pdf"
        source.write_bytes(page)
        command = [
            *(_printer() or CHROMIUM[0], "--headless", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"),
            *(
                ["--no-sandbox"] if os.geteuid() == 0 else []
            ),  # root has no sandbox; the page is our own, without scripts
            *(f"--user-data-dir={folder / 'profile'}", f"--print-to-pdf={target}", source.as_uri()),
        ]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=PRINT_SECONDS, check=False)  # noqa: S603
        except (OSError, subprocess.TimeoutExpired) as error:
            raise OutputError(f"chromium did not print the statement, {error}; write an .html and print it") from None
        if not target.exists():
            raise OutputError(
                f"chromium did not print the statement, {done.stderr.strip()[-300:]}; write an .html and print it"
            )
        return target.read_bytes()
