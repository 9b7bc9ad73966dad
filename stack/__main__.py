"""The whole stack as local processes, without Docker: `python -m stack`."""

from shared.start_up import run

if __name__ == "__main__":
    run("stack.command_line")
