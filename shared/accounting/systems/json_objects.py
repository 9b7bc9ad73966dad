"""The records of a file in JSON: one object for each job, alone on its line, in an array, or within an object."""

import codecs
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from shadowtime.shared.accounting.text_file import contents_of, first_lines

WINDOW = 1 << 20
"""Characters that are read ahead from the beginning of a record. A longer record counts as damaged."""

_BEGINNINGS = b"{", b"["
_KEY = re.compile(rb'"([^"\\\n]{1,80})"\s*:')
_ACTIONS = {"index", "create"}
"""Keys of the lines between the documents of a bulk request to Elasticsearch."""

_BETWEEN = re.compile(r"[\s,\[\]}]*")
_ARRAY = re.compile(r'"(?:jobs|hits)"\s*:\s*\[')
"""The beginning of an array of records within an object."""

_FRAME = re.compile(r'[\s\[\]{},]*(?:"[^"]*"\s*:\s*[\[{]\s*)*')
"""Brackets and keys between two records, where files were appended to each other."""

_FRAME_KEY = re.compile(r'"([^"]*)"\s*:')
_OBJECT = re.compile(r"\{")


class JsonRecord(NamedTuple):
    """An object of a file with its line. `values` is None if the object is damaged."""

    line: int
    values: dict[str, Any] | None


def json_keys(head: bytes) -> set[str]:
    """Return the keys at the beginning of a file, or an empty set if none of its first lines begins as JSON.

    >>> sorted(json_keys(b'[{"ClusterId": 17, "Owner": "eve"}]')), json_keys(b"1 2 3")
    (['ClusterId', 'Owner'], set())
    """
    if not any(line.lstrip().startswith(_BEGINNINGS) for line in first_lines(head)):
        return set()
    return {key.decode(errors="replace") for key in _KEY.findall(head)}


def json_records(path: Path, mark: str, wrapped: str = "") -> Iterator[JsonRecord]:
    """Yield the records of a file: the objects that have the key `mark`.

    The file may have a record on each line, an array of records, or an object with an array of records. Objects
    without the key are left out, unless they are damaged records. A damaged record does not hide the records behind it.

    Parameters
    ----------
    wrapped
        Key under which each record may be nested, as `_source` in Elasticsearch.

    Raise `TraceError` if the file cannot be read.
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
        header, behind = True, False
        while self._fill():
            between = _BETWEEN.match(self._text, self._at)
            behind = behind or (between is not None and "]" in between[0])
            self._move(between.end() if between else self._at)
            if self._at == len(self._text):
                continue
            value, end = self._value(self._at)
            if value is not None:
                records = list(self._records_in(value)) or ([] if behind or _is_frame(value) else [None])
                header, behind = False, behind and not records
                yield from [JsonRecord(self._line, record) for record in records]
                self._move(end)
            elif header and (inside := self._inside_array()) is not None:
                header = inside == len(self._text)
                self._move(inside)
            else:
                begun, line, text = self._at, self._line, self._text
                followed = self._to_next_record()
                skipped = text[begun : self._at]
                damaged = len(self._marks.findall(skipped))
                if not damaged and (followed or not behind) and not self._is_between(skipped):
                    damaged = 1
                header, behind = False, True
                yield from [JsonRecord(line, None)] * damaged

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

    def _inside_array(self) -> int | None:
        """Return the place behind the beginning of the array of records, in an object that is too large to parse.

        Return the end of the text in memory if neither the array nor a record has begun, None if a record is first.
        """
        array, mark = _ARRAY.search(self._text, self._at), self._marks.search(self._text, self._at)
        if array is not None and (mark is None or array.end() <= mark.start()):
            return array.end()
        return len(self._text) if mark is None and self._text.startswith("{", self._at) else None

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
            elif isinstance(part, list) and any(isinstance(entry, dict) for entry in part):
                inside = [list(self._records_in(entry)) if isinstance(entry, dict) else [] for entry in part]
                if any(inside):
                    for records in inside:
                        yield from records or [None]

    def _is_between(self, skipped: str) -> bool:
        """Return whether a skipped text is a frame, not damage: none of its keys is one of the next record."""
        if not _FRAME.fullmatch(skipped):
            return False
        keys, (value, _) = set(_FRAME_KEY.findall(skipped)), self._value(self._at)
        return value is None or all(record is None or keys.isdisjoint(record) for record in self._records_in(value))

    def _to_next_record(self) -> bool:
        """Move behind damage, or behind the rest of an array. Return True at the next record, False if none is near."""
        begun = self._at
        at = begun + 1
        while (brace := _OBJECT.search(self._text, at)) is not None and brace.start() - begun < WINDOW:
            value, end = self._value(brace.start())
            if value is not None and any(self._records_in(value)):
                self._move(brace.start())
                return True
            at = end if value is not None else brace.end()

        self._move(len(self._text) if brace is None else brace.start())
        return False


def _is_frame(value: dict[str, Any]) -> bool:
    """Return whether an object without a record is no damaged record: it has an array, or is an action."""
    return any(isinstance(part, list) for part in value.values()) or value.keys() <= _ACTIONS
