"""Workers and what goes with them: `python -m services`."""

from shared.start_up import run

if __name__ == "__main__":
    run("services.command_line")
