"""The lines of a log, plain or compressed, with any kind of line end. A log is read `PIECE` bytes at a time."""

import gzip
import zlib
from collections.abc import Iterator
from os import SEEK_END
from pathlib import Path
from typing import BinaryIO

from shadowtime.shared.bounds import MAX_LINE_LENGTH, MAX_LINES, MAX_LOG_SIZE
from shadowtime.shared.errors import TraceError

PIECE = 1 << 20
"""Bytes unpacked at a time. Only this much of a log's text is in memory at once."""

HEAD = 1 << 16
"""Bytes at the beginning of a log that show its format."""

GZIP = b"\x1f\x8b"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def lines_of(path: Path) -> Iterator[list[bytes]]:
    r"""Yield the lines of a log, some thousands at a time, without their line ends.

    Lone carriage returns are line ends, too. Otherwise a whole old file would look like one long line.

    Raises
    ------
    TraceError
        If the file cannot be read, is a damaged gzip file, or has more or longer lines than a log may have.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = Path(folder, "log").write_bytes(b"; Version: 2\r\n1 2\r3 4")
    ...     list(lines_of(Path(folder, "log")))
    [[b'; Version: 2', b'1 2'], [b'3 4']]
    """
    left, before = b"", 0
    for piece in _pieces(path):
        text = left + piece
        held = text.endswith(b"\r")  # perhaps the first half of \r\n
        text = text[:-1] if held else text
        lines = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        left = lines.pop() + b"\r" * held
        longest = max(map(len, lines), default=0)
        if max(longest, len(left)) > MAX_LINE_LENGTH:
            number = next((n for n, line in enumerate(lines, 1) if len(line) > MAX_LINE_LENGTH), len(lines) + 1)
            raise TraceError(f"{path}, line {before + number}: longer than {MAX_LINE_LENGTH:,} bytes")
        before += len(lines)
        if before > MAX_LINES:
            raise TraceError(f"{path}, line {MAX_LINES + 1}: a log has at most {MAX_LINES:,} lines")
        yield lines

    yield [left.removesuffix(b"\r")]


def contents_of(path: Path) -> Iterator[bytes]:
    """Yield the contents of a log, unpacked and without a byte order mark, `PIECE` bytes at a time.

    Raises
    ------
    TraceError
        As in `lines_of`, except for the bounds on lines.
    """
    return _pieces(path)


def beginning_of(path: Path) -> bytes:
    """Return the first `HEAD` bytes of a log, unpacked; nothing if it cannot be read."""
    try:
        return next(_pieces(path), b"")[:HEAD]
    except TraceError:
        return b""


def first_lines(head: bytes, most: int = 20) -> list[bytes]:
    r"""Return the first whole lines of the beginning of a log.

    >>> first_lines(b"; Version: 2\r\n1 2\n"), first_lines(b"1 2")
    ([b'; Version: 2', b'1 2'], [b'1 2'])
    """
    lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", most)
    return lines[:most] if len(lines) > most else lines[:-1] or lines


def ends_with_a_line(path: Path) -> bool:
    """Return whether a file ends with a line end. For compressed and empty files this is assumed."""
    with path.open("rb") as file:
        if file.read(len(GZIP)) == GZIP or not file.seek(0, SEEK_END):
            return True
        file.seek(-1, SEEK_END)
        return file.read(1) in b"\r\n"


def _pieces(path: Path) -> Iterator[bytes]:
    """Yield the contents of a log, unpacked and without a byte order mark, `PIECE` bytes at a time."""
    try:
        with path.open("rb") as file:
            source: BinaryIO | gzip.GzipFile = gzip.GzipFile(fileobj=file) if file.peek(2)[:2] == GZIP else file
            total = 0
            while piece := source.read(PIECE):
                yield piece if total else piece.removeprefix(BYTE_ORDER_MARK)
                total += len(piece)
                if total > MAX_LOG_SIZE:
                    raise TraceError(f"{path}: a log has at most {MAX_LOG_SIZE:,} bytes, unpacked")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: truncated or damaged gzip file: {error}") from error
    except OSError as error:
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a path that no file can have
        raise TraceError(f"{path}: cannot be read: {error}") from error
