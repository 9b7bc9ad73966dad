"""The lines of a log, plain or compressed, with any kind of line end. A log is read `PIECE` bytes at a time.

A folder is read as one log: all its files in the order of their paths, such as accounting with a file for each day.
"""

import bz2
import codecs
import io
import lzma
import os
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NoReturn

from shadowtime.shared.accounting.mapping import NAMES
from shadowtime.shared.bounds import MAX_DICTIONARY, MAX_LINE_LENGTH, MAX_LINES, MAX_LOG_SIZE, MAX_STREAMS
from shadowtime.shared.errors import TraceError
from shadowtime.shared.quoting import quote

PIECE = 1 << 20
"""Bytes that are unpacked at a time. Only this much of a log's text is in memory at once."""

PACKED_PIECE = 1 << 16
"""Bytes of a packed file that are read at a time."""

HEAD = 1 << 16
"""Bytes at the beginning of a log that show its format."""

GZIP, XZ, BZIP2, ZSTD, ZIP = b"\x1f\x8b", b"\xfd7zXZ\x00", b"BZh", b"\x28\xb5\x2f\xfd", b"PK\x03\x04"
"""First bytes of compressed files."""

PZSTD = b"\x50\x2a\x4d\x18"
"""First bytes of files of `pzstd`, which precedes each frame by its size."""

PACKED = {GZIP: "gzip", XZ: "xz", BZIP2: "bzip2", ZSTD: "zstd", PZSTD: "zstd", ZIP: "zip"}
"""Names of compressions by the first bytes of a file."""

SUFFIXES = (".gz", ".xz", ".bz2", ".zst", ".zip")
"""Last parts of the names of compressed files."""

BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}

DAMAGED = (EOFError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, NotImplementedError)
"""Errors of libraries about compressed files."""


def lines_of(path: Path) -> Iterator[list[bytes]]:
    r"""Yield the lines of a log, some thousands at a time, without their line ends.

    Lone carriage returns are line ends, too. Otherwise a whole old file would look like one long line. A byte order
    mark at the beginning of a line is left out: files may have been appended to each other.

    Raise `TraceError` if the file cannot be read, is a damaged compressed file, or is larger or has more or longer
    lines than a log may have.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     written = Path(folder, "log").write_bytes(b"; Version: 2\r\n1 2\r3 4")
    ...     list(lines_of(Path(folder, "log")))
    [[b'; Version: 2', b'1 2'], [b'3 4']]
    """
    left, before = b"", 0
    for piece in contents_of(path):
        text = left + piece
        held = text.endswith(b"\r")  # perhaps the first half of \r\n
        text = text[:-1] if held else text
        if b"\r" in text:
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        lines = text.split(b"\n")
        left = lines.pop() + b"\r" * held
        if BYTE_ORDER_MARK in text:
            lines = [line.removeprefix(BYTE_ORDER_MARK) for line in lines]
        longest = max(map(len, lines), default=0)
        if max(longest, len(left)) > MAX_LINE_LENGTH:
            number = next((n for n, line in enumerate(lines, 1) if len(line) > MAX_LINE_LENGTH), len(lines) + 1)
            raise TraceError(f"{path}, line {before + number}: longer than the maximum of {MAX_LINE_LENGTH:,} bytes")
        before += len(lines)
        if before > MAX_LINES:
            raise TraceError(f"{path}, line {MAX_LINES + 1}: a log has at most {MAX_LINES:,} lines; split it")
        yield lines

    yield [left.removesuffix(b"\r").removeprefix(BYTE_ORDER_MARK)]


