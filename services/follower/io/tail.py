"""Reader of the lines that are appended to a file, or to the newest file of a folder."""

import logging
import re
from dataclasses import asdict, dataclass
from glob import escape
from hashlib import sha256
from os import fstat
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from shadowtime.shared.bounds import MAX_LINE_LENGTH
from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import quote

log = logging.getLogger("shadowtime.follow")

PIECE = 2 * MAX_LINE_LENGTH
"""Number of bytes that are read at a time."""

HEAD = 1_024
"""Number of first bytes by which a file is recognized, even after it was renamed."""


class FileLine(NamedTuple):
    """A line without its line end. `where` has its file and number. `text` is None beyond `MAX_LINE_LENGTH` bytes."""

    where: str
    text: bytes | None


@dataclass
class Place:
    """The position of a reader: the file, the bytes and lines read, and a digest of the file's first bytes.

    `inside` says that the position is within a line that is longer than `PIECE`.
    """

    name: str = ""
    offset: int = 0
    lines: int = 0
    head: str = ""
    inside: bool = False


class Tail:
    r"""Reader that returns each line once, when its end is written.

    A file of a folder is complete when a file with a later name exists. A single file is complete when another file has
    its name (`logrotate` with `create`). A file that was emptied (`copytruncate`) is read from its beginning.

    Parameters
    ----------
    path
        A file, or a folder.
    named
        Pattern of the names of a folder's files. Other files are ignored.
    since
        Unix second. In a folder, reading begins at the first file that was written to since then, or else at the last
        file.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     first, second = Path(folder, "1.log"), Path(folder, "2.log")
    ...     tail = Tail(Path(folder), re.compile(r"[0-9]+\.log"))
    ...     _ = first.write_text("one\ntw")
    ...     before = [line.text for line in tail.read()]
    ...     _ = first.write_text("one\ntwo"), second.write_text("three\n")
    ...     after = [line.text for _ in range(3) for line in tail.read()]
    ...     tail.close()
    >>> before, after
    ([b'one'], [b'two', b'three'])
    """

    def __init__(self, path: Path, named: re.Pattern[str], since: float = 0.0) -> None:
        self.place = Place()
        self._path = path
        self._named = named
        self._file: BinaryIO | None = None
        self._since = since

    def read(self) -> list[FileLine]:
        """Return the next lines, up to 1 MiB; an empty list if there are none yet.

        Raise `FollowError` if the file, or the folder, cannot be read.
        """
        try:
            return self._read()
        except OSError as error:
            self.close()
            raise FollowError(f"{self._path} cannot be read: {error.strerror}") from error

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def snapshot(self) -> dict[str, Any]:
        """Return the position."""
        return asdict(self.place)

    def restore(self, state: dict[str, Any]) -> None:
        """Continue at the position that `snapshot` returned."""
        self.close()
        self.place = Place(**state)

    def _read(self) -> list[FileLine]:
        if self._path.exists() and not (self._path.is_dir() or self._path.is_file()):
            raise FollowError(f"{self._path} is neither a file nor a folder")
        file = self._file or self._opened()
        if file is None:
            return []
        over = self._follower() is not None  # checked before the read: a complete file gets no more lines
        if self.place.offset and not self._is_same(file):
            log.warning("%s was emptied; lines that were not read before are lost", self.place.name)
            self.place = Place(self.place.name)
        file.seek(self.place.offset)
        data = file.read(PIECE)
        end = data.rfind(b"\n") + 1
        if not end and over and len(data) < PIECE:
            last = self.place
            after = self._follower()
            self.close()
            self._go_to(after)
            return [_line(last.name, last.lines + 1, data)] if data else []

        if not end and len(data) < PIECE:
            return []
        taken = data[: end or len(data)]  # the first part of a line longer than `PIECE` is returned, to be refused
        self._remember(file, len(taken))
        first = self.place.lines + 1
        complete = taken.split(b"\n")[:-1] if end else [taken]
        if self.place.inside:  # skip the rest of a line with a refused first part
            complete, self.place.lines = complete[1:], self.place.lines + bool(end)
            first = self.place.lines + 1
        self.place.inside = not end
        self.place.lines += len(complete) if end else 0
        return [_line(self.place.name, number, text) for number, text in enumerate(complete, first)]

    def _remember(self, file: BinaryIO, taken: int) -> None:
        before = min(self.place.offset, HEAD)
        self.place.offset += taken
        if before < HEAD:
            file.seek(0)
            self.place.head = _digest(file, self.place.offset)

    def _opened(self) -> BinaryIO | None:
        """Open and return the file that was read, even if it was renamed.

        If that file is gone, open the next file. If no file was read yet, open the first file. Return None if there is
        no file to open.
        """
        if self.place.name:
            for path in (self._of(self.place.name), *self._siblings()):
                if path.is_file() and (file := self._same(path)) is not None:
                    self._file = file
                    return file

            if self.place.offset:
                log.warning("%s is gone; its last lines may be missing", quote(self.place.name))
            self._go_to(self._follower())
        else:
            self._go_to(self._first())

        return self._file

    def _same(self, path: Path) -> BinaryIO | None:
        file = path.open("rb")
        if self._is_same(file):
            return file
        file.close()
        return None

    def _is_same(self, file: BinaryIO) -> bool:
        """Return whether `file` is the file that was read, and is not shorter than the part that was read."""
        offset = self.place.offset
        return not offset or (fstat(file.fileno()).st_size >= offset and _digest(file, offset) == self.place.head)

    def _go_to(self, path: Path | None) -> None:
        if path is not None and path.is_file():
            self._file = path.open("rb")
            self.place = Place(path.name)

    def _of(self, name: str) -> Path:
        return self._path / name if self._path.is_dir() else self._path

    def _siblings(self) -> list[Path]:
        """Return the possible new files of a renamed single file. Each new name begins with the old name."""
        if self._path.is_dir():
            return []
        return sorted(self._path.parent.glob(f"{escape(self._path.name)}*"))

    def _files(self) -> list[Path]:
        names = (path for path in self._path.iterdir() if self._named.fullmatch(path.name) and path.name.isprintable())
        return sorted(path for path in names if path.is_file())

    def _first(self) -> Path | None:
        if not self._path.is_dir():
            return self._path if self._path.stat() else None
        files = self._files()
        return next((file for file in files if file.stat().st_mtime >= self._since), files[-1] if files else None)

    def _follower(self) -> Path | None:
        """Return the next file after the current one; None if there is none yet."""
        if self._path.is_dir():
            return next((file for file in self._files() if file.name > self.place.name), None)
        if not self._path.exists():
            return None
        if self._file is None:
            return self._path
        now, known = self._path.stat(), fstat(self._file.fileno())
        return None if (now.st_dev, now.st_ino) == (known.st_dev, known.st_ino) else self._path


def _digest(file: BinaryIO, offset: int) -> str:
    file.seek(0)
    return sha256(file.read(min(offset, HEAD))).hexdigest()


def _line(name: str, number: int, text: bytes) -> FileLine:
    text = text.removesuffix(b"\r")
    return FileLine(f"{name}, line {number}", text if len(text) <= MAX_LINE_LENGTH else None)
