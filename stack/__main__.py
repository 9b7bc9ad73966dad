"""The whole stack as local processes, without Docker: `shadowtime stack`."""

from shadowtime.shared.start_up import run

if __name__ == "__main__":
    run("shadowtime.stack.command_line")
