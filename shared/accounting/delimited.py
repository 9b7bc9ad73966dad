"""Rows of text with a delimiter. A damaged row is left out and harms no other row."""

import csv
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations, pairwise
from typing import NamedTuple

from shadowtime.shared.accounting.odd_rows import OddRows
from shadowtime.shared.quoting import quote

MAX_PARTS = 50
"""The maximum number of lines of one row, and of its surplus delimiters."""

MAX_QUOTED = 10_000
"""The maximum number of lines of one row if its quotes show that it goes on, as of a table with job scripts."""

MAX_TRIES = 300
"""The maximum number of ways that are tried to share surplus delimiters among the fields of free text."""

Fields = list[str]


class Shape(NamedTuple):
    """The form of lines, by which they are split into fields.

    `spans` has begin and end of each field of fixed width, as of a slice; it is empty for other fields. A blank as
    delimiter stands for any number of blanks. `free` has the indices of the fields of free text, which may contain the
    delimiter or a line end. `quoted` says whether a field in quotes may contain the delimiter.
    """

    names: Sequence[str]
    delimiter: str
    spans: Sequence[tuple[int, int]] = ()
    free: Sequence[int] = ()
    quoted: bool = False

    def split(self, text: str) -> Fields:
        """Return the fields of a line, more or fewer than `names` if it is damaged.

        >>> Shape(["job", "name"], ",", quoted=True).split('17,"a,b"'), Shape(["job", "name"], "|").split("17|a|")
        (['17', 'a,b'], ['17', 'a'])
        >>> Shape(["job", "name"], " ", spans=[(0, 3), (4, 8)]).split("17      a")
        ['17', 'a']
        """
        if self.spans:
            return self._cut(text)
        if self.quoted and '"' in text:
            fields = self._unquoted(text)
        else:
            fields = text.split(None if self.delimiter == " " else self.delimiter)
        if len(fields) == len(self.names) + 1 and not fields[-1]:  # sacct -p ends each line with a delimiter
            fields.pop()
        return fields

    def _unquoted(self, text: str) -> Fields:
        r"""Return the fields of a line with quotes, of which those within a field are doubled or have a backslash.

        >>> Shape(["job", "name"], ",", quoted=True).split(r'17,"a \"b\", c"')
        ['17', 'a "b", c']
        """
        for escape in (None, "\\") if "\\" in text else (None,):
            try:
                lines = csv.reader(
                    [text], delimiter=self.delimiter, strict=True, doublequote=escape is None, escapechar=escape
                )
                return next(lines, [])
            except csv.Error:
                continue
        return text.split(self.delimiter)  # quotes within a text, which mean nothing

    def _cut(self, text: str) -> Fields:
        fields = self._at_spans(text)
        if fields is None and not text.isascii():  # sacct counts bytes, and a character may have several
            fields = self._at_spans(text.encode(errors="surrogateescape").decode("latin-1")) or []
            fields = [field.encode("latin-1").decode(errors="surrogateescape") for field in fields]
        return fields or [text]

    def _at_spans(self, text: str) -> Fields | None:
        """Return the fields of fixed width, or None if a field goes beyond its width."""
        if len(text) <= self.spans[0][1] or any(text[end : end + 1] not in ("", " ") for _, end in self.spans[:-1]):
            return None
        first, last = self.spans[-1]
        fields = [text[begin:end].strip() for begin, end in self.spans[:-1]]
        return [*fields, text[first : max(last, len(text))].strip()]


