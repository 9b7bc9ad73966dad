"""The form of before `shadowtime` was a command, for one more release."""

from shadowtime.shared.start_up import run_old

if __name__ == "__main__":
    run_old("shadowtime.replayer.command_line", "shadowtime replay")
