"""Replay traces: `python -m replayer`."""

from shadowtime.shared.start_up import run

if __name__ == "__main__":
    run("shadowtime.replayer.command_line")
