"""Workers and what goes with them: `shadowtime`."""

from shadowtime.shared.start_up import run

if __name__ == "__main__":
    run("shadowtime.services.command_line")
