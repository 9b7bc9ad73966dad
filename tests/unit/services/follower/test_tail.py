"""Each line once, whatever becomes of the file meanwhile, also by a reader that goes on where another was."""

import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import pytest

from shadowtime.services.follower.io.tail import PIECE, Tail
from shadowtime.shared.errors import FollowError

DAILY = re.compile(r"[0-9]{8}")


class Reader:
    """A tail that may be killed before every read: then the next goes on from what was stored."""

    def __init__(self, path: Path, *, killed: Callable[[], bool] = lambda: False) -> None:
        self._path, self._killed = path, killed
        self.tail = Tail(path, DAILY)
        self.read: list[str] = []

    def go_on(self) -> None:
        for _ in range(6):
            if self._killed():
                state = self.tail.snapshot()
                self.tail.close()
                self.tail = Tail(self._path, DAILY)
                self.tail.restore(state)
            self.read += ["too long" if line.text is None else line.text.decode() for line in self.tail.read()]


@pytest.fixture(params=(False, True), ids=("alive", "killed before every read"))
def reader_of(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Reader]]:
    made: list[Reader] = []

    def make(path: Path) -> Reader:
        made.append(Reader(path, killed=lambda: request.param))
        return made[-1]

    yield make
    for reader in made:
        reader.tail.close()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_the_days_of_a_folder_follow_each_other(tmp_path: Path, reader_of: Callable[[Path], Reader]) -> None:
    reader = reader_of(tmp_path)
    reader.go_on()
    append(tmp_path / "20261122", "a\nb\nc")
    append(tmp_path / "notes", "no day\n")
    reader.go_on()
    assert reader.read == ["a", "b"]
    append(tmp_path / "20261122", "c\nd")  # its last line has no end
    append(tmp_path / "20261123", "e\n")
    reader.go_on()
    assert reader.read == ["a", "b", "cc", "d", "e"]
    append(tmp_path / "20261124", "")
    append(tmp_path / "20261125", "f\r\n\n")
    reader.go_on()
    assert reader.read[5:] == ["f", ""]


def test_a_file_that_is_rotated_is_read_to_its_end(tmp_path: Path, reader_of: Callable[[Path], Reader]) -> None:
    path = tmp_path / "jobs[1]"
    append(path, "a\nb\n")
    reader = reader_of(path)
    reader.go_on()
    path.rename(tmp_path / "jobs[1].1")
    append(tmp_path / "jobs[1].1", "c\n")
    reader.go_on()
    append(path, "d\n")
    reader.go_on()
    assert reader.read == ["a", "b", "c", "d"]


def test_a_file_that_was_emptied_is_read_from_its_beginning(
    tmp_path: Path, reader_of: Callable[[Path], Reader]
) -> None:
    path = tmp_path / "jobs"
    append(path, "first line\nsecond\n")
    reader = reader_of(path)
    reader.go_on()
    shutil.copy(path, tmp_path / "jobs.1")
    os.truncate(path, 0)
    append(path, "third\n")
    reader.go_on()
    assert reader.read[-1] == "third"


def test_a_day_that_is_gone_is_passed_over_and_said(
    tmp_path: Path, reader_of: Callable[[Path], Reader], caplog: pytest.LogCaptureFixture
) -> None:
    append(tmp_path / "20261122", "a\n")
    reader = reader_of(tmp_path)
    reader.go_on()
    (tmp_path / "20261122").unlink()
    append(tmp_path / "20261123", "b\n")
    reader.go_on()
    assert reader.read == ["a", "b"]


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(FollowError, match="nowhere cannot be read: No such file"):
        Tail(tmp_path / "nowhere", DAILY).read()


def test_a_line_that_is_longer_than_what_is_read_at_once_ends(
    tmp_path: Path, reader_of: Callable[[Path], Reader]
) -> None:
    append(tmp_path / "20261122", "x" * (2 * PIECE + 7) + "\na\n")
    reader = reader_of(tmp_path)
    reader.go_on()
    assert reader.read[-1] == "a"
    assert set(reader.read[:-1]) == {"too long"}


def test_of_a_line_that_is_too_long_nothing_is_taken_for_another(
    tmp_path: Path, reader_of: Callable[[Path], Reader]
) -> None:
    append(tmp_path / "20261122", "x" * PIECE + '{"tail": "is taken"}\na\n')
    append(tmp_path / "20261123", "b\n")
    reader = reader_of(tmp_path)
    reader.go_on()
    assert reader.read == ["too long", "a", "b"]


def test_a_file_that_was_emptied_and_has_grown_again_is_read_from_its_beginning(
    tmp_path: Path, reader_of: Callable[[Path], Reader]
) -> None:
    path = tmp_path / "jobs"
    append(path, "aaaa\nbbbb\n")
    reader = reader_of(path)
    reader.go_on()
    path.write_text("cccccccccc\ndddd\neeee\n")
    reader.go_on()
    assert reader.read[2:] == ["cccccccccc", "dddd", "eeee"]


def test_what_is_no_file_is_said_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero")):
        with pytest.raises(FollowError, match="is neither a file nor a folder"):
            Tail(path, DAILY).read()


@pytest.mark.parametrize("seed", range(20))
def test_no_line_is_lost_or_read_twice(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    reader = Reader(tmp_path, killed=lambda: random.random() < 0.3)
    day, wanted = 20261101, []
    for number in range(300):
        text = f"line {number} " + "x" * random.randrange(40)
        for part in random.choice(((text + "\n",), (text[:5], text[5:] + "\n"))):
            append(tmp_path / str(day), part)
            if random.random() < 0.3:
                reader.go_on()
        wanted.append(text)
        if random.random() < 0.05:
            day += 1
    reader.go_on()
    reader.go_on()
    reader.tail.close()
    assert reader.read == wanted
