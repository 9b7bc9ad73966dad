"""The command `convert`."""

from tests.support.forked import run_forked


def convert(*arguments: object) -> tuple[int, str]:
    done = run_forked("convert", *arguments)
    return done.returncode, done.stderr
