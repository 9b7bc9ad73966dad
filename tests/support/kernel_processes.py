"""Processes that share a cache of compiled kernels of their own."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from shadowtime.shared.cli.paths import ROOT

Told = Callable[[str], str]


def told_in(folder: Path) -> Told:
    """Return a function that runs a program in a new process, and returns what that printed.

    The process finds modules and compiled kernels in `folder`.
    """
    environment = os.environ | {"PYTHONPATH": f"{folder}{os.pathsep}{ROOT}", "XDG_CACHE_HOME": str(folder)}
    environment.pop("NUMBA_CACHE_DIR", None)

    def run(program: str) -> str:
        command = [sys.executable, "-B", "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=100, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    return run
