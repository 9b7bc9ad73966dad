"""Each format of accounting, read by its reader and by plain iteration over the same file: seconds for 100,000 jobs.

JSON is compared with `json.loads` of the whole file, or of each line. All else is compared with a loop over its lines.
"""

import json
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from shadowtime.replayer.logs.formats import AS_READ, format_of
from shadowtime.replayer.logs.swf import read_swf
from shadowtime.shared.cli.command_line import run_app
from tests.support.written_logs import WRITINGS, ran, written_jobs

JOBS = 50_000
TURNS = 3


def formats() -> list[dict[str, Any]]:
    """Write a year in each format, read each file in turns, and return what that measured."""
    jobs = [job for job in written_jobs(JOBS) if ran(job)]
    measured = []
    with TemporaryDirectory() as folder:
        for name, writing in WRITINGS.items():
            path = Path(folder, name)
            path.write_text(writing.write(jobs).text)
            plain, ours = _plain(path), _reader(path)
            turns = [(_seconds(plain), _seconds(ours)) for _ in range(TURNS)]
            scale = 1e5 / len(jobs)
            base, taken = (min(seconds) * scale for seconds in zip(*turns, strict=True))
            measured.append(
                {
                    "benchmark": "formats",
                    "format": name,
                    "megabytes": round(path.stat().st_size * scale / 1e6),
                    "plain_seconds": round(base, 3),
                    "seconds": round(taken, 3),
                    "times": round(taken / base, 1),
                }
            )
            path.unlink()
    return measured


def _reader(path: Path) -> Callable[[], object]:
    form = format_of(path)
    return (lambda: read_swf(path)) if form is None else lambda: form.read(path, AS_READ)


def _plain(path: Path) -> Callable[[], object]:
    text = path.read_text()
    try:
        json.loads(text)
    except ValueError:
        try:
            json.loads(text[: text.index("\n")])
        except ValueError:
            return lambda: _lines(path)
        return lambda: _json_lines(path)
    return lambda: json.loads(path.read_bytes())


def _lines(path: Path) -> int:
    count = 0
    with path.open() as file:
        for line in file:
            count += len(line)
    return count


def _json_lines(path: Path) -> int:
    with path.open() as file:
        return sum(len(json.loads(line)) for line in file)


def _seconds(work: Callable[[], object]) -> float:
    begun = time.process_time()
    work()
    return time.process_time() - begun


if __name__ == "__main__":
    run_app(lambda: print("\n".join(json.dumps(row) for row in formats())))
