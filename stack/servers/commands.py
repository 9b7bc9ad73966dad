"""Commands of the system: run to their end, with their output in the error if they fail."""

import os
import subprocess

from shadowtime.stack.servers.server import ServerError

SECONDS = 900.0


def run(command: list[str]) -> None:
    """Run a non-interactive command.

    Raise `ServerError` if the command fails, with the end of its output, or takes more than `SECONDS`.
    """
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ServerError(f"{' '.join(command)} took more than {SECONDS:g} s") from None

    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).strip().splitlines()[-10:])
        raise ServerError(f"{' '.join(command)} ended with status {done.returncode}:\n{tail}")
