"""The command `convert`."""

import subprocess
import sys

from tests.support.patience import PATIENCE


def convert(*arguments: object) -> tuple[int, str]:
    command = [sys.executable, "-m", "shadowtime", "convert", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    return done.returncode, done.stderr
