"""Replay traces: `shadowtime replay`."""

from shadowtime.shared.start_up import run

if __name__ == "__main__":
    run("shadowtime.replayer.command_line")
