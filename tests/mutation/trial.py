"""Trials of mutants, each process in a copy of the tree of its own: cosmic-ray changes files where they are."""

import math
import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import cache
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

FEWEST_SECONDS = 60.0
"""How long the tests of a mutant may take at least: a kernel that changed is compiled anew."""

PYTEST = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--no-header"]


def copied(root: Path, copy: Path) -> Path:
    """Copy what is in the index of a tree, with its links and as it stands on the disk."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=root, check=True, capture_output=True, text=True)
    for name in listed.stdout.rstrip("\0").split("\0"):
        if (root / name).is_symlink() or (root / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(root / name, copy / name, follow_symlinks=False)
    return copy


def command(tests: Sequence[Path]) -> str:
    """Return the command line of some tests."""
    return shlex.join([*PYTEST, *map(str, tests)])


@cache
def seconds_of(tests: tuple[Path, ...], deadline: float) -> float:
    """Run tests of the tree as it is, in the working folder, and return how long they take; `inf` for too long.

    Raises
    ------
    RuntimeError
        If they fail: no mutant could be told from that.
    """
    began = time.monotonic()
    try:
        left = max(deadline - time.time(), 0.0)
        ran = subprocess.run(shlex.split(command(tests)), capture_output=True, text=True, timeout=left)
    except subprocess.TimeoutExpired:
        return math.inf
    if ran.returncode:
        raise RuntimeError(f"{' '.join(map(str, tests))} fail without any mutant:\n{ran.stdout[-3_000:]}")
    return time.monotonic() - began


def trial(mutations: Sequence[Any], tests: tuple[Path, ...], deadline: float) -> Any:
    """Return cosmic-ray's result of the tests beside a mutant; None if there is no time for it before `deadline`.

    Each process runs the tests without any mutant once: they must pass, they tell how long they take, and they compile
    the kernels of its copy.
    """
    from cosmic_ray.mutating import mutate_and_test

    unmutated = seconds_of(tests, deadline)
    left = deadline - time.time()
    if left < unmutated:
        return None
    allowed = max(FEWEST_SECONDS, 4 * unmutated)
    result = mutate_and_test(mutations, command(tests), min(allowed, left))
    cut_short = left < allowed and result.output == "timeout"
    return None if cut_short else result


def go_to(copies: "Queue[str]") -> None:
    """Let this process work in a copy that no other has."""
    os.chdir(copies.get())
    os.environ |= {"PYTHONPATH": os.getcwd(), "PYTHONDONTWRITEBYTECODE": "1"}


@contextmanager
def processes(copies: Sequence[Path]) -> Iterator[ProcessPoolExecutor]:
    """Yield as many processes as there are copies, each in its own."""
    context = get_context("spawn")
    queue: Queue[str] = context.Queue()
    for copy in copies:
        queue.put(str(copy))
    with ProcessPoolExecutor(len(copies), context, initializer=go_to, initargs=(queue,)) as pool:
        yield pool
