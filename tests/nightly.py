"""Everything that `make test` leaves out, with all examples, random ones: `python -m tests.nightly`.

A part that fails does not stop the others. A table at the end has each part's tests, result and minutes; the status is
1 if one failed.
"""

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from shadowtime.shared.cli.command_line import run_app
from shadowtime.shared.cli.paths import ROOT
from tests.support.class_archive import java_options

PYTEST = ("pytest", "-q", "--hypothesis-profile", "nightly", "--durations", "40", "--durations-min", "15")


@dataclass(frozen=True)
class Part:
    """Arguments of `python -m`, with what they add to the environment."""

    name: str
    arguments: tuple[str, ...]
    environment: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What a part came to; it has no number of tests where it is no pytest."""

    name: str
    tests: int | None
    passed: bool
    minutes: float


def marked(expression: str, processes: int) -> tuple[str, ...]:
    """Return pytest's arguments for tests with these markers, several files at once."""
    return (*PYTEST, "-m", expression, "--numprocesses", str(processes), "--dist", "loadfile", "--no-loadscope-reorder")


def parts() -> list[Part]:
    """Return the parts in their order: properties compute, tests marked `nightly` wait, gates measure speed alone."""
    return [
        Part("properties", marked("hypothesis and not archive and not nightly", 2), (("SHADOWTIME_FUZZ", "10"),)),
        Part("nightly", marked("nightly and not archive and not engine", 4), (("JDK_JAVA_OPTIONS", java_options()),)),
        Part("engine", (*PYTEST, "-m", "engine"), (("SHADOWTIME_ENGINE", "own"),)),
        Part("archive", (*PYTEST, "-m", "archive")),
        Part("mutants", ("tests.mutation", "--json", "mutants.json")),
    ]


def outcome(part: Part) -> Outcome:
    """Run a part to its end, whatever that is."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        more = (f"--junitxml={report}",) if part.arguments[0] == "pytest" else ()
        print(f"\n{part.name}: python -m {' '.join(part.arguments)}", flush=True)
        began = time.monotonic()
        status = subprocess.run(
            [sys.executable, "-m", *part.arguments, *more], cwd=ROOT, env=os.environ | dict(part.environment)
        ).returncode
        minutes = (time.monotonic() - began) / 60
        return Outcome(part.name, count_of(report), status == 0, minutes)


def count_of(report: Path) -> int | None:
    """Return how many tests a report has; nothing if there is none."""
    if not report.exists():
        return None
    return sum(int(suite.get("tests", 0)) for suite in ElementTree.parse(report).getroot().iter("testsuite"))


def table(outcomes: Sequence[Outcome]) -> str:
    """Return a line for each part.

    >>> print(table([Outcome("archive", 120, True, 31.25), Outcome("mutants", None, False, 45.0)]))
    part          tests  result  minutes
    archive         120  passed     31.2
    mutants           -  failed     45.0
    """
    lines = [f"{'part':<12}{'tests':>7}  {'result':<6}  {'minutes':>7}"]
    for each in outcomes:
        tests = "-" if each.tests is None else str(each.tests)
        result = "passed" if each.passed else "failed"
        lines.append(f"{each.name:<12}{tests:>7}  {result:<6}  {each.minutes:>7.1f}")
    return "\n".join(lines)


def main() -> int:
    """Run every part and print the table."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    outcomes = [outcome(each) for each in parts()]
    print(f"\n{table(outcomes)}")
    return 0 if all(each.passed for each in outcomes) else 1


if __name__ == "__main__":
    run_app(main)
