"""The records of a file in JSON: one object for each job, alone on its line, in an array, or within an object."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shadowtime.shared.accounting.text_file import contents_of

WINDOW = 1 << 20
"""Characters of the file that are in memory beyond a record. A longer record counts as damaged."""

_BEGINNING = re.compile(rb"\s*(?:\[\s*)*\{")
_KEY = re.compile(rb'"([^"\\\n]{1,80})"\s*:')
_BETWEEN = re.compile(r"[\s,\[\]}]*")
_OBJECT = re.compile(r"\{")


class JsonRecord(NamedTuple):
    """An object of a file with its line; None in its place if it is damaged."""

    line: int
    values: dict[str, Any] | None


def json_keys(head: bytes) -> set[str]:
    """Return the keys at the beginning of a file, or an empty set if it does not begin as JSON.

    >>> sorted(json_keys(b'[{"ClusterId": 17, "Owner": "eve"}]')), json_keys(b"1 2 3")
    (['ClusterId', 'Owner'], set())
    """
    if not _BEGINNING.match(head):
        return set()
    return {key.decode(errors="replace") for key in _KEY.findall(head)}


def json_records(path: Path, mark: str, wrapped: str = "") -> Iterator[JsonRecord]:
    """Yield the records of a file: the objects that have the key `mark`.

    The file may have a record on each line, an array of records, or an object with an array of records. Objects
    without the key are left out, if they are no damaged records. A damaged record does not hide the records behind it.

    Parameters
    ----------
    wrapped
        Key of the object that each record may lie in, as `_source` in Elasticsearch.

    Raises
    ------
    TraceError
        If the file cannot be read.
    """
    return _Records(path, mark, wrapped).records()


class _Records:
    def __init__(self, path: Path, mark: str, wrapped: str) -> None:
        self._pieces, self._text, self._at, self._line = contents_of(path), "", 0, 1
        self._decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        self._whole = False
        self._mark, self._wrapped = mark, wrapped
        self._marks = re.compile(r'"' + re.escape(mark) + r'"\s*:')
        self._parse = json.JSONDecoder().raw_decode

    def records(self) -> Iterator[JsonRecord]:
        header = True
        while self._fill():
            between = _BETWEEN.match(self._text, self._at)
            behind = between is not None and "]" in between[0]
            self._move(between.end() if between else self._at)
            if self._at == len(self._text):
                continue
            value, end = self._value(self._at)
            if value is not None:
                for record in self._records_in(value):
                    yield JsonRecord(self._line, record)
                self._move(end)
            elif header and (inside := self._first_array()) is not None:
                self._move(inside)
            else:
                begun, line = self._at, self._line
                found = self._next_record()
                skipped = self._text[begun : self._at]
                damaged = len(self._marks.findall(skipped)) or int(not behind and found)
                yield from [JsonRecord(line, None)] * damaged
            header = False

    def _fill(self) -> bool:
        """Read on until `WINDOW` characters lie ahead. Return whether any do."""
        if len(self._text) - self._at < WINDOW and not self._whole:
            parts = [self._text[self._at :]]
            self._at = 0
            while sum(map(len, parts)) < 2 * WINDOW and not self._whole:
                piece = next(self._pieces, b"")
                self._whole = not piece
                parts.append(self._decode(piece, final=self._whole))
            self._text = "".join(parts)
        return self._at < len(self._text)

    def _move(self, at: int) -> None:
        self._line += self._text.count("\n", self._at, at)
        self._at = at

    def _value(self, at: int) -> tuple[dict[str, Any] | None, int]:
        """Return the object at a place and its end; None if there is no whole object."""
        if not self._text.startswith("{", at):
            return None, at
        try:
            value, end = self._parse(self._text, at)
        except (ValueError, RecursionError):
            return None, at
        return value, end

    def _first_array(self) -> int | None:
        """Return the place behind the beginning of the array of records, in an object that is too large to parse."""
        place = self._text.find("[", self._at)
        mark = self._marks.search(self._text, self._at)
        return place + 1 if 0 <= place < (mark.start() if mark else len(self._text)) else None

    def _records_in(self, value: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        """Yield the record that an object is, or the records in the arrays within it; None for a damaged record."""
        if isinstance(inner := value.get(self._wrapped), dict):
            value = inner
        if self._mark in value:
            yield value
            return
        for part in value.values():
            if isinstance(part, dict):
                yield from self._records_in(part)
            elif isinstance(part, list) and any(isinstance(each, dict) for each in part):
                inside = [list(self._records_in(each)) if isinstance(each, dict) else [] for each in part]
                if any(inside):
                    for records in inside:
                        yield from records or [None]

    def _next_record(self) -> bool:
        """Move behind damage, to the next record or the end. Return whether the damage has more than brackets."""
        begun = self._at
        at = begun + 1
        while True:
            brace = _OBJECT.search(self._text, at)
            if brace is None or brace.start() - begun > WINDOW:
                self._move(len(self._text) if brace is None else brace.start())
                return True
            value, end = self._value(brace.start())
            if value is not None and any(self._records_in(value)):
                self._move(brace.start())
                return True
            at = end if value is not None else brace.end()
