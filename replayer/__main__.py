"""Replay traces: `python -m replayer`."""

from shared.start_up import run

if __name__ == "__main__":
    run("replayer.command_line")