def numbered_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a log that are not blank, each with its line number. Raises as `lines_of` does."""
    last = 0
    for lines in lines_of(path):
        for number, line in enumerate(lines, last + 1):
            text = line.decode(errors="replace")
            if text and not text.isspace():
                yield number, text
        last += len(lines)


def ends_with_a_line(path: Path) -> bool:
    """Return whether a file, or the last file of a folder, ends with a line end.

    This is assumed of compressed, UTF-16 and empty files.
    """
    with files_of(path)[-1].open("rb") as file:
        begins = file.read(max(map(len, PACKED)))
        if begins.startswith((*PACKED, *_UTF_16)) or not file.seek(0, os.SEEK_END):
            return True
        file.seek(-1, os.SEEK_END)
        return file.read(1) in b"\r\n"


def files_of(path: Path) -> list[Path]:
    """Return the files in a folder and its subfolders, in the order of their paths. For a file, return the file alone.

    Hidden files and folders do not count.

    Raise `TraceError` if the folder has no file, or the file system refuses to list it.
    """
    inside: list[Path] = []
    try:
        if not path.is_dir():
            return [path]
        for folder, inner, names in os.walk(path, onerror=_refuse):
            inner[:] = [name for name in inner if not name.startswith(".")]
            inside += [Path(folder, name) for name in names if not name.startswith(".")]
        inside = [file for file in inside if file.is_file()]
    except OSError as error:  # no permission, or too long a name
        raise TraceError(f"{error.filename or path}: cannot be read: {error.strerror}") from error

    _refuse_lost_columns(path, inside)
    if not inside:
        raise TraceError(f"{path}: a folder without files; expected a log, or a folder with its parts")
    return sorted(inside)


def _refuse_lost_columns(path: Path, inside: Iterable[Path]) -> None:
    """Raise `TraceError` if the names of subfolders have different values of a column that is read, as `cluster=a`."""
    values: dict[str, set[str]] = {}
    for file in inside:
        for part in file.relative_to(path).parts[:-1]:
            name, equals, value = part.partition("=")
            if equals:
                values.setdefault(name, set()).add(value)
    for name, different in values.items():
        if name.lower() in NAMES and len(different) > 1:
            shown = ", ".join(map(quote, sorted(different)[:3]))
            raise TraceError(
                f"{path}: its subfolders state {name} ({shown}{', …' * (len(different) > 3)}), which the files lack; "
                "read the subfolders one by one, or write the column into the files"
            )


def _refuse(error: OSError) -> NoReturn:
    raise error


def is_pipe(path: Path) -> bool:
    """Return whether a path is standard input (`-`) or another pipe, which can be read only once."""
    try:
        return str(path) == "-" or stat.S_ISFIFO(path.stat().st_mode)
    except (OSError, ValueError):
        return False


@contextmanager
def kept(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield a temporary file with the contents of a pipe, and the name of the pipe.

    Raise `TraceError` if the pipe cannot be read, or has more bytes than a log may have.
    """
    name = "standard input" if str(path) in ("-", "/dev/stdin") else path.name
    with tempfile.TemporaryDirectory(prefix="shadowtime-") as folder:
        copy, total = Path(folder, "log"), 0
        try:
            with open(0 if str(path) == "-" else path, "rb", closefd=str(path) != "-") as pipe, copy.open("wb") as file:
                while piece := pipe.read(PIECE):
                    total += len(piece)
                    if total > MAX_LOG_SIZE:
                        raise TraceError(f"{name}: a log has at most {MAX_LOG_SIZE:,} bytes; split it")
                    file.write(piece)
        except OSError as error:
            raise TraceError(f"{name}: cannot be read: {error.strerror}") from error
        yield copy, name


def whole_contents(path: Path, limit: int) -> bytes:
    """Return the whole contents of a file, unpacked and in UTF-8.

    Raise `TraceError` if the file cannot be read, or has more than `limit` bytes.
    """
    pieces, total = list[bytes](), 0
    for piece in contents_of(path):
        total += len(piece)
        if total > limit:
            raise TraceError(f"{path}: expected at most {limit:,} bytes, unpacked; split it")
        pieces.append(piece)
    return b"".join(pieces)


def beginning_of(path: Path) -> bytes:
    """Return the first `HEAD` bytes of a log, unpacked; nothing if it cannot be read."""
    read = b""
    try:
        for piece in contents_of(path, HEAD):
            read += piece
            if len(read) >= HEAD:
                break
    except TraceError:
        return b""
    return read[:HEAD]


def first_lines(head: bytes, most: int = 20) -> list[bytes]:
    r"""Return at most `most` whole lines of the beginning of a log. A single line counts without its line end, too.

    >>> first_lines(b"; Version: 2\r\n1 2\n"), first_lines(b"1 2")
    ([b'; Version: 2', b'1 2'], [b'1 2'])
    """
    lines = head.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n", most)
    return lines[:most] if len(lines) > most else lines[:-1] or lines


def contents_of(path: Path, piece_size: int | None = None) -> Iterator[bytes]:
    """Yield the contents of a log, unpacked, in UTF-8 and without a byte order mark.

    Up to `piece_size` bytes are unpacked at a time, `PIECE` if it is None.

    Raise `TraceError` as in `lines_of`, except for the bounds on lines.
    """
    total, piece = 0, b"\n"
    for part in files_of(path):
        if not piece.endswith((b"\n", b"\r")):
            yield b"\n"  # the last line of the file before has no end
        for piece in _pieces_of(part, piece_size or PIECE):
            total += len(piece)
            if total > MAX_LOG_SIZE:
                raise TraceError(f"{path}: a log has at most {MAX_LOG_SIZE:,} bytes, unpacked; split it")
            yield piece


