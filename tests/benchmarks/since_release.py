"""What has become slower since the last release: both checkouts beside each other, in one run.

`python -m tests.benchmarks.since_release [--against COMMIT] [--write]`. Figures are whole processes that take turns, so
that a machine whose speed drifts is no matter; the least of the runs counts, as all else can only add to it. The status
is 1 if one is worse by a tenth. `--write` keeps the ratios in `tests/benchmarks/history/VERSION.json`, with what the
figure is in loops of ten million multiplications in Python: what can be told of one machine to another.
"""

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any, NamedTuple

import typer

from shadowtime._version import __version__
from shadowtime.replayer.logs.swf import FIELDS, write_swf
from shadowtime.replayer.synthetic.generator import generate
from shadowtime.shared.cli.command_line import application, run_app, say
from shadowtime.shared.cli.paths import ROOT
from shadowtime.shared.errors import TraceError

HISTORY = ROOT / "tests" / "benchmarks" / "history"
WORSE = 1.1
LOOP = "x = 1.0\nfor i in range(10_000_000): x *= 1.0000001"

REPLAY = ("-m", "shadowtime", "replay", "LOG")
COMMANDS: dict[str, tuple[str, ...]] = {
    "help": ("-m", "shadowtime", "replay", "--help"),
    "first-jobs": (*REPLAY, "--jobs", "10", "--no-predictions"),
    "easy": (*REPLAY, "--policy", "easy", "--no-predictions"),
    "best": (*REPLAY, "--policy", "best", "--no-predictions"),
    "recorded": (*REPLAY, "--mode", "recorded", "--runtime", "experts"),
}
"""Cpu seconds of a process each; `LOG` is a generated log of `JOBS` jobs."""

STREAM = ("-m", "tests.benchmarks", "stream")
STREAMED = {
    "closed-replay": "median_ms",
    "closed-replay p99": "p99_ms",
    "recorded-replay": "events_per_second",
    "side-by-side 100": "events_per_second",
}
"""Figures of the stream, by what its benchmark calls them; of those per second more is better."""

JOBS = 10_000


class Figure(NamedTuple):
    """Of this checkout and of the other one, run by run; less is better."""

    name: str
    here: Sequence[float]
    there: Sequence[float]

    @property
    def ratio(self) -> float:
        """Return how much of the other one this one is.

        >>> Figure("easy", [3.0, 2.0], [4.0, 5.0]).ratio
        0.5
        """
        return min(self.here) / min(self.there)


def cpu_seconds(command: Sequence[str], checkout: Path) -> float:
    """Return user and system seconds of a Python process in a checkout; raises if it fails."""
    before = _spent()
    run(command, checkout)
    return _spent() - before


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run(command: Sequence[str], checkout: Path) -> str:
    """Run Python in a checkout and return what it prints.

    Raises
    ------
    TraceError
        If it fails; the last line that it says is in the message.
    """
    done = subprocess.run(
        [sys.executable, *command],
        cwd=checkout,
        env={**os.environ, "PYTHONPATH": str(checkout)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"])[-1]
        raise TraceError(f"{' '.join(command)} in {checkout}: {last}")
    return done.stdout


def commands(here: Path, there: Path, turns: int) -> Iterator[Figure]:
    """Yield the cpu of each command in both checkouts, in turn; the first run, which may compile, does not count."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "generated.swf")
        header, table = generate(JOBS, processors=256, seed=3, load=0.8)
        table[:, FIELDS.index("wait_time")] = 0
        write_swf(path, header, table)
        for name, words in COMMANDS.items():
            command = [str(path) if word == "LOG" else word for word in words]
            spent = [[cpu_seconds(command, each) for each in (here, there)] for _ in range(turns + 1)][1:]
            yield Figure(name, *zip(*spent, strict=True))


def streamed(here: Path, there: Path, turns: int) -> Iterator[Figure]:
    """Yield the figures of the stream in both checkouts, which take turns."""
    told = [[of_stream(run(STREAM, each)) for each in (here, there)] for _ in range(turns)]
    for name in told[0][0]:
        yield Figure(name, *zip(*[[each[name] for each in pair] for pair in told], strict=True))


def of_stream(printed: str) -> dict[str, float]:
    """Return the figures of a run of the benchmark; rates as seconds. Workers may print into its lines."""
    found: dict[str, float] = {}
    for line in (json.loads(line[line.index("{") :]) for line in printed.splitlines() if "{" in line):
        part = f"{line['part']} {line['runs']}" if "runs" in line else str(line["part"])
        for name, key in STREAMED.items():
            if name.removesuffix(" p99") == part:
                found[name] = 1 / line[key] if key.endswith("per_second") else line[key]
    return found


@contextmanager
def checked_out(commit: str) -> Iterator[Path]:
    """Check a commit out into a folder of its own."""
    with TemporaryDirectory() as folder:
        path = Path(folder, "checkout")
        git("worktree", "add", "--detach", str(path), commit)
        try:
            yield path
        finally:
            git("worktree", "remove", "--force", str(path))


def last_release() -> str:
    """Return the commit with which figures are compared: of the latest tag, or of the last file of the history.

    Raises
    ------
    TraceError
        If there is neither.
    """
    tagged = git("describe", "--tags", "--abbrev=0", "--match", "v*", wanted=False)
    if tagged:
        return tagged
    kept = [json.loads(path.read_bytes()) for path in HISTORY.glob("*.json")]
    if not kept:
        raise TraceError("there is no release yet: name a commit with --against")
    newest: Mapping[str, Any] = max(kept, key=lambda each: each["date"])
    return str(newest["commit"])


def git(*words: str, wanted: bool = True) -> str:
    """Return what git prints in this checkout; nothing if it fails where that is not `wanted`."""
    done = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if wanted and done.returncode:
        raise TraceError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()


def main(
    against: Annotated[str | None, typer.Option(metavar="COMMIT", help="Else the last release.")] = None,
    write: Annotated[bool, typer.Option("--write", help="Keep the ratios in the history.")] = False,
    stream: Annotated[bool, typer.Option(help="Whether the stream too, which takes minutes.")] = True,
    turns: Annotated[int, typer.Option(metavar="N", min=1, help="Runs of each.")] = 5,
) -> None:
    """Print each figure beside that of the last release; fail if one is worse by a tenth."""
    commit = git("rev-parse", against or last_release())
    figures: dict[str, dict[str, float]] = {}
    with checked_out(commit) as there:
        loop = min(cpu_seconds(("-c", LOOP), ROOT) for _ in range(turns))
        for part in (commands, streamed) if stream else (commands,):
            for each in part(ROOT, there, turns):
                figures[each.name] = {"ratio": round(each.ratio, 3), "loops": round(min(each.here) / loop, 4)}
                print(json.dumps({"figure": each.name, "against": commit[:7]} | figures[each.name]), flush=True)
    if write:
        kept = {"commit": git("rev-parse", "HEAD"), "date": time.strftime("%Y-%m-%d"), "against": commit}
        (HISTORY / f"{__version__}.json").write_text(json.dumps(kept | {"figures": figures}, indent=2) + "\n")
    worse = [f"{name} {told['ratio']:.2f}" for name, told in figures.items() if told["ratio"] > WORSE]
    if worse:
        say(f"error: worse than {commit[:7]} by a tenth: {', '.join(worse)}")
        raise typer.Exit(1)


if __name__ == "__main__":
    run_app(application(main))
