"""Compilation of many kernels in several processes at once, into the cache, each after the kernels that it calls."""

import fcntl
import os
import selectors
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from threading import Event, Timer
from types import CodeType, FunctionType
from typing import IO, cast

import numpy as np

from shadowtime.shared.cores import usable_cores
from shadowtime.shared.kernels.decorator import Kernel

FEWEST = 6
"""Least number of kernels for which other processes pay: one starts in the time of three kernels."""

MOST_PROCESSES = 8

MAX_REHEARSAL = 5.0
"""Seconds for which kernels of a rehearsal run as Python functions; all SPECs without keys take less."""

MAX_TRIES = 1200
"""Tenths of a second that a process waits for another one of the same user that compiles."""

_SERVE = "from shadowtime.shared.kernels.together import serve; serve()"


def reachable(kernels: Iterable[Kernel]) -> dict[Kernel, set[Kernel]]:
    """Return the kernels, and all that they call, each with those that it calls itself. O(their code)."""
    calls: dict[Kernel, set[Kernel]] = {}
    left = list(kernels)
    while left:
        kernel = left.pop()
        if kernel not in calls:
            calls[kernel] = _called(kernel.py_func) - {kernel}
            left += calls[kernel]
    return calls


def _called(function: Callable[..., object]) -> set[Kernel]:
    """Return the kernels that a function names, itself or in the plain functions that it names."""
    called: set[Kernel] = set()
    seen: set[FunctionType] = set()
    left = [cast("FunctionType", function)]
    while left:
        plain = left.pop()
        if plain in seen:
            continue
        seen.add(plain)
        names = {name for code in codes(plain.__code__) for name in code.co_names}
        for value in [plain.__globals__.get(name) for name in names]:
            if isinstance(value, Kernel):
                called.add(value)
            elif isinstance(value, FunctionType) and value.__module__.partition(".")[0] != "numba":
                left.append(value)
    return called


def codes(code: CodeType) -> Iterator[CodeType]:
    """Yield a code object and all code objects nested in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes(constant)


def called_in_rehearsal() -> set[Kernel]:
    """Return the kernels that this process needs next, if it has a rehearsal, which is used once.

    Errors of a rehearsal are ignored. If it takes long, it goes on with compiled kernels.
    """
    rehearsal, Kernel.rehearsal = Kernel.rehearsal, None
    if rehearsal is None:
        return set()
    called: set[Kernel] = set()
    Kernel.rehearsed = called
    limit = Timer(MAX_REHEARSAL, lambda: setattr(Kernel, "rehearsed", None))
    limit.daemon = True
    limit.start()
    try:
        with suppress(Exception), warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            rehearsal()
    finally:
        limit.cancel()
        Kernel.rehearsed = None
    return called


def is_importable(kernel: Kernel) -> bool:
    """Return whether another process gets the same kernel by its module and name; not so in a notebook."""
    module = sys.modules.get(kernel.py_func.__module__)
    return kernel.py_func.__module__ != "__main__" and getattr(module, kernel.py_func.__name__, None) is kernel


def compile_in_processes(missing: Callable[[], dict[Kernel, set[Kernel]]], folder: Path) -> None:
    """Compile kernels into the cache, in as many processes as there are cores; return when no more can be done.

    One process of a user does this at a time. Another one waits, and asks again for what is missing. What cannot be
    compiled in this way is left to the caller: its own compilation reports the error.

    Parameters
    ----------
    missing
        Returns the kernels that the cache lacks, each with the missing ones that it calls.
    folder
        The folder of the cache, which can be written.
    """
    with _alone(folder):
        left = missing()
        cores = min(usable_cores(), MOST_PROCESSES)
        if len(left) < FEWEST:
            return
        with _helpers(cores) as helpers, suppress(OSError):  # a helper that ends breaks its pipe
            _give_out(left, helpers)


def _give_out(left: dict[Kernel, set[Kernel]], helpers: Sequence["subprocess.Popen[bytes]"]) -> None:
    """Let each idle helper compile the next kernel whose callees are there: the one with most work behind it first."""
    urgency = _work_behind(left)
    waits_for = {kernel: set(callees) for kernel, callees in left.items()}
    busy: dict[subprocess.Popen[bytes], Kernel] = {}
    with selectors.DefaultSelector() as answers:
        for helper in helpers:
            answers.register(cast("IO[bytes]", helper.stdout), selectors.EVENT_READ, helper)
        while True:
            ready = sorted((kernel for kernel, before in waits_for.items() if not before), key=urgency.__getitem__)
            for helper in helpers:
                if ready and helper not in busy:
                    busy[helper] = ready.pop()
                    del waits_for[busy[helper]]
                    function = busy[helper].py_func
                    line = f"{function.__module__} {function.__name__}\n"
                    cast("IO[bytes]", helper.stdin).write(line.encode())
            if not busy:
                return
            for key, _ in answers.select():
                if not os.read(key.fd, 1):
                    return
                made = busy.pop(key.data)
                for before in waits_for.values():
                    before.discard(made)


def _work_behind(calls: dict[Kernel, set[Kernel]]) -> dict[Kernel, int]:
    """Return for each kernel the bytes of code on the longest chain of its callers, with its own."""
    callers: dict[Kernel, list[Kernel]] = {kernel: [] for kernel in calls}
    for caller, callees in calls.items():
        for callee in callees:
            callers[callee].append(caller)
    behind: dict[Kernel, int] = {}

    def work(kernel: Kernel) -> int:
        if kernel not in behind:
            behind[kernel] = 0  # kernels that call each other
            own = sum(len(code.co_code) for code in codes(kernel.py_func.__code__))
            behind[kernel] = own + max(map(work, callers[kernel]), default=0)
        return behind[kernel]

    return {kernel: work(kernel) for kernel in calls}


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Let no other process of the user compile in this way. Wait for one, not for ever: it may be stopped."""
    with (folder / ".compiling").open("w") as lock:
        for _ in range(MAX_TRIES):
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                Event().wait(0.1)
            else:
                break
        yield


@contextmanager
def _helpers(number: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(folder for folder in sys.path if folder)}
    command = [sys.executable, "-c", _SERVE]
    pipe, none = subprocess.PIPE, subprocess.DEVNULL
    helpers: list[subprocess.Popen[bytes]] = []
    try:
        for _ in range(number):
            helper = subprocess.Popen(command, env=environment, bufsize=0, stdin=pipe, stdout=pipe, stderr=none)  # noqa: S603
            helpers.append(helper)
        yield helpers
    finally:
        for helper in helpers:
            helper.kill()
            helper.communicate()


def serve() -> None:
    """Compile the kernels that standard input names, one a line: module and name. Answer each with an empty line."""
    for line in sys.stdin:
        module, name = line.split()
        getattr(import_module(module), name).load_here()
        sys.stdout.write("\n")
        sys.stdout.flush()
