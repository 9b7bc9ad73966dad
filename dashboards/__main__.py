"""Dashboards and alert rules: `python -m dashboards`."""

from shared.start_up import run

if __name__ == "__main__":
    run("dashboards.command_line")
