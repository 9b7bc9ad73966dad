"""Repeat the replays of a result file: `shadowtime reproduce RESULT.json`."""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import orjson
import typer

from shadowtime._version import __version__
from shadowtime.replayer.arguments import split_size
from shadowtime.replayer.commands import NOT_CITED, Options, compare_logs
from shadowtime.replayer.logs import BUNDLED, sha256_of
from shadowtime.shared.cli import say
from shadowtime.shared.errors import SettingsError
from shadowtime.shared.quoting import among, quote
from shadowtime.shared.spec import CONTENTS

MAX_SIZE = 1_000_000_000
MAX_NAMED = 10
"""Maximum number of different figures that are named."""

MEASURED = {"elapsed_seconds", "cpu_seconds", "seconds"}
"""Figures that differ between two runs of the same replay."""

OF_HERE = {"shadowtime", "arguments", "settings.transport", "settings.speed"}
"""Fields that tell where and how a replay was carried out."""

PATHS = {"pools"}
"""Options that name a file."""


def reproduce_result(path: Path, logs: Path) -> None:
    """Repeat the replays of a file of `replay --json`, and compare all figures and digests.

    Parameters
    ----------
    path
        The file.
    logs
        Folder of the logs. Those that it lacks are looked for at the paths in the file.

    Raises
    ------
    SettingsError
        If the file was not written by `replay --json`, or its log is missing or differs.
    typer.Exit
        With status 1, if a figure or digest differs.
    """
    documents = _read(path)
    for document in documents:
        if document["shadowtime"] != __version__:
            say(f"{path}: made by version {document['shadowtime']}; this is {__version__}, which may decide otherwise")
    plans = [_options(path, document, logs) for document in documents]
    contents = [_files(path, document) for document in documents]
    count = 0
    different: list[str] = []
    with TemporaryDirectory() as folder:
        for number, (document, options, files) in enumerate(zip(documents, plans, contents, strict=True)):
            again = Path(folder) / f"{number}.json"
            reset = CONTENTS.set(files)
            try:
                compare_logs(Options(**options, json=again))
            finally:
                CONTENTS.reset(reset)
            repeated = orjson.loads(again.read_bytes())
            count += sum(1 for _ in _figures(document))
            different += [f"{document['cluster']}: {line}" for line in differences(document, repeated)]

    if not different:
        say(f"{path}: reproduced: all {count:,} figures and digests are the same")
        return
    for line in different[:MAX_NAMED]:
        say(line)
    more = f" (the first {MAX_NAMED} are above)" if len(different) > MAX_NAMED else ""
    print(f"error: {path}: {len(different):,} of {count:,} figures and digests differ{more}", file=sys.stderr)  # noqa: T201
    raise typer.Exit(1)


def differences(first: Mapping[str, Any], again: Mapping[str, Any]) -> list[str]:
    """Return a line for each figure that differs between two documents, or that only one of them has.

    >>> differences({"jobs": 3, "cpu_seconds": 1.5, "rows": [1, 2]}, {"jobs": 4, "cpu_seconds": 2.5, "rows": [1]})
    ['jobs: 3, here 4', 'rows.1: 2, here nothing']
    """
    before, now = dict(_figures(first)), dict(_figures(again))
    return [
        f"{name}: {before.get(name, 'nothing')}, here {now.get(name, 'nothing')}"
        for name in {**before, **now}
        if before.get(name, _figures) != now.get(name, _figures)
    ]


def _figures(value: Any, name: str = "") -> Iterator[tuple[str, Any]]:
    """Yield all figures of a document with their paths, without those that are measured."""
    if isinstance(value, Mapping):
        for key, part in value.items():
            path = f"{name}.{key}".removeprefix(".")
            if key not in MEASURED and path not in OF_HERE:
                yield from _figures(part, path)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _figures(part, f"{name}.{place}")
    else:
        yield name, value


def _read(path: Path) -> list[dict[str, Any]]:
    expected = f"{path}: expected a document that `shadowtime replay --json FILE` wrote"
    try:
        with path.open("rb") as file:
            content = file.read(MAX_SIZE + 1)
        if len(content) > MAX_SIZE:
            raise SettingsError(f"{expected}; found a file of more than {MAX_SIZE:,} bytes")
        read = orjson.loads(content)
    except OSError as error:
        raise SettingsError(f"{path}: cannot be read: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise SettingsError(f"{expected}; found no JSON: {error}") from None
    documents = read if isinstance(read, list) and read else [read]
    for document in documents:
        lacking = [
            name
            for name in ("shadowtime", "arguments", "cluster")
            if not isinstance(document, dict) or name not in document
        ]
        if lacking:
            raise SettingsError(
                f"{expected}; it lacks the fields {', '.join(lacking)}: write it again with this version"
            )
    return documents


def _files(path: Path, document: Mapping[str, Any]) -> dict[str, str]:
    """Return the contents of the files that the SPECs of a document name, by name."""
    files = document.get("files", {})
    if not isinstance(files, dict) or not all(isinstance(content, str) for content in files.values()):
        raise SettingsError(f"{path}: files: expected an object of texts, found {quote(str(files))}")
    return files


def _options(path: Path, document: Mapping[str, Any], logs: Path) -> dict[str, Any]:
    """Return the options of the replay of a document, with the place of its log here."""
    arguments = document["arguments"]
    known = {field.name for field in fields(Options)} - NOT_CITED
    if not isinstance(arguments, dict):
        raise SettingsError(f"{path}: arguments: expected an object, found {quote(str(arguments))}")
    if unknown := [name for name in arguments if name not in known]:
        raise SettingsError(f"{path}: arguments: unknown option {quote(unknown[0])}{among(unknown[0], sorted(known))}")
    (text,) = arguments.get("traces") or [str(BUNDLED)]
    recorded, size = split_size(text)
    name = Path(recorded)
    inside = logs / name.name
    stated = logs != Path() and inside.is_file()
    places = [inside] if stated else [name, inside, *([BUNDLED] if name.name == BUNDLED.name else [])]
    there = [place for place in places if place.is_file()]
    digest = document.get("log_sha256")
    same = [place for place in there if digest is None or sha256_of(place) == digest]
    if not there:
        raise SettingsError(f"{path}: its log {name} is missing, also in folder {logs}: give its folder with --logs")
    if not same:
        raise SettingsError(
            f"{path}: {there[0]} is another log: SHA-256 {sha256_of(there[0])[:16]}…, expected {str(digest)[:16]}…; "
            "give the folder of the same log with --logs"
        )
    log = f"{same[0]}@{size}" if size is not None else str(same[0])
    typed = {key: Path(value) if key in PATHS and value is not None else value for key, value in arguments.items()}
    if size is not None:
        typed.pop("processors", None)  # it was the size of other logs of the same command
    return {**typed, "traces": [log]}