def _pieces_of(path: Path, piece_size: int) -> Iterator[bytes]:
    packing = ""
    try:
        with path.open("rb") as file:
            begins = file.peek(8)[:8]
            packing = next((name for magic, name in PACKED.items() if begins.startswith(magic)), "")
            with _unpacked(file, packing) as source:
                first = source.read(piece_size)
                decoder, piece = _decoder(first)
                while first:
                    yield piece if decoder is None else decoder.decode(piece).encode(errors="surrogatepass")
                    first = piece = source.read(piece_size)
    except TraceError as error:
        raise TraceError(f"{path}: {error}") from None
    except DAMAGED as error:
        raise TraceError(f"{path}: truncated or damaged {packing} file: {error or type(error).__name__}") from error
    except OSError as error:
        if packing and error.errno is None:
            raise TraceError(f"{path}: truncated or damaged {packing} file: {error}") from error
        raise TraceError(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:  # a path that no file can have
        raise TraceError(f"{path}: cannot be read: {error}") from error


def _decoder(first: bytes) -> tuple[Any, bytes]:
    """Return the decoder of a UTF-16 text, None for another text, and its first bytes without a byte order mark."""
    for mark, encoding in _UTF_16.items():
        if first.startswith(mark):
            return codecs.getincrementaldecoder(encoding)(errors="replace"), first[len(mark) :]
    return None, first.removeprefix(BYTE_ORDER_MARK)


@contextmanager
def _unpacked(file: BinaryIO, packing: str) -> Iterator[Any]:
    """Yield a reader of the unpacked bytes of an open file."""
    if packing == "gzip":
        yield io.BufferedReader(_Unpacker(file, _GzipMember))
    elif packing == "xz":
        yield io.BufferedReader(_Unpacker(file, lambda: lzma.LZMADecompressor(memlimit=MAX_DICTIONARY)))
    elif packing == "bzip2":
        yield io.BufferedReader(_Unpacker(file, bz2.BZ2Decompressor))
    elif packing == "zip":
        with zipfile.ZipFile(file) as archive, archive.open(_only_member(archive)) as member:
            yield member
    elif packing == "zstd":
        try:
            import pyarrow  # here: the import takes a third of a second
        except ModuleNotFoundError:
            raise TraceError("to read zstd files, pip install 'shadowtime[frames]', or run unzstd") from None
        with pyarrow.CompressedInputStream(file, "zstd") as stream:
            yield stream
    else:
        yield file


def _only_member(archive: zipfile.ZipFile) -> zipfile.ZipInfo:
    """Return the only file in an archive. Folders, and files that macOS adds, do not count."""
    members = [
        member for member in archive.infolist() if not member.is_dir() and not member.filename.startswith("__MACOSX/")
    ]
    for name, program in (("[Content_Types].xml", "an Excel"), ("mimetype", "a LibreOffice")):
        if any(member.filename == name for member in members):
            raise TraceError(f"this is {program} table; export the table of jobs as CSV")
    if len(members) != 1:
        raise TraceError(f"expected a zip archive with one file, found {len(members)}; unpack it first")
    if members[0].flag_bits & 1:
        raise TraceError("the file in the archive is encrypted; unpack it first")
    if members[0].compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2):
        raise TraceError("the file in the archive is compressed by an unusual method; unpack it first")
    return members[0]


class _GzipMember:
    """A decompressor of one member of gzip data, with the interface of those in `bz2` and `lzma`."""

    def __init__(self) -> None:
        self._stream = zlib.decompressobj(wbits=zlib.MAX_WBITS + 16)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail + data, max(max_length, 0))


class _Unpacker(io.RawIOBase):
    """Reader of the streams in a file, one after the other, with bounded memory. `LZMAFile` has no such bound.

    At the end of each stream, the bytes behind it are copied. Therefore few bytes are read at a time, and the number of
    streams is limited, since a stream may be empty. `new` makes the decompressor of a stream.
    """

    def __init__(
        self, file: BinaryIO, new: "Callable[[], bz2.BZ2Decompressor | lzma.LZMADecompressor | _GzipMember]"
    ) -> None:
        self._file = file
        self._new = new
        self._stream = new()
        self._streams = 1
        self._packed = 0

    def readable(self) -> bool:
        return True

    def readinto(self, target: Any) -> int:
        while True:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data.lstrip(b"\0")  # there may be padding behind a stream
                while not data:
                    if not (read := self._more()):
                        return 0
                    data = read.lstrip(b"\0")
                self._streams += 1
                if self._streams > MAX_STREAMS:
                    raise TraceError(f"a packed log has at most {MAX_STREAMS:,} streams; unpack it first")
                self._stream = self._new()
            elif self._stream.needs_input and not (data := self._more()):
                raise EOFError("it ends in the middle of a stream")
            if piece := self._stream.decompress(data, len(target)):
                target[: len(piece)] = piece
                return len(piece)

    def _more(self) -> bytes:
        read = self._file.read(PACKED_PIECE)
        self._packed += len(read)
        if self._packed > MAX_LOG_SIZE:
            raise TraceError(f"a packed log has at most {MAX_LOG_SIZE:,} bytes; split it")
        return read
