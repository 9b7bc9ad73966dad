"""Runner of a cluster's commands. They run one at a time and only read."""

import asyncio
import os
import shlex
import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from shadowtime.shared.errors import FollowError
from shadowtime.shared.quoting import truncate

UNSET = (
    *("SLURM_CLUSTERS", "SACCT_FEDERATION", "SACCT_LOCAL", "SCONTROL_ALL", "SCONTROL_FEDERATION", "SCONTROL_FUTURE"),
    *("SCONTROL_LOCAL", "SCONTROL_SIB", "SCONTROL_SIBLING", "SINFO_ALL", "SINFO_FEDERATION", "SINFO_FORMAT"),
    *("SINFO_FUTURE", "SINFO_LOCAL", "SINFO_PARTITION", "SINFO_SORT", "SQUEUE_ACCOUNT", "SQUEUE_ALL", "SQUEUE_ARRAY"),
    *("SQUEUE_ARRAY_UNIQUE", "SQUEUE_FEDERATION", "SQUEUE_FORMAT", "SQUEUE_FORMAT2", "SQUEUE_LICENSES"),
    *("SQUEUE_LOCAL", "SQUEUE_NAMES", "SQUEUE_PARTITION", "SQUEUE_PRIORITY", "SQUEUE_QOS", "SQUEUE_SIB"),
    *("SQUEUE_SIBLING", "SQUEUE_SORT", "SQUEUE_STATES", "SQUEUE_USERS"),
)
"""Variables by which a user changes the output of Slurm's commands, such as which jobs are shown."""

SPOKEN = (
    *(f"--unset={name}" for name in UNSET),
    *("LC_ALL=C", "TZ=UTC", "SLURM_TIME_FORMAT=%s", "SLURM_BITSTR_LEN=0"),
)
"""Arguments of `env` for each command. They make the output independent of the host, and task lists complete."""

MAX_OUTPUT = 2**30
"""Largest accepted answer of a command or request, in bytes."""


class Commands:
    """Runner of commands, on this machine or `via` another command, such as `ssh login`.

    A command without an answer is killed after `seconds`.
    """

    def __init__(self, via: Sequence[str] = (), seconds: float = 60.0) -> None:
        self._via = via
        self._seconds = seconds

    def _run_by(self, *command: str) -> Sequence[str]:
        """Return the command to run on this machine. It is quoted for ssh, which passes it to a shell as one text.

        ssh may itself be run by another command, as in `sshpass -e ssh login`.
        """
        through_shell = any(Path(word).name == "ssh" for word in self._via)
        return (*self._via, shlex.join(command)) if through_shell else (*self._via, *command)

    async def text(self, *command: str, seconds: float | None = None) -> str:
        """Return the output of a command. Arguments and errors are those of `file`."""
        async with self.file(*command, seconds=seconds) as path:
            return await asyncio.to_thread(path.read_text, errors="surrogateescape")

    @asynccontextmanager
    async def file(self, *command: str, seconds: float | None = None) -> AsyncIterator[Path]:
        """Yield a temporary file with the output of a command. `seconds` is its time limit, if not that of the runner.

        Raise `FollowError` if the command cannot be run, fails, prints more than `MAX_OUTPUT` bytes, or does not answer
        in time. If it fails, the message has the last line of its error output.
        """
        with tempfile.TemporaryDirectory(prefix="shadowtime-") as folder:
            out, err = Path(folder) / "out", Path(folder) / "err"
            with out.open("wb") as output, err.open("wb") as errors:
                try:
                    process = await asyncio.create_subprocess_exec(
                        *self._run_by("env", *SPOKEN, *command),
                        stdin=asyncio.subprocess.DEVNULL,
                        stdout=output,
                        stderr=errors,
                        start_new_session=True,
                    )
                except OSError as error:
                    name = f"--via: {self._via[0]}" if self._via else command[0]
                    raise FollowError(f"{name} cannot be run: {error.strerror}") from error

                try:
                    async with asyncio.timeout(seconds or self._seconds):
                        code = await process.wait()
                except TimeoutError:
                    raise FollowError(
                        f"{command[0]} did not answer in {seconds or self._seconds:g} s; increase --timeout"
                    ) from None
                finally:
                    if process.returncode is None:
                        with suppress(ProcessLookupError):
                            os.killpg(process.pid, 9)
                        await process.wait()

            if code:
                lines = err.read_text(errors="replace").strip().splitlines()
                why = truncate(lines[-1], 200) if lines else f"it ended with status {code}"
                raise FollowError(f"{command[0]}: {why}")

            if out.stat().st_size > MAX_OUTPUT:
                raise FollowError(f"{command[0]} printed more than {MAX_OUTPUT:,} bytes")
            yield out