class RowReader:
    r"""Reader of rows from lines. It joins the lines of a row, and leaves out lines that belong to no row.

    Parameters
    ----------
    shape
        The form of the lines.
    is_row
        Returns whether fields are a row, that is, whether all values are valid. It is called only for irregular rows.
    odd
        Counts the lines that are no rows.

    Examples
    --------
    >>> odd = OddRows()
    >>> reader = RowReader(Shape(["job", "text", "size"], "|", free=[1]), lambda row: row[2].isdecimal(), odd)
    >>> reader.take([(1, "7|a|4"), (2, "8|a|b|4"), (3, "9|a"), (4, "b|4"), (5, "oops"), (6, "10|a|4")])
    ([1, 2, 3, 6], [['7', 'a', '4'], ['8', 'a|b', '4'], ['9', 'a\nb', '4'], ['10', 'a', '4']])
    >>> reader.finish(), odd.first
    (([], [], None), [(5, "1 field, but 3 in the head: 'oops'")])
    """

    def __init__(self, shape: Shape, is_row: Callable[[Fields], bool], odd: OddRows) -> None:
        self.shape = shape
        self._is_row = is_row
        self._odd = odd
        self._parts: list[tuple[int, str, Fields | None]] = []
        """Lines that may be parts of a row: number, text, and the fields if the line may also be a whole row."""
        self._open = False
        """Whether these lines have an odd number of quotes, so that a field in quotes goes on."""

    @property
    def waits(self) -> bool:
        """Whether lines are kept that may be parts of a row."""
        return bool(self._parts)

    def take(self, lines: Sequence[tuple[int, str]]) -> tuple[list[int], list[Fields]]:
        """Return the line numbers and the fields of the next rows, from numbered lines."""
        size, split, quoted = len(self.shape.names), self.shape.split, self.shape.quoted
        numbers: list[int] = []
        rows: list[Fields] = []
        for number, text in lines:
            fields = split(text)
            if len(fields) == size and not (self._parts or (quoted and text.count('"') % 2)):
                numbers.append(number)
                rows.append(fields)
            elif text and not text.isspace():
                for line, row in self._irregular(number, text, fields):
                    numbers.append(line)
                    rows.append(row)

        return numbers, rows

    def finish(self) -> tuple[list[int], list[Fields], tuple[int, str] | None]:
        """Return the last rows as `take` does, and the number and text of the last line if it is cut off, else None.

        Other lines that are no rows are counted as odd.
        """
        if self._open and not any(row for *_, row in self._parts):  # the file ends within quotes
            del self._parts[1:]
        cut = self._parts.pop()[:2] if self._parts and self._parts[-1][2] is None else None
        last = list(self._give_up(len(self._parts)))
        return [line for line, _ in last], [row for _, row in last], cut

    def _irregular(self, number: int, text: str, fields: Fields) -> Iterator[tuple[int, Fields]]:
        """Yield the row that ends with this line, after those earlier lines that turn out to be whole rows."""
        size, parts = len(self.shape.names), self._parts
        whole = fields if len(fields) == size else self._shared_out(fields)
        valid = whole is not None and self._is_row(whole)
        odd = self._has_odd_quotes(text)
        if whole is not None and not odd and (valid or not parts):
            yield from self._give_up(len(parts))
            yield number, whole
            return

        inside = self._open and not odd
        for first in range(0 if inside else len(parts) if len(parts) <= MAX_PARTS else 1):
            lines = "\n".join([*(part[1] for part in parts[first:]), text])
            joined = self.shape.split(lines)
            row = joined if len(joined) == size else self._shared_out(joined)
            if row is not None and self._may_be_joined(lines, row) and self._is_row(row):
                line = parts[first][0]
                yield from self._give_up(first)
                parts.clear()
                self._open = False
                yield line, row
                return

        parts.append((number, text, whole if valid else None))
        self._open ^= odd
        too_long = len(fields) > size and not (odd or inside)  # an open quote may enclose the surplus delimiters
        if too_long or len(parts) > (MAX_QUOTED if self._open else MAX_PARTS):
            yield from self._give_up(len(parts) if too_long or self._open else 1)

    def _has_odd_quotes(self, text: str) -> bool:
        return self.shape.quoted and text.count('"') % 2 == 1

    def _may_be_joined(self, text: str, row: Fields) -> bool:
        """Return whether the line ends of a row are within free text, if there are such fields, or perhaps in quotes.

        Otherwise a row with too few fields would take in the next one.
        """
        if not self.shape.free or (self.shape.quoted and '"' in text):
            return True
        return not any("\n" in field for at, field in enumerate(row) if at not in self.shape.free)

    def _shared_out(self, fields: Fields) -> Fields | None:
        """Return the fields, with surplus delimiters in the fields of free text; None if no way makes a row."""
        more, free = len(fields) - len(self.shape.names), self.shape.free
        if not (0 < more <= MAX_PARTS and free):
            return None
        for tries, dividers in enumerate(combinations(range(more + len(free) - 1), len(free) - 1)):
            if tries == MAX_TRIES:
                return None
            bounds = [-1, *dividers, more + len(free) - 1]
            row, at = [], 0
            shares = dict(zip(free, (after - before - 1 for before, after in pairwise(bounds)), strict=True))
            for place in range(len(self.shape.names)):
                taken = 1 + shares.get(place, 0)
                row.append(self.shape.delimiter.join(fields[at : at + taken]))
                at += taken
            if self._is_row(row):
                return row
        return None

    def _give_up(self, count: int) -> Iterator[tuple[int, Fields]]:
        """Yield the rows among the first lines that are kept, and count the others as odd."""
        for number, text, row in self._parts[:count]:
            if row is not None:
                yield number, row
                continue
            fields, size = len(self.shape.split(text)), len(self.shape.names)
            counted = f"{fields} field{'s' if fields != 1 else ''}, but {size} in the head"
            if fields > size:
                counted += f" (if a field contains {self.shape.delimiter!r}, print it with another delimiter)"
            self._odd.add(number, f"{counted if fields != size else 'not a row'}: {quote(text)}")
        self._open ^= bool(sum(self._has_odd_quotes(text) for _, text, _ in self._parts[:count]) % 2)
        del self._parts[:count]
